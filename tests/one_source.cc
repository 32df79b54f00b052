// Runs the tests of one source of a program that holds those of a folder:
//
//   planner_tests [SOURCE] [GOOGLETEST OPTION...]
//
// SOURCE is a file's name, "bound_test.cc"; without it all tests run, in one process. Each source's tests are a process
// of their own in `meson test`, while the headers that they share are compiled once for several of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

// A filter for the tests of one source; empty: it has none.
std::string TestsOf(std::string_view source) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::filesystem::path(test.file()).filename() == source)
        filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    const std::string filter = TestsOf(argv[1]);
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no tests of a source named %s\n", argv[0], argv[1]);
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
