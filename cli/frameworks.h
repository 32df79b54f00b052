// The variables by which a framework is told to ask the driver for every tensor. Left to itself it asks for
// large segments and divides them out of our sight.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace reprise::cli {

struct Choice {
  std::string framework;
  std::string variable;  // NAME=VALUE
  std::string meaning;   // what is caught of the framework under it
  bool caught = false;
};

// What a job on CUDA is given. A framework about which the user has said anything keeps what it has.
std::map<std::string, std::string> FrameworkVariables();

// What to set where a device has no memory pools, which what a job is given needs.
std::string InsteadOfPools();

// What to say of a job that has failed with those; empty: nothing of it can be why.
std::string WhatOursMayCost();

// What the user has set.
std::vector<Choice> FrameworkChoices();

// Whether a summary.json says of a device that only whole segments were seen on it.
bool SawOnlySegments(const std::string& summary_json);

// What to do about it, a line each.
std::vector<std::string> SegmentsAdvice();

}  // namespace reprise::cli
