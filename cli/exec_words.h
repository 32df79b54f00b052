// A command's words as exec and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

// They point into `words`, which neither writes to, and end with null.
inline std::vector<char*> ExecWords(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace reprise::cli
