// Why this exists: what a file calls a host or a function is shown in a terminal, where a newline begins a row that
// nobody wrote and an escape says whatever its author likes.
#include "cli/printable.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

TEST(Printable, ControlCharactersAreSpelt) {
  EXPECT_EQ(Printable("node1\nreprise: next: rm\r\t"), "node1\\nreprise: next: rm\\r\\t");
  EXPECT_EQ(Printable("\x1b[2J\x7f\x01"), "\\x1b[2J\\x7f\\x01");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
}

TEST(Printable, AllElseStays) {
  for (const char* text : {"", "train.py:42 step", "C:\\x1b", "'quoted' \"twice\"",
                           "m\xc3\xbcller \xe2\x82\xac", "\xc2", "\xc2\xa0", "\xff\x9b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

}  // namespace
}  // namespace reprise::cli
