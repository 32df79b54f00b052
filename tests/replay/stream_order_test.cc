// Which stream may use which free memory is law 2: a range handed to another stream without a wait for the
// event recorded at its free is a corrupted tensor, and a wait for any later event may be for ever.
#include "replay/stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace reprise::replay {
namespace {

using Reuse = StreamOrder::Reuse;
using Spares = StreamOrder::Spares;

constexpr Stream kA{0};
constexpr Stream kB{1};
constexpr Stream kC{2};

// A device that completes what it is told to, and notes what it was asked.
class FakeEvents : public StreamEvents {
 public:
  Event Record(Stream stream) override { return capturing ? nullptr : RecordLast(stream); }
  Event RecordLast(Stream stream) override {
    if (refused.count(stream) != 0) return nullptr;
    records.push_back(stream);
    return reinterpret_cast<Event>(records.size());
  }
  bool Finished(Stream stream) override {
    ++asked;
    return finished.count(stream) != 0;
  }
  bool Wait(Stream stream, Event event) override {
    waits.emplace_back(stream, reinterpret_cast<size_t>(event));
    return waits_work;
  }
  bool Complete(Event event) override {
    ++asked;
    return reinterpret_cast<size_t>(event) <= complete;
  }
  bool Await(Event event) override {
    if (can_be_awaited) complete = std::max(complete, reinterpret_cast<size_t>(event));
    return Complete(event);
  }
  void Recycle(Stream, Event) override { ++recycled; }

  std::vector<Stream> records;  // by event - 1
  std::vector<std::pair<Stream, size_t>> waits;
  std::set<Stream> refused;
  std::set<Stream> finished;
  size_t complete = 0;  // events up to this one
  int recycled = 0;
  size_t asked = 0;
  bool capturing = false;  // nothing is recorded but in a stream that ends
  bool waits_work = true;
  bool can_be_awaited = true;
};

class Order : public testing::Test {
 protected:
  static constexpr uint32_t kUnits = 4096;
  static constexpr int kGranuleShift = 6;

  Reuse Ask(uint32_t begin, uint32_t end, Stream stream) { return order_.Ask(begin, end, stream).reuse; }
  // Both streams have been seen.
  void MeetBoth() {
    Ask(0, 1, kA);
    Ask(0, 1, kB);
  }

  FakeEvents events_;
  StreamOrder order_{kUnits, kGranuleShift, &events_};
};

TEST_F(Order, OneStreamAloneNeedsNothing) {
  order_.Freed(10, 20, kA, /*record=*/true);
  EXPECT_EQ(Ask(0, 100, kA), Reuse::kFree);
  EXPECT_TRUE(events_.records.empty());
}

TEST_F(Order, AnotherStreamWaitsForTheEventOfThatFree) {
  MeetBoth();
  order_.Freed(10, 20, kA, /*record=*/true);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kWait);
  EXPECT_EQ(Ask(0, 10, kB), Reuse::kFree);
  EXPECT_EQ(Ask(20, 30, kB), Reuse::kFree);
  EXPECT_TRUE(order_.Wait(15, 30, kB));
  ASSERT_EQ(events_.waits.size(), 1u);
  EXPECT_EQ(events_.waits[0], std::make_pair(kB, size_t{1}));
}

TEST_F(Order, OneWaitCoversAllEarlierFreesOfThatStream) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  order_.Freed(20, 30, kA, true);
  EXPECT_TRUE(order_.Wait(20, 30, kB));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
  EXPECT_EQ(Ask(10, 20, kC), Reuse::kWait) << "a third stream has waited for nothing";
}

TEST_F(Order, OfEachStreamOneEventIsWaitedForHoweverManyFreesThereWere) {
  MeetBoth();
  for (uint32_t i = 0; i < 10; ++i) order_.Freed(10 * i, 10 * i + 10, i % 2 == 0 ? kA : kB, true);
  ASSERT_EQ(Ask(0, 100, kC), Reuse::kWait);
  EXPECT_TRUE(order_.Wait(0, 100, kC));
  EXPECT_THAT(events_.waits, testing::UnorderedElementsAre(std::pair(kC, 9), std::pair(kC, 10)));
  EXPECT_EQ(Ask(0, 100, kC), Reuse::kFree);
  EXPECT_EQ(order_.counters().waits, 2);
}

