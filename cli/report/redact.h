// Takes out of an input what tells who ran what, where: for reports that leave the house.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli/input.h"

namespace reprise::cli {

// Gives equal texts one name each.
class StandIns {
 public:
  explicit StandIns(std::string_view what) : what_(what) {}
  std::string Of(const std::string& text);

 private:
  std::string_view what_;
  std::map<std::string, size_t> numbers_;
};

// The same names for the same things in all that it is given: traces of a job's ranks can still be compared.
class Redactor {
 public:
  void Redact(profiler::Trace& trace);
  std::string Host(const std::string& host) { return hosts_.Of(host); }

 private:
  StandIns files_{"file"}, functions_{"function"}, libraries_{"library"}, hosts_{"host"};
};

// Paths, functions and libraries become numbered names, the same one everywhere in this input; whether a file
// is an installed package's stays visible, so that sites are the same frames as before. Command, host, file
// name and names of lifetimes go. Sizes, times, lines and streams stay, and what the reader notes of them.
void Redact(LoadedInput& input);

}  // namespace reprise::cli
