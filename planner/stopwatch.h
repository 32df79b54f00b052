// How long something has taken.
#pragma once

#include <chrono>

namespace reprise::planner {

class Stopwatch {
 public:
  // Since it was made.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace reprise::planner