TEST_F(Order, AWaitCoversNoLaterFree) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  EXPECT_TRUE(order_.Wait(10, 20, kB));
  order_.Freed(20, 30, kA, true);
  EXPECT_EQ(Ask(20, 30, kB), Reuse::kWait);
}

TEST_F(Order, WhatTheOnlyStreamHasFreedAtTheEndIsKnownToOthers) {
  order_.Freed(kUnits - 10, kUnits, kA, true);
  MeetBoth();
  EXPECT_NE(Ask(kUnits - 10, kUnits, kB), Reuse::kFree);
}

TEST_F(Order, AnAbandonedStreamsSuccessorHasWaitedForNothing) {
  MeetBoth();
  order_.Freed(10, 20, kB, true);
  EXPECT_TRUE(order_.Wait(10, 20, kA));
  order_.Abandon(kA);
  EXPECT_EQ(Ask(10, 20, kA), Reuse::kWait);
}

TEST_F(Order, AnAbandonedStreamsEventsAreNotAskedAnyMore) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  order_.Abandon(kA);
  events_.complete = 1;
  order_.Refresh();
  EXPECT_EQ(events_.recycled, 0) << "they went with their context";
}

TEST_F(Order, WhatIsCompleteStaysSo) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  order_.Freed(20, 30, kA, false);
  order_.Completed({{kA, 2}});
  order_.Completed({{kA, 1}});
  EXPECT_EQ(Ask(10, 30, kB), Reuse::kFree);
}

TEST_F(Order, WithoutItsOwnEventAFreeIsNotWaitedFor) {
  MeetBoth();
  order_.Freed(10, 20, kA, /*record=*/false);
  order_.Freed(20, 30, kA, /*record=*/true);  // later: what was queued in between may wait for kB itself
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
  EXPECT_EQ(Ask(20, 30, kB), Reuse::kWait);
  EXPECT_EQ(order_.Ask(5, 30, kB).wait_from, 20u);
  EXPECT_EQ(order_.Ask(5, 30, kB).free_from, 30u);
}

TEST_F(Order, ALaterEventThatIsCompleteIsEnough) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  order_.Freed(20, 30, kA, true);
  events_.complete = 1;
  order_.Refresh();
  EXPECT_EQ(Ask(10, 30, kB), Reuse::kFree);
  EXPECT_TRUE(order_.Idle(10, 30));
}

TEST_F(Order, AStreamIsQuietOnceAllItsFreesAreComplete) {
  MeetBoth();
  EXPECT_TRUE(order_.Quiet(kA));
  order_.Freed(10, 20, kA, /*record=*/true);
  EXPECT_FALSE(order_.Quiet(kA));
  EXPECT_TRUE(order_.Quiet(kB));
  events_.complete = 1;
  order_.Refresh();
  EXPECT_TRUE(order_.Quiet(kA));
  EXPECT_TRUE(order_.Quiet(kC)) << "nobody has met it";
}

TEST_F(Order, RefreshRecordsWhereNothingElseWouldTell) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  order_.Refresh();
  ASSERT_EQ(events_.records.size(), 1u);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet) << "recorded after the free: not to be waited for";
  EXPECT_FALSE(order_.Idle(10, 20));
  order_.Refresh();
  EXPECT_EQ(events_.records.size(), 1u) << "one is enough";
  events_.complete = 1;
  order_.Refresh();
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
  EXPECT_EQ(events_.recycled, 1);
}

TEST_F(Order, WhatWasFreedBeforeTheSecondStreamCameIsRemembered) {
  order_.Freed(10, 20, kA, true);
  order_.Freed(1000, 1010, kA, true);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
  EXPECT_EQ(Ask(1000, 1010, kB), Reuse::kNotYet);
  EXPECT_EQ(Ask(500, 600, kB), Reuse::kFree) << "a granule that nobody ever used";
  EXPECT_EQ(Ask(10, 20, kA), Reuse::kFree);
}

