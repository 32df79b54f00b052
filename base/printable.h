// Text that others wrote, for a terminal: names in files and of files.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reprise {

// `text` with each control character as in a C string: one line, which moves no cursor and begins no row of its
// own. All else stays as it is, backslashes too, so that what is escaped already is not escaped again.
//
// Every line on stderr goes through it (the command's Say, the core's Log); on stdout, and in the core's summary,
// whoever composes a row for people does it for each cell that is not of our own making.
std::string Printable(std::string_view text);

// The same into `room`, as much of it as that has room for, no character in part. What of `room` it takes. Asks for no memory.
size_t PutPrintable(std::string_view text, std::span<char> room);

}  // namespace reprise
