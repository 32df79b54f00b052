#include "replay/cuda/capture_table.h"

#include <algorithm>

namespace reprise::replay::cuda {

bool CaptureTable::Add(Capture capture) {
  const std::lock_guard lock(mutex_);
  capture.number = ++last_;
  const auto known = std::ranges::find(captures_, capture.origin, &Capture::origin);
  if (known == captures_.end()) {
    captures_.push_back(capture);
    return true;
  }
  *known = capture;
  return false;
}

bool CaptureTable::Take(const StreamKey& origin) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(captures_, [&](const Capture& c) { return c.origin == origin; }) > 0;
}

template <typename IsIt>
std::vector<uint64_t> CaptureTable::Those(IsIt is_it) {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const Capture& capture : captures_) {
    if (is_it(capture)) numbers.push_back(capture.number);
  }
  return numbers;
}

std::vector<uint64_t> CaptureTable::InStream(const StreamKey& origin) {
  return Those([&](const Capture& c) { return c.origin == origin; });
}

std::vector<uint64_t> CaptureTable::InContext(cu_context context) {
  return Those([&](const Capture& c) { return c.context == context; });
}

int CaptureTable::Drop(const std::vector<uint64_t>& numbers) {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::erase_if(
      captures_, [&](const Capture& c) { return std::ranges::find(numbers, c.number) != numbers.end(); }));
}

}  // namespace reprise::replay::cuda