TEST_F(Order, BlocksWithoutAStreamNeedCompleteWork) {
  order_.Freed(10, 20, kA, true);
  EXPECT_EQ(Ask(10, 20, kEveryStream), Reuse::kNotYet) << "with one stream";
  MeetBoth();
  order_.Freed(100, 120, kA, true);
  EXPECT_EQ(Ask(100, 120, kEveryStream), Reuse::kNotYet) << "with two, though an event could be waited for";
  order_.Completed(order_.Take({kA}));
  EXPECT_EQ(Ask(10, 20, kEveryStream), Reuse::kFree);
  EXPECT_EQ(Ask(100, 120, kEveryStream), Reuse::kFree);
}

TEST_F(Order, BlocksWithoutAStreamHaveWhatTheOnlyOneHasFinished) {
  order_.Freed(10, 20, kA, true);
  order_.Freed(kUnits - 20, kUnits, kA, true);
  order_.Completed(order_.Take({kA}));
  EXPECT_EQ(Ask(10, 20, kEveryStream), Reuse::kFree);
  EXPECT_EQ(Ask(kUnits - 20, kUnits, kEveryStream), Reuse::kFree);
  order_.Freed(64, 128, kA, true);  // a whole granule, of those on either side nothing
  EXPECT_EQ(Ask(0, 64, kEveryStream), Reuse::kFree);
  EXPECT_EQ(Ask(64, 65, kEveryStream), Reuse::kNotYet);
  EXPECT_EQ(Ask(128, 192, kEveryStream), Reuse::kFree);
}

TEST_F(Order, BlocksWithoutAStreamNeedCompleteWorkWhateverTheirNumber) {
  MeetBoth();
  order_.Freed(100, 120, kA, true);
  for (uint64_t number = static_cast<uint64_t>(kEveryStream); IsEveryStream(Stream{number}); ++number)
    ASSERT_EQ(Ask(100, 120, Stream{number}), Reuse::kNotYet) << number;
}

TEST_F(Order, WhatIsFreedAfterASnapshotIsNotCompletedByIt) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  const StreamOrder::Snapshot before = order_.Take({kA});
  order_.Freed(20, 30, kA, false);
  order_.Completed(before);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
  EXPECT_EQ(Ask(20, 30, kB), Reuse::kNotYet);
}

TEST_F(Order, AWaitForSomeStreamsCompletesNoOthers) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  order_.Freed(20, 30, kB, false);
  order_.Completed(order_.Take({kB, kC}));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
  EXPECT_EQ(Ask(20, 30, kA), Reuse::kFree);
}

TEST_F(Order, ALaterFreeTakesThePlaceOfEarlierOnes) {
  MeetBoth();
  order_.Freed(0, 100, kA, true);
  order_.Freed(40, 60, kB, true);
  EXPECT_EQ(Ask(40, 60, kB), Reuse::kFree);
  EXPECT_EQ(Ask(40, 60, kA), Reuse::kWait);
  EXPECT_EQ(Ask(0, 40, kA), Reuse::kFree);
  EXPECT_EQ(Ask(60, 100, kA), Reuse::kFree);
  EXPECT_EQ(Ask(60, 61, kB), Reuse::kWait);
  order_.Freed(30, 70, kB, true);
  EXPECT_EQ(Ask(30, 70, kB), Reuse::kFree);
  EXPECT_EQ(Ask(29, 30, kB), Reuse::kWait);
  EXPECT_EQ(Ask(70, 71, kB), Reuse::kWait);
}

TEST_F(Order, AStreamThatIsGoneIsQuietOnceItsWorkIs) {
  MeetBoth();
  order_.Freed(10, 20, kA, false);
  order_.Retire(kA);
  EXPECT_FALSE(order_.Quiet(kA));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
  events_.complete = 1;  // recorded when it was retired
  order_.Refresh();
  EXPECT_TRUE(order_.Quiet(kA));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
}

