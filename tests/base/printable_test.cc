// Why this exists: what a file calls a host or a function is shown in a terminal, where a newline begins a row that
// nobody wrote and an escape says whatever its author likes.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <array>

namespace reprise {
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

TEST(PutPrintable, NoCharacterInPart) {
  std::array<char, 8> room{};
  const auto put = [&](std::string_view text) {
    return std::string_view(room.data(), PutPrintable(text, room));
  };
  EXPECT_EQ(put("longer than it"), "longer t");
  EXPECT_EQ(put("a\x1b[K\n"), "a\\x1b[K");
  EXPECT_EQ(put("\xc2\x9b!"), "\\xc2\\x9b");
  EXPECT_EQ(put("!\xc2\x9b"), "!");
}

}  // namespace
}  // namespace reprise
