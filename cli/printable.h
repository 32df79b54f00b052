// Text that others wrote, for a terminal: names in files and of files.
#pragma once

#include <string>
#include <string_view>

namespace reprise::cli {

// `text` with each control character as in a C string: one line, which moves no cursor and begins no row of its
// own. All else stays as it is, backslashes too, so that what is escaped already is not escaped again.
//
// Every line on stderr goes through it (Say); on stdout whoever composes a row for people does it for each cell
// that is not of our own making.
std::string Printable(std::string_view text);

}  // namespace reprise::cli