TEST_F(Order, AStreamThatIsGoneWithoutAnEventIsNotQuietUntilItsContextIsWaitedFor) {
  MeetBoth();
  events_.refused = {kA};
  order_.Freed(10, 20, kA, true);
  order_.Retire(kA);
  order_.Refresh();
  EXPECT_FALSE(order_.Quiet(kA));
  order_.Completed(order_.Take({kA}));
  EXPECT_TRUE(order_.Quiet(kA));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
}

TEST_F(Order, AStreamThatHasFinishedIsQuietWhenItIsGone) {
  MeetBoth();
  events_.finished = {kA};
  order_.Freed(10, 20, kA, false);
  order_.Retire(kA);
  EXPECT_TRUE(order_.Quiet(kA));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
  EXPECT_TRUE(events_.records.empty());
}

TEST_F(Order, AStreamThatEndsWhileAnotherIsCapturedIsQuietOnceItsWorkIs) {
  MeetBoth();
  events_.capturing = true;
  order_.Freed(10, 20, kA, true);
  order_.Retire(kA);
  events_.complete = 1;
  order_.Refresh();
  EXPECT_TRUE(order_.Quiet(kA));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
}

TEST_F(Order, WhatAStreamHasWaitedForItsSuccessorHasNot) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  ASSERT_TRUE(order_.Wait(10, 20, kB));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
  order_.Retire(kB);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kWait);
}

TEST_F(Order, AnEventThatCannotBeRecordedMeansNotYet) {
  MeetBoth();
  events_.refused = {kA};
  order_.Freed(10, 20, kA, true);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
  order_.Refresh();
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kNotYet);
}

TEST_F(Order, AWaitThatFailsIsSaid) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  events_.waits_work = false;
  EXPECT_FALSE(order_.Wait(10, 20, kB));
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kWait) << "and not remembered as done";
}

TEST_F(Order, AnAbandonedStreamIsOver) {
  MeetBoth();
  order_.Freed(10, 20, kA, true);
  order_.Abandon(kA);
  EXPECT_EQ(Ask(10, 20, kB), Reuse::kFree);
}

TEST_F(Order, WhatIsCompleteIsForgotten) {
  MeetBoth();
  for (uint32_t unit = 0; unit < 100; ++unit) order_.Freed(unit, unit + 1, kA, /*record=*/true);
  EXPECT_EQ(Ask(0, 100, kB), Reuse::kWait);
  EXPECT_EQ(order_.marks(), 100);
  events_.complete = events_.records.size();
  order_.Refresh();
  EXPECT_EQ(Ask(20, 100, kB), Reuse::kFree);
  EXPECT_EQ(order_.marks(), 20) << "nobody has asked about those";
  EXPECT_TRUE(order_.Idle(0, 20));
  EXPECT_EQ(order_.marks(), 0);
}

// However much one stream frees while the device is busy, others do not go through it free by free.
TEST_F(Order, FreesSideBySideThatNothingTellsApartAreOneMark) {
  MeetBoth();
  for (uint32_t unit = 0; unit < 100; unit += 2) order_.Freed(unit, unit + 1, kA, /*record=*/false);
  EXPECT_EQ(order_.marks(), 50);
  for (uint32_t unit = 1; unit < 100; unit += 2) order_.Freed(unit, unit + 1, kA, /*record=*/false);
  EXPECT_EQ(order_.marks(), 1);
  order_.Freed(40, 60, kA, /*record=*/false);
  EXPECT_EQ(order_.marks(), 1) << "what was used again";
  order_.Freed(100, 101, kB, /*record=*/false);
  EXPECT_EQ(order_.marks(), 2) << "another stream's";
  EXPECT_EQ(Ask(0, 100, kB), Reuse::kNotYet);
  EXPECT_EQ(Ask(0, 100, kA), Reuse::kFree);
  EXPECT_EQ(order_.Ask(0, 200, kC).free_from, 101u);
}

