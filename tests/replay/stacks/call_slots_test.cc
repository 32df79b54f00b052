// Changing what other people's libraries call is only right if it is exactly the named calls, in whichever
// way they were linked, and leaves the memory as protected as it was.
#include "replay/stacks/call_slots.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "replay/stacks/loaded_libraries.h"

extern "C" int called_answer();

namespace reprise::replay {
namespace {

int Other() { return 10 + called_answer(); }

// The lines of the process's map that are of `path`, with their protection, without addresses.
std::string ProtectionsOf(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != line.npos) found += line.substr(line.find(' ') + 1, 4) + "\n";
  }
  return found;
}

class CallSlots : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    library_ = dlopen(GetParam(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override { dlclose(library_); }

  int Ask(const char* how) { return reinterpret_cast<int (*)()>(dlsym(library_, how))(); }
  int Redirect(void* from, const char* library = nullptr) {
    const struct Redirect redirect { "called_answer", from, reinterpret_cast<void*>(&Other) };
    return RedirectCalls(std::span(&redirect, 1), library);
  }

  void* library_ = nullptr;
};

TEST_P(CallSlots, ExactlyTheNamedCall) {
  const std::string before = ProtectionsOf(GetParam());
  EXPECT_GT(Redirect(reinterpret_cast<void*>(&called_answer)), 0);
  EXPECT_EQ(Ask("ask"), 11);
  EXPECT_EQ(Ask("ask_by_address"), 11);
  EXPECT_EQ(Ask("ask_2"), 2);
  EXPECT_EQ(Ask("ask"), 11);      // also after the loader has filled what it had not
  EXPECT_EQ(called_answer(), 1);  // the executable's own calls are its own
  EXPECT_EQ(ProtectionsOf(GetParam()), before);
  EXPECT_EQ(Redirect(reinterpret_cast<void*>(&called_answer)), 0);  // all done
}

TEST_P(CallSlots, AFilledSlotThatLeadsElsewhereIsLeftAlone) {
  EXPECT_EQ(Ask("ask"), 1);
  EXPECT_EQ(Ask("ask_by_address"), 1);
  EXPECT_EQ(Redirect(reinterpret_cast<void*>(&Other)), 0);
  EXPECT_EQ(Ask("ask"), 1);
}

TEST_P(CallSlots, OfOneLibraryAlone) {
  auto* const called = reinterpret_cast<void*>(&called_answer);
  EXPECT_EQ(Redirect(called, "/lib/another.so"), 0);
  EXPECT_EQ(Ask("ask"), 1);
  EXPECT_GT(Redirect(called, GetParam()), 0);
  EXPECT_EQ(Ask("ask"), 11);
}

TEST_P(CallSlots, NothingIsWrittenWhereNobodySaysWhatIsWritable) {
  const std::string before = ProtectionsOf(GetParam());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int redirected = Redirect(reinterpret_cast<void*>(&called_answer));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(redirected, 0);
  EXPECT_EQ(ProtectionsOf(GetParam()), before);
  EXPECT_EQ(Ask("ask"), 1);
}

INSTANTIATE_TEST_SUITE_P(Bound, CallSlots, ::testing::Values(NOW, LAZY));

TEST(CountLibraries, CountsEachOneThatComesAndGoes) {
  const LibraryCounts before = CountLibraries();
  EXPECT_EQ(CountLibraries().loaded, before.loaded);
  void* const library = dlopen(NOW, RTLD_NOW);
  EXPECT_GT(CountLibraries().loaded, before.loaded);
  EXPECT_EQ(CountLibraries().unloaded, before.unloaded);
  dlclose(library);
  EXPECT_GT(CountLibraries().unloaded, before.unloaded);
}

}  // namespace
}  // namespace reprise::replay
