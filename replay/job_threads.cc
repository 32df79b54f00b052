#include "replay/job_threads.h"

#include <algorithm>
#include <utility>

namespace reprise::replay {
namespace {

// Threads beyond these share the last one's place, unless one has not been heard of for so many requests.
constexpr size_t kMostThreads = 64;
constexpr int64_t kSilence = 1 << 16;
// Allocations of its own that a thread's sequence remembers at most: 4 MiB, so that all of them together are
// not much more than the device's own (profiler/period_finder.h, profiler/iteration.h).
constexpr int64_t kTokensOfThread = 1 << 16;

}  // namespace

JobThreads::JobThreads(profiler::PeriodFinder::Options period, Sequence::Rules rules)
    : period_(period), rules_(rules) {
  period_.max_tokens = std::min(period_.max_tokens, kTokensOfThread);
}

uint16_t JobThreads::Find(uint64_t number, int64_t request, Tick tokens) {
  if (threads_.empty()) {
    if (!first_.has_value()) first_ = number;
    if (number == *first_) return 0;
    Add(*first_);
    threads_[0].recent = recent_tokens_ = std::min(tokens.count(), kRecentTokens / 2);
  }
  if (threads_[latest_].number == number) return latest_;
  threads_[latest_].heard_at = request;
  size_t i = 0;
  while (i < threads_.size() && threads_[i].number != number) ++i;
  if (i == kMostThreads) {
    i = TakeOver(number, request);
  } else if (i == threads_.size()) {
    Add(number);
  }
  latest_ = static_cast<uint16_t>(i);
  return latest_;
}

// A thread that has not been heard of for long has probably ended, and the new one may do what it did.
uint16_t JobThreads::TakeOver(uint64_t number, int64_t request) {
  const auto oldest = std::ranges::min_element(threads_, {}, &Thread::heard_at);
  if (request - oldest->heard_at < kSilence) return kMostThreads - 1;
  oldest->number = number;
  return static_cast<uint16_t>(oldest - threads_.begin());
}

void JobThreads::Add(uint64_t number) {
  Thread thread{.number = number};
  thread.sequence = std::make_unique<Sequence>(period_, rules_);
  threads_.push_back(std::move(thread));  // with all it needs, or not at all
}

void JobThreads::CountToken(Thread& thread) {
  ++thread.recent;
  if (++recent_tokens_ < kRecentTokens) return;
  recent_tokens_ = 0;
  for (Thread& each : threads_) recent_tokens_ += each.recent /= 2;
}

bool JobThreads::MostRepeats() const {
  int64_t repeating = 0;
  for (const Thread& each : threads_) repeating += each.Repeats() ? each.recent : 0;
  return 2 * repeating >= recent_tokens_;
}

}  // namespace reprise::replay
