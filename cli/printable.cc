#include "cli/printable.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace reprise::cli {
namespace {

// How many bytes of a control character `text` begins with: those of ASCII, and U+0080 to U+009F in UTF-8, among
// which is a second escape.
size_t ControlBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (absl::ascii_iscntrl(byte(0))) return 1;
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const size_t control = ControlBytes(text);
    if (control == 0) {
      printable += text[0];
    } else {
      printable += absl::CHexEscape(absl::string_view(text.data(), control));
    }
    text.remove_prefix(control == 0 ? 1 : control);
  }
  return printable;
}

}  // namespace reprise::cli
