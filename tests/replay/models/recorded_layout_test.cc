// Why: that a model's peak is near the real one may be luck. So the model of PyTorch's allocator continues
// from the layout that a real job's snapshot records, and has to put every block of the history at the very
// address where the real allocator put it. Needs the bench data (REPRISE_BENCH).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/load.h"
#include "replay/models/run_model.h"
#include "replay/models/torch_native.h"
#include "replay/models/torch_sizes.h"

namespace reprise::replay {
namespace {

using profiler::EventKind;

struct LiveBlock {
  Bytes size;  // as the allocator holds it, if known
  bool is_known = false;
};

// The blocks live when the history begins, by address. Of those that are still live at its end the segments
// say how large they are; of the others only what was asked for is known.
std::map<Offset, LiveBlock> LiveAtBegin(const profiler::Input& input) {
  std::map<Offset, LiveBlock> live;
  for (size_t i = 0; i < input.snapshot.live_at_begin; ++i) {
    live[input.snapshot.addresses[i]] = {TorchRounded(input.trace.events[i].bytes), false};
  }
  absl::flat_hash_map<uint64_t, bool> freed;
  for (const profiler::Event& event : input.trace.events) {
    if (event.kind == EventKind::kFree) freed[static_cast<uint64_t>(event.id)] = true;
  }
  std::map<Offset, Bytes> at_end;
  for (const profiler::SnapshotSegment& segment : input.snapshot.segments) {
    for (const profiler::SnapshotBlock& block : segment.live) at_end[block.address] = block.size;
  }
  for (size_t i = 0; i < input.snapshot.live_at_begin; ++i) {
    if (freed.contains(static_cast<uint64_t>(input.trace.events[i].id))) continue;
    live[input.snapshot.addresses[i]] = {at_end.at(input.snapshot.addresses[i]), true};
  }
  return live;
}

// A segment as it was when the history began. A rest of at most 1 MiB is never split from a large block, so
// such a gap behind one belongs to it.
std::vector<TorchNative::Placed> BlocksOf(const profiler::SnapshotSegment& segment,
                                          const std::map<Offset, LiveBlock>& live) {
  std::vector<TorchNative::Placed> blocks;
  const Offset end = segment.address + segment.size;
  for (auto it = live.lower_bound(segment.address); it != live.end() && it->first < end; ++it) {
    const auto next = std::next(it);
    const Offset limit = next != live.end() && next->first < end ? next->first : end;
    Bytes size = it->second.size;
    if (!segment.small && !it->second.is_known && limit - (it->first + size) <= kTorchMostSmall)
      size = limit - it->first;
    blocks.push_back({it->first, size});
  }
  return blocks;
}

TEST(RecordedLayout, EveryBlockLiesWhereTheRealAllocatorPutIt) {
  const char* bench = std::getenv("REPRISE_BENCH");
  if (bench == nullptr) GTEST_SKIP() << "REPRISE_BENCH is not set: no snapshot to compare with";
  const auto input = profiler::Load(std::string(bench) + "/snapshots/gpt_medium_ctx128.pickle");
  ASSERT_TRUE(input.ok()) << input.status();
  const profiler::Snapshot& snapshot = input->snapshot;
  ASSERT_EQ(snapshot.segment_changes, 0) << "the segments at the begin are not those at the end";

  TorchNative model(Bytes(0));
  const auto live = LiveAtBegin(*input);
  for (const profiler::SnapshotSegment& segment : snapshot.segments) {
    model.AdoptSegment(segment.address, segment.size, segment.stream, BlocksOf(segment, live));
  }
  ASSERT_EQ(model.reserved(), snapshot.reserved_at_begin);

  int64_t blocks = 0, elsewhere = 0;
  absl::flat_hash_map<uint64_t, Offset> placed;
  for (size_t i = 0; i < input->trace.events.size(); ++i) {
    const profiler::Event& event = input->trace.events[i];
    if (i < snapshot.live_at_begin) {
      placed[static_cast<uint64_t>(event.id)] = snapshot.addresses[i];
    } else if (event.kind == EventKind::kAlloc) {
      const auto offset = model.Allocate(event.bytes, event.stream);
      ASSERT_TRUE(offset.has_value());
      placed[static_cast<uint64_t>(event.id)] = *offset;
      ++blocks;
      if (*offset != snapshot.addresses[i] && ++elsewhere == 1) {
        ADD_FAILURE() << "event " << i << ": " << event.bytes.count() << " bytes at " << offset->count()
                      << ", really at " << snapshot.addresses[i].count();
      }
    } else {
      ASSERT_TRUE(model.Free(placed.at(static_cast<uint64_t>(event.id)), event.stream)) << "event " << i;
    }
  }
  EXPECT_EQ(elsewhere, 0) << "of " << blocks;
  EXPECT_GT(blocks, 6000);
  EXPECT_EQ(model.reserved(), snapshot.reserved_at_end);
  EXPECT_EQ(model.driver_allocations(), 0);
}

// From nothing, as `reprise compare` replays it: where blocks lay before the history is not known then.
TEST(RecordedLayout, FromNothingTheReservedPeakIsWithin2Percent) {
  const char* bench = std::getenv("REPRISE_BENCH");
  if (bench == nullptr) GTEST_SKIP() << "REPRISE_BENCH is not set: no snapshot to compare with";
  const auto input = profiler::Load(std::string(bench) + "/snapshots/gpt_medium_ctx128.pickle");
  ASSERT_TRUE(input.ok()) << input.status();
  TorchNative model(Bytes(0));
  const ModelResult result = RunModel(input->trace.events, model);
  const auto recorded = static_cast<double>(input->snapshot.reserved_peak.count());
  EXPECT_NEAR(static_cast<double>(result.reserved_peak.count()) / recorded, 1.0, 0.02);
}

}  // namespace
}  // namespace reprise::replay
