#include "replay/core/interim_summary.h"

#include <algorithm>

namespace reprise::replay {

int64_t InterimSummary::NsUntilNext(int64_t run_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  return std::clamp(run_ns / 8, kSecond, 600 * kSecond);
}

// One that cannot be written now, as no thread can be had, is written when the next is due.
void InterimSummary::Write(int64_t now) {
  if (writing_.exchange(true)) return;
  due_ = now + NsUntilNext(now - begun_);
  const bool begun = runner_.TryRun([this] {
    write_();
    writing_ = false;
  });
  if (!begun) writing_ = false;
}

}  // namespace reprise::replay
