#include "base/printable.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace reprise {
namespace {

constexpr size_t kMostOfAByte = 4;  // "\x1b"

// How many bytes of a control character `text` begins with: those of ASCII, and U+0080 to U+009F in UTF-8, among
// which is a second escape.
size_t ControlBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (absl::ascii_iscntrl(byte(0))) return 1;
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

char* PutEscape(char character, char* at) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(character);
  *at++ = '\\';
  switch (character) {
    case '\n':
      *at++ = 'n';
      return at;
    case '\r':
      *at++ = 'r';
      return at;
    case '\t':
      *at++ = 't';
      return at;
    default:
      *at++ = 'x';
      *at++ = kDigits[byte / 16];
      *at++ = kDigits[byte % 16];
      return at;
  }
}

}  // namespace

size_t PutPrintable(std::string_view text, std::span<char> room) {
  size_t size = 0;
  while (!text.empty()) {
    std::array<char, 2 * kMostOfAByte> shown;
    const size_t control = ControlBytes(text);
    char* end = shown.data();
    if (control == 0) *end++ = text[0];
    for (size_t i = 0; i < control; ++i) end = PutEscape(text[i], end);
    const auto bytes = static_cast<size_t>(end - shown.data());
    if (bytes > room.size() - size) break;
    std::copy(shown.data(), end, room.data() + size);
    size += bytes;
    text.remove_prefix(std::max<size_t>(control, 1));
  }
  return size;
}

std::string Printable(std::string_view text) {
  std::string printable(kMostOfAByte * text.size(), '\0');
  printable.resize(PutPrintable(text, printable));
  return printable;
}

}  // namespace reprise
