// Files come into memory whole: the right bytes, not more of them than allowed. What is written is there
// whole or what was there stays, and nothing lies beside it. Errors name the file that was asked for.
#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/temp_folder.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class Files : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.insert(entry.path().filename());
    return names;
  }

  TempFolder folder_;
};

using Writer = absl::Status (*)(const std::string& path, std::string_view text);
constexpr Writer kBoth[] = {WriteFile, ReplaceFile};

TEST_F(Files, AreReadToTheLastByte) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 16, size_t{300'001}}) {
    std::string contents(size, '\0');
    for (size_t i = 0; i < size; ++i) contents[i] = static_cast<char>(i * 7);
    EXPECT_EQ(*ReadFile(Put("f", contents)), contents);
  }
}

TEST_F(Files, AreNamedWhereTheyCannotBeRead) {
  const auto contents = ReadFile("/nonexistent/f");
  EXPECT_EQ(contents.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(contents.status()), AllOf(HasSubstr("/nonexistent/f"), HasSubstr("No such file")));
  EXPECT_THAT(Text(ReadFile("/").status()), HasSubstr("/: cannot be read"));
}

TEST_F(Files, AreReadUpToAMost) {
  const std::string file = Put("f", std::string(1000, 'x'));
  EXPECT_EQ(ReadFile(file, 1000)->size(), 1000);
  EXPECT_EQ(ReadFile(file, 999).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(Files, HaveAnEnd) {
  EXPECT_THAT(Text(ReadFile("/dev/zero").status()), HasSubstr("/dev/zero: is a device without an end"));
  EXPECT_EQ(*ReadFile("/dev/null"), "");
}

// Nobody ever writes into this pipe: a test that waits for it never ends.
TEST_F(Files, AreNeverWaitedForInAJob) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(*ReadRegularFile(Put("f", "text")), "text");
  for (const std::string& other : {Path("pipe"), std::string("/dev/zero")}) {
    EXPECT_THAT(Text(ReadRegularFile(other).status()), HasSubstr(other + ": is a pipe or a device"));
  }
  EXPECT_THAT(Text(ReadRegularFile("/").status()), HasSubstr("/: cannot be read"));
  ASSERT_TRUE(ReplaceFile(Path("pipe"), "text").ok());
  EXPECT_EQ(*ReadFile(Path("pipe")), "text");
}

TEST_F(Files, AreReplacedAsAWhole) {
  for (const Writer write : kBoth) {
    Put("f", std::string(100'000, 'x'));
    ASSERT_TRUE(write(Path("f"), "text").ok());
    EXPECT_EQ(*ReadFile(Path("f")), "text");
    EXPECT_EQ(Names(), std::set<std::string>{"f"});
  }
}

TEST_F(Files, KeepTheirModeWhereAUserHasThemReplaced) {
  struct stat facts {};
  for (const mode_t mode : {0600U, 0664U}) {
    ASSERT_EQ(chmod(Put("f", "old").c_str(), mode), 0);
    ASSERT_TRUE(WriteFile(Path("f"), "text").ok());
    ASSERT_EQ(stat(Path("f").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777U, mode);
  }
}

TEST_F(Files, MayHaveNamesAsLongAsNamesCanBe) {
  const std::string name(255, 'n');
  for (const Writer write : kBoth) EXPECT_TRUE(write(Path(name), "text").ok());
  EXPECT_EQ(Names(), std::set<std::string>{name});
}

TEST_F(Files, InTheWorkingFolderNeedNoSlash) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  for (const Writer write : kBoth) EXPECT_TRUE(write("f", "text").ok());
  std::filesystem::current_path(before);
  EXPECT_EQ(*ReadFile(Path("f")), "text");
}

TEST_F(Files, WhatIsNotARegularFileIsWrittenToAsItIs) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(WriteFile(Path("pipe"), "text").ok());
  char text[8] = "";
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
}

TEST_F(Files, AreNamedWhereTheyCannotBeWritten) {
  for (const Writer write : kBoth) {
    const absl::Status nowhere = write(Path("none/f"), "text");
    EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(Text(nowhere),
                AllOf(HasSubstr(Path("none/f") + ":"), HasSubstr("No such file"), Not(HasSubstr(".part"))));
    EXPECT_THAT(Text(write(folder_.path(), "text")),
                AllOf(HasSubstr(folder_.path() + ":"), HasSubstr("Is a directory")));
  }
  EXPECT_THAT(Text(WriteFile("/dev/full", "text")),
              AllOf(HasSubstr("/dev/full:"), HasSubstr("No space left")));
}

TEST_F(Files, StayAsTheyAreWhereAWriteFails) {
  Put("f", "old");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  for (const Writer write : kBoth) {
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status status = write(Path("f"), std::string(100'000, 'x'));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(Text(status), AllOf(HasSubstr(Path("f") + ":"), HasSubstr("File too large")));
    EXPECT_EQ(*ReadFile(Path("f")), "old");
    EXPECT_EQ(Names(), std::set<std::string>{"f"});
  }
  signal(SIGXFSZ, handler);
}

// While a file is written, other threads of the job print to where it has nothing open. The signal comes in the middle.
TEST_F(Files, TakeNoneOfTheStandardDescriptors) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDIN_FILENO);
    const rlimit small{4096, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &small);
    static volatile int seen = 0;
    signal(SIGXFSZ, [](int) { seen = fcntl(STDIN_FILENO, F_GETFD) < 0 ? 1 : 2; });
    for (const Writer write : kBoth) {
      seen = 0;
      if (write(Path("f"), std::string(100'000, 'x')).ok() || seen != 1) _exit(1);
    }
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

TEST_F(Files, WhatIsTooLargeIsNotReadFirst) {
  const std::string path = Put("large", "");
  std::filesystem::resize_file(path, static_cast<uintmax_t>(kMostFileBytes) + 1);  // of no blocks
  struct rusage before {
  }, after{};
  getrusage(RUSAGE_SELF, &before);
  const absl::StatusOr<std::string> read = ReadFile(path);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_TRUE(absl::IsResourceExhausted(read.status())) << read.status();
  EXPECT_THAT(Text(read.status()), HasSubstr("large: more than 4294967296 bytes"));
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "KiB";
}

}  // namespace
}  // namespace reprise
