// Why: a comparison is worth nothing if a contender cheats. Whatever its rules, a model may not hand out live
// memory, hold less than it has handed out, exceed its device, or depend on anything but its input.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "replay/models/models.h"
#include "replay/models/run_model.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {
namespace {

// Sizes around every boundary of the rules, on three streams, freed on any of them.
std::vector<profiler::Event> RandomJob(uint32_t seed, int count) {
  std::mt19937 random(seed);
  const int64_t sizes[] = {1,       511,           512,     513,      4096,           kMiB.count() - 1,
                           1 << 20, (1 << 20) + 1, 3 << 20, 10 << 20, (10 << 20) + 7, 33 << 20};
  std::vector<profiler::Event> events;
  std::vector<BlockId> live;
  uint64_t next = 0;
  for (int i = 0; i < count; ++i) {
    const Stream stream{random() % 3};
    if (live.size() < 3 || (random() % 2 == 0 && live.size() < 60)) {
      const Bytes bytes(sizes[random() % std::size(sizes)] + static_cast<int64_t>(random() % 3) * 700);
      live.push_back(BlockId{next});
      events.push_back({.id = BlockId{next++}, .bytes = bytes, .stream = stream});
    } else {
      const size_t victim = random() % live.size();
      events.push_back({.kind = profiler::EventKind::kFree, .id = live[victim], .stream = stream});
      live[victim] = live.back();
      live.pop_back();
    }
  }
  return events;
}

class Conformance : public testing::TestWithParam<const ModelInfo*> {
 protected:
  static std::unique_ptr<AllocatorModel> Make(Bytes capacity = Bytes(0)) {
    return GetParam()->make(capacity);
  }
};

TEST_P(Conformance, NeverHandsOutLiveMemory) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    for (const Bytes capacity : {Bytes(0), kMiB * 300}) {
      const auto model = Make(capacity);
      const ModelResult result = RunModel(RandomJob(seed, 3000), *model);
      EXPECT_EQ(result.overlaps, 0) << seed;
      EXPECT_EQ(result.ignored, 0) << seed;
      EXPECT_GT(result.driver_allocations, 0);
      if (capacity == Bytes(0)) {
        EXPECT_FALSE(result.failed_at.has_value());
      }
    }
  }
}

TEST_P(Conformance, HoldsWhatItHandsOutAndNoMoreThanThereIs) {
  constexpr Bytes kCapacity = kMiB * 120;
  const auto model = Make(kCapacity);
  std::map<BlockId, std::pair<Offset, Bytes>> live;
  Bytes requested;
  int refused = 0;
  for (const profiler::Event& event : RandomJob(7, 5000)) {
    if (event.kind == profiler::EventKind::kAlloc) {
      if (const auto offset = model->Allocate(event.bytes, event.stream)) {
        live[event.id] = {*offset, event.bytes};
        requested += event.bytes;
      } else {
        ++refused;
      }
    } else if (const auto it = live.find(event.id); it != live.end()) {
      EXPECT_TRUE(model->Free(it->second.first, event.stream));
      requested -= it->second.second;
      live.erase(it);
    }
    ASSERT_GE(model->allocated(), requested);
    ASSERT_GE(model->reserved(), model->allocated());
    ASSERT_LE(model->reserved(), kCapacity);
  }
  EXPECT_GT(refused, 0) << "the device was never full: nothing was tested";
  for (const auto& [id, block] : live) EXPECT_TRUE(model->Free(block.first, Stream{0}));
  EXPECT_EQ(model->allocated(), Bytes(0));
}

TEST_P(Conformance, AFreedBlockServesTheNextOfItsSize) {
  for (const int64_t size : {100, 5000, 2 << 20, 50 << 20}) {
    const auto model = Make();
    Bytes reserved;
    for (int i = 0; i < 10; ++i) {
      const auto offset = model->Allocate(Bytes(size), Stream{1});
      ASSERT_TRUE(offset.has_value());
      if (i == 0) reserved = model->reserved();
      model->Free(*offset, Stream{1});
    }
    EXPECT_EQ(model->reserved(), reserved);
    EXPECT_EQ(model->driver_allocations(), 1);
  }
}

