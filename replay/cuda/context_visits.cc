#include "replay/cuda/context_visits.h"

#include <algorithm>

#include "base/not_cancelled.h"
#include "replay/core/trace.h"

namespace reprise::replay::cuda {

ContextVisits::Visit ContextVisits::Begin(cu_context context) {
  const std::lock_guard lock(mutex_);
  visited_.push_back(context);
  return Visit(context, {this});
}

ContextVisits::Visit ContextVisits::TryBegin(cu_context context) {
  const std::lock_guard lock(mutex_);
  if (EndsElsewhere(context)) return {};
  visited_.push_back(context);
  return Visit(context, {this});
}

void ContextVisits::EndVisit(cu_context context) {
  const std::lock_guard lock(mutex_);
  visited_.erase(std::ranges::find(visited_, context));
  visit_over_.notify_all();
}

void ContextVisits::Await(cu_context context) {
  std::unique_lock lock(mutex_);
  visit_over_.wait(lock, [&] { return std::ranges::find(visited_, context) == visited_.end(); });
}

// This very thread may come again, from a callback in the driver's call.
bool ContextVisits::EndsElsewhere(cu_context context) const {
  return std::ranges::any_of(ending_, [&](const auto& ending) {
    return ending.first == context && ending.second != ThreadNumber();
  });
}

ContextVisits::Ending ContextVisits::BeginEnding(cu_context context) {
  std::unique_lock lock(mutex_);
  ending_over_.wait(lock, [&] { return !EndsElsewhere(context); });
  if (context == nullptr) return {};
  ending_.emplace_back(context, ThreadNumber());
  return Ending(context, {this});
}

void ContextVisits::AwaitEnding(cu_context context) {
  const NotCancelled not_cancelled;
  std::unique_lock lock(mutex_);
  ending_over_.wait(lock, [&] { return !EndsElsewhere(context); });
}

void ContextVisits::EndEnding(cu_context context) {
  const std::lock_guard lock(mutex_);
  ending_.erase(std::ranges::find(ending_, std::pair(context, ThreadNumber())));
  ending_over_.notify_all();
}

}  // namespace reprise::replay::cuda
