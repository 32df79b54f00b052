// Whole files come into memory: the right bytes, not more of them than allowed, and errors that name the
// file.
#include "profiler/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ReadFile, StopsAtTheMost) {
  EXPECT_EQ(ReadFile("/dev/zero", 1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reprise::profiler