TEST_P(Conformance, IgnoresFreesOfWhatIsNotLive) {
  const auto model = Make();
  EXPECT_FALSE(model->Free(Offset(12345), Stream{0}));
  const auto offset = model->Allocate(Bytes(4096), Stream{0});
  ASSERT_TRUE(offset.has_value());
  EXPECT_FALSE(model->Free(*offset + Bytes(1), Stream{0}));
  EXPECT_TRUE(model->Free(*offset, Stream{0}));
  EXPECT_FALSE(model->Free(*offset, Stream{0}));
  EXPECT_EQ(model->allocated(), Bytes(0));
}

TEST_P(Conformance, BlocksOfNoBytesAndUnknownFreesAreCounted) {
  const std::vector<profiler::Event> events = {{.id = BlockId{0}, .bytes = Bytes(0)},
                                               {.kind = profiler::EventKind::kFree, .id = BlockId{0}},
                                               {.kind = profiler::EventKind::kMark, .id = BlockId{1}},
                                               {.id = BlockId{2}, .bytes = Bytes(1)}};
  const auto model = Make();
  const ModelResult result = RunModel(events, *model);
  EXPECT_EQ(result.ignored, 2);
  EXPECT_EQ(result.driver_allocations, 1);
}

TEST_P(Conformance, GivesBackWhatItCachesBeforeItFails) {
  const auto model = Make(kMiB * 100);
  for (const Stream stream : {Stream{0}, Stream{1}}) {
    const auto small = model->Allocate(kMiB * 30, stream);
    ASSERT_TRUE(small.has_value());
    model->Free(*small, stream);
  }
  EXPECT_TRUE(model->Allocate(kMiB * 90, Stream{0}).has_value());
}

TEST_P(Conformance, ARefusalChangesNothing) {
  const auto model = Make(kMiB * 64);
  const auto kept = model->Allocate(kMiB * 20, Stream{0});
  ASSERT_TRUE(kept.has_value());
  const Bytes allocated = model->allocated();
  for (const Bytes size : {kMiB * 65, kGiB * 1024, Bytes(int64_t{1} << 62)}) {
    EXPECT_FALSE(model->Allocate(size, Stream{0}).has_value());
    EXPECT_EQ(model->allocated(), allocated);
  }
  EXPECT_TRUE(model->Allocate(kMiB * 20, Stream{0}).has_value());
  EXPECT_TRUE(model->Free(*kept, Stream{0}));
}

TEST_P(Conformance, SizesBeyondReasonAreRefusedWithoutALimit) {
  const auto model = Make();
  EXPECT_FALSE(model->Allocate(Bytes(int64_t{1} << 62), Stream{0}).has_value());
  EXPECT_TRUE(model->Allocate(kMiB, Stream{0}).has_value());
}

TEST_P(Conformance, FailureIsAnEvent) {
  EventScript script;
  script.Alloc(kMiB.count() * 30);
  script.Alloc(kMiB.count() * 80);
  script.Alloc(1);
  const auto model = Make(kMiB * 100);
  EXPECT_EQ(RunModel(script.events(), *model).failed_at, 1);
}

TEST_P(Conformance, TheSameInputGivesTheSameResult) {
  const auto events = RandomJob(3, 2000);
  const auto first = Make(), second = Make();
  const ModelResult a = RunModel(events, *first), b = RunModel(events, *second);
  EXPECT_EQ(a.reserved_peak, b.reserved_peak);
  EXPECT_EQ(a.driver_allocations, b.driver_allocations);
}

TEST_P(Conformance, OneRequestAddsNoMoreThanIsSaidOfTheModel) {
  const auto model = Make();
  Bytes most;
  for (const profiler::Event& event : RandomJob(4, 3000)) {
    if (event.kind != profiler::EventKind::kAlloc) continue;
    const Bytes before = model->reserved();
    ASSERT_TRUE(model->Allocate(event.bytes, event.stream).has_value());
    most = std::max(most, model->reserved() - before - event.bytes);
  }
  EXPECT_GT(most, Bytes(0));
  EXPECT_LE(most, GetParam()->most_added);
}

std::vector<const ModelInfo*> All() {
  std::vector<const ModelInfo*> all;
  for (const ModelInfo& info : Models()) all.push_back(&info);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Conformance, testing::ValuesIn(All()), [](const auto& info) {
  std::string name(info.param->name);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
});

}  // namespace
}  // namespace reprise::replay
