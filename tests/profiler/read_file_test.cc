// Whole files come into memory: the right bytes, not more of them than allowed, and errors that name the
// file.
#include "profiler/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;

TEST(ReadFile, GivesEveryByte) {
  TempFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 16, size_t{300'001}}) {
    std::string contents(size, '\0');
    for (size_t i = 0; i < size; ++i) contents[i] = static_cast<char>(i * 7);
    WriteFile(folder / "f", contents);
    EXPECT_EQ(*ReadFile(folder / "f"), contents);
  }
}

TEST(ReadFile, NamesAFileThatIsNotThere) {
  const auto contents = ReadFile("/nonexistent/f");
  EXPECT_EQ(contents.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(contents.status()), HasSubstr("/nonexistent/f"));
}

TEST(ReadFile, NamesAFolder) { EXPECT_THAT(Text(ReadFile("/").status()), HasSubstr("/: cannot be read")); }

// Nobody ever writes into this pipe: a test that waits for it never ends.
TEST(ReadFile, ARegularFileIsNeverWaitedFor) {
  TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  WriteFile(folder / "f", "text");
  EXPECT_EQ(*ReadRegularFile(folder / "f"), "text");
  for (const std::string& other : {std::string(folder / "pipe"), std::string("/dev/zero")}) {
    EXPECT_THAT(Text(ReadRegularFile(other).status()), HasSubstr(other + ": is a pipe or a device"));
  }
  EXPECT_THAT(Text(ReadRegularFile("/").status()), HasSubstr("/: cannot be read"));
}

TEST(ReadFile, StopsAtTheMost) {
  EXPECT_EQ(ReadFile("/dev/zero", 1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reprise::profiler
