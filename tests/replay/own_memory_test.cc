// Why: the core's tables lie in the job's own process. A long job whose blocks never come to the same place
// twice touches all of them, and what they take then is taken from every job on the machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/ranges.h"
#include "replay/stream_order.h"
#include "tests/process.h"

namespace reprise::replay {
namespace {

constexpr uint32_t kUnits = 1 << 28;
constexpr Bytes kAddresses = kUnit * kUnits;
constexpr int kBlocks = 200'000;  // nearly each in a page of its own, were there an entry for each unit

// Both cost at most this share of the addresses that they are for, once every one has been used.
constexpr int64_t kShare = 256;

TEST(OwnMemory, OfRanges) {
  const Bytes before = ResidentBytes();
  Ranges ranges(0, kUnits);
  ASSERT_TRUE(ranges.ok());
  ranges.SetBarrier(kUnits);
  std::mt19937_64 random(1);
  for (int i = 0; i < kBlocks; ++i) {
    const Ranges::Index block = ranges.TakeAt(static_cast<uint32_t>(random() % kUnits), 1);
    ASSERT_NE(block, Ranges::kNone);
    ranges.Release(block);
  }
  EXPECT_LT((ResidentBytes() - before).count(), kAddresses.count() / kShare);
}

class NoEvents : public StreamEvents {
 public:
  Event Record(Stream) override { return nullptr; }
  bool Wait(Stream, Event) override { return false; }
  bool Complete(Event) override { return false; }
  void Recycle(Stream, Event) override {}
};

TEST(OwnMemory, OfTheOrderOfTwoStreams) {
  const Bytes before = ResidentBytes();
  NoEvents events;
  StreamOrder order(kUnits, 13, &events);
  ASSERT_TRUE(order.ok());
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    const auto begin = static_cast<uint32_t>(random() % kUnits);
    order.Freed(begin, begin + 1, Stream{i % 2}, /*record=*/false);
  }
  EXPECT_LT((ResidentBytes() - before).count(), kAddresses.count() / kShare);
}

// A job with very many streams has each wait for few of them.
TEST(OwnMemory, OfTheOrderOfManyStreams) {
  constexpr uint64_t kStreams = 5000;
  class Events : public NoEvents {
    Event Record(Stream) override { return this; }
    bool Wait(Stream, Event) override { return true; }
  };
  const Bytes before = ResidentBytes();
  Events events;
  StreamOrder order(kUnits, 13, &events);
  ASSERT_TRUE(order.ok());
  order.Ask(0, 1, Stream{kStreams});  // so that none is alone
  for (uint64_t i = 0; i < kStreams; ++i) {
    order.Ask(0, 1, Stream{i});
    ASSERT_TRUE(order.Wait(0, 1, Stream{i}));
    order.Freed(0, 1, Stream{i}, /*record=*/true);
  }
  EXPECT_EQ(order.counters().waits, static_cast<int64_t>(kStreams) - 1);
  EXPECT_LT((ResidentBytes() - before).count(), static_cast<int64_t>(kStreams) * 2048);
}

// The more threads, the less each one's sequence may hold; what the device's holds is left out of this.
TEST(OwnMemory, OfThreads) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps what has been freed";
#endif
  constexpr int kThreads = 16;
  constexpr int64_t kEach = 70'000;
  InlineRunner runner;
  Engine::Options options;
  options.plan = false;
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(
      options, std::make_unique<CountedMemory>(Bytes(2 << 20), Bytes(int64_t{1} << 30)), &runner);
  ASSERT_TRUE(engine.ok());
  const Engine::Guard guard = (*engine)->Lock();
  std::mt19937_64 random(1);
  const auto play = [&](uint64_t threads, int64_t requests) {
    for (int64_t i = 0; i < requests; ++i) {
      const Bytes bytes(4096 + static_cast<int64_t>(random() % 1'000'000));
      const uint64_t thread = static_cast<uint64_t>(i) % threads;
      const Offset at =
          (*engine)->Allocate(guard, {.bytes = bytes, .alignment = Bytes(64), .thread = thread});
      (*engine)->Free(guard, at, Stream{});
    }
  };
  play(1, kThreads * kEach);
  const Bytes before = ResidentBytes();
  play(kThreads, kThreads * kEach);
  EXPECT_LT((ResidentBytes() - before).count(), kThreads * int64_t{6 << 20});
}

}  // namespace
}  // namespace reprise::replay
