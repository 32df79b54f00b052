// A command that is shown as the next one is pasted into a shell: it must name the same file there.
#include "base/shell.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace reprise {
namespace {

// What a shell takes `words` for, a line each.
std::string ReadByShell(const std::string& words) {
  std::FILE* const pipe = popen(("printf '%s\\n' " + words).c_str(), "r");
  if (pipe == nullptr) return "no shell";
  std::string text;
  std::array<char, 256> some{};
  while (std::fgets(some.data(), some.size(), pipe) != nullptr) text += some.data();
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  EXPECT_EQ(ShellQuoted("out/trace.rank3-1.reprise"), "out/trace.rank3-1.reprise");
}

TEST(ShellQuoted, IsReadBackAsOneWord) {
  for (const std::string word :
       {"my runs/a", "it's", "a\nb", "$HOME", "`id`", "a*;b", "~", "\"", "\\", "#x", ""})
    EXPECT_EQ(ReadByShell(ShellQuoted(word)), word + "\n");
}

TEST(QuotedFile, IsNoOption) {
  EXPECT_EQ(QuotedFile("-o"), "./-o");
  EXPECT_EQ(QuotedFile("-my plan"), "'./-my plan'");
  EXPECT_EQ(QuotedFile("a-b"), "a-b");
}

}  // namespace
}  // namespace reprise
