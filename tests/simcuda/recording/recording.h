// What the recording driver was asked.
#pragma once

#include <string>
#include <vector>

struct Asked {
  std::string name;
  int version = 0;
  unsigned long long flags = 0;
};

const std::vector<Asked>& AllAsked();