TEST_F(Order, FreesThatAnEventTellsApartKeepTheirMarks) {
  MeetBoth();
  order_.Freed(0, 1, kA, /*record=*/false);
  order_.Freed(1, 2, kA, /*record=*/true);
  order_.Freed(2, 3, kA, /*record=*/false);
  order_.Refresh();  // records another
  order_.Freed(3, 4, kA, /*record=*/false);
  EXPECT_EQ(order_.marks(), 4);
  EXPECT_EQ(Ask(0, 1, kB), Reuse::kNotYet) << "the event was recorded later";
  EXPECT_EQ(Ask(1, 2, kB), Reuse::kWait);
  events_.complete = 2;
  order_.Refresh();
  EXPECT_EQ(Ask(0, 3, kB), Reuse::kFree);
  EXPECT_EQ(Ask(3, 4, kB), Reuse::kNotYet);
}

TEST_F(Order, FreesThatAWaitOfTheHostTellsApartKeepTheirMarks) {
  MeetBoth();
  order_.Freed(0, 1, kA, /*record=*/false);
  const StreamOrder::Snapshot before = order_.Take({kA});
  order_.Freed(1, 2, kA, /*record=*/false);
  order_.Completed(before);
  EXPECT_EQ(Ask(0, 1, kB), Reuse::kFree);
  EXPECT_EQ(Ask(1, 2, kB), Reuse::kNotYet);
}

TEST_F(Order, TheHostWaitsForAllThatWasFreed) {
  MeetBoth();
  order_.Freed(10, 20, kA, /*record=*/true);
  order_.Freed(20, 30, kB, /*record=*/false);
  EXPECT_FALSE(order_.Idle(0, 100));
  EXPECT_TRUE(order_.WaitForFreed(Spares::kLittle));
  EXPECT_TRUE(order_.Idle(0, 100));
  EXPECT_EQ(order_.counters().host_waits, 1);
}

TEST_F(Order, WhatCannotBeAwaitedIsNotIdle) {
  MeetBoth();
  order_.Freed(10, 20, kA, /*record=*/true);
  events_.can_be_awaited = false;
  order_.WaitForFreed(Spares::kLittle);
  EXPECT_FALSE(order_.Idle(0, 100));
  events_.capturing = true;
  events_.can_be_awaited = true;
  order_.Freed(20, 30, kA, /*record=*/true);
  order_.WaitForFreed(Spares::kLittle);
  EXPECT_TRUE(order_.Idle(10, 20));
  EXPECT_FALSE(order_.Idle(20, 30)) << "no event could be recorded behind it";
}

class SeldomWaits : public Order {
 protected:
  // After so many frees, each followed by a wait if it may be.
  int64_t After(int frees, Spares spares) {
    for (int i = 0; i < frees; ++i) {
      order_.Freed(10, 20, kA, /*record=*/false);
      order_.WaitForFreed(spares);
    }
    return order_.counters().host_waits;
  }
};

TEST_F(SeldomWaits, OfTheHost) {
  const int64_t at_once = After(1000, Spares::kLittle);
  EXPECT_GE(at_once, 200) << "the first cycle of a plan may need as many";
  EXPECT_LT(at_once, 500);
  const int64_t later = After(1 << 18, Spares::kLittle) - at_once;
  EXPECT_GT(later, 0);
  EXPECT_LT(later, 1 << 11);
  for (int i = 0; i < 1 << 20; ++i) order_.Freed(10, 20, kA, /*record=*/false);
  EXPECT_LT(After(1000, Spares::kLittle) - later - at_once, 500) << "what was spared does not add up";
}

TEST_F(SeldomWaits, ThatSparedLittleLeaveSomeForWhatSparesMuch) {
  const int64_t for_little = After(1000, Spares::kLittle);
  order_.Freed(10, 20, kA, /*record=*/false);
  EXPECT_FALSE(order_.WaitForFreed(Spares::kLittle));
  EXPECT_TRUE(order_.WaitForFreed(Spares::kMuch));
  EXPECT_EQ(order_.counters().host_waits, for_little + 1);
  const int64_t at_once = After(2000, Spares::kMuch);
  const int64_t later = After(1 << 18, Spares::kMuch) - at_once;
  EXPECT_GT(later, 1 << 12) << "it is waited for more often";
  EXPECT_LT(later, 1 << 13) << "but not each time";
}

