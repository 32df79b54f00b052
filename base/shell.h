// Words for a command line that somebody will paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace reprise {

// A word that a shell reads back as one word with the same bytes.
std::string ShellQuoted(std::string_view word);

// The same for the name of a file, which a command does not take for an option of its own.
std::string QuotedFile(std::string_view name);

}  // namespace reprise