// To ask the device takes longer than all else that a request does.
TEST_F(Order, ARequestAsksOfSomeStreamsAndTheNextOfOthers) {
  constexpr uint32_t kStreams = 1000;
  for (uint32_t i = 0; i < kStreams; ++i) order_.Freed(i, i + 1, Stream{i}, /*record=*/true);
  events_.asked = 0;
  order_.Refresh(StreamOrder::kSomeStreams);
  order_.LearnFinished(StreamOrder::kSomeStreams);
  EXPECT_GE(events_.asked, 2 * StreamOrder::kSomeStreams);
  EXPECT_LE(events_.asked, 3 * StreamOrder::kSomeStreams) << "of the first, a new event too";
  events_.complete = kStreams;
  for (size_t i = 0; i < kStreams / StreamOrder::kSomeStreams; ++i) {
    EXPECT_FALSE(order_.Idle(0, kStreams));
    order_.Refresh(StreamOrder::kSomeStreams);
  }
  order_.Refresh(StreamOrder::kSomeStreams);
  EXPECT_TRUE(order_.Idle(1, kStreams));
  events_.asked = 0;
  order_.Refresh(StreamOrder::kSomeStreams);
  EXPECT_LE(events_.asked, 2u) << "of streams that are over nothing is asked";
}

// Against a model that keeps, for every unit, who freed it last, whether an event was recorded at that free, and
// whether the device has come to it.
TEST_F(Order, AgreesWithAModelUnitByUnit) {
  MeetBoth();
  Ask(0, 1, kC);
  struct Last {
    size_t stream = 0;
    uint64_t number = 0;  // of the free on its stream; 0: none
    bool recorded = false;
  };
  std::vector<Last> model(256);
  std::vector<uint64_t> freed(3), complete(3);
  std::vector<uint64_t> number_of_event;
  uint64_t state = 7;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  StreamOrder::Snapshot waiting;  // what the host waits for
  const auto note_events = [&] {
    while (number_of_event.size() < events_.records.size()) {
      number_of_event.push_back(freed[static_cast<size_t>(events_.records[number_of_event.size()])]);
    }
  };
  for (int step = 0; step < 20000; ++step) {
    const auto begin = static_cast<uint32_t>(draw(250));
    const auto end = begin + 1 + static_cast<uint32_t>(draw(256 - begin - 1));
    const size_t stream = draw(3);
    if (draw(100) == 0) {
      events_.complete += draw(events_.records.size() - events_.complete + 1);
      order_.Refresh();
      note_events();
      for (size_t e = 0; e < events_.complete; ++e) {
        uint64_t& known = complete[static_cast<size_t>(events_.records[e])];
        known = std::max(known, number_of_event[e]);
      }
    } else if (draw(100) == 0) {
      order_.Completed(waiting);
      for (const auto& [stream, number] : waiting) {
        uint64_t& known = complete[static_cast<size_t>(stream)];
        known = std::max(known, number);
      }
      waiting = order_.Take({kA, kC});
    } else if (draw(2) == 0) {
      const bool record = draw(3) == 0;
      ++freed[stream];
      order_.Freed(begin, end, Stream{stream}, record);
      note_events();
      for (uint32_t u = begin; u < end; ++u) model[u] = {stream, freed[stream], record};
    } else {
      Reuse expected = Reuse::kFree;
      for (uint32_t u = begin; u < end; ++u) {
        const Last& last = model[u];
        if (last.number <= complete[last.stream] || last.stream == stream) continue;
        expected = std::max(expected, last.recorded ? Reuse::kWait : Reuse::kNotYet);
      }
      ASSERT_EQ(Ask(begin, end, Stream{stream}), expected) << "step " << step;
    }
  }
  EXPECT_GT(complete[0], 1000u);
}

}  // namespace
}  // namespace reprise::replay
