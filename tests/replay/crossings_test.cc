// A plan must know which frees hand memory to another stream: without the event recorded there the planned
// place cannot be taken, and with one too many every free costs an event.
#include "replay/crossings.h"

#include <gtest/gtest.h>

#include <vector>

namespace reprise::replay {
namespace {

constexpr Stream kA{0};
constexpr Stream kB{1};

ServingPlan::Slot SlotOf(int64_t offset, int64_t bytes, Stream stream) {
  return {.bytes = Bytes(bytes), .stream = stream, .offset = Offset(offset)};
}

std::vector<bool> Crossings(std::vector<ServingPlan::Slot> slots, const std::vector<Stream>& freed_on) {
  ServingPlan plan;
  plan.slots = std::move(slots);
  return FindCrossings(plan, freed_on);
}

TEST(Crossings, OneStreamHasNone) {
  EXPECT_EQ(Crossings({SlotOf(0, 1024, kA), SlotOf(0, 1024, kA)}, {kA, kA}),
            (std::vector<bool>{false, false}));
}

TEST(Crossings, APlaceThatGoesToAnotherStreamAndBack) {
  EXPECT_EQ(Crossings({SlotOf(0, 1024, kA), SlotOf(0, 1024, kB)}, {kA, kB}), (std::vector<bool>{true, true}));
}

TEST(Crossings, ABlockFreedOnAnotherStreamThanItsOwn) {
  EXPECT_EQ(Crossings({SlotOf(0, 1024, kA), SlotOf(0, 1024, kA)}, {kB, kA}),
            (std::vector<bool>{true, false}));
}

TEST(Crossings, APartOfAPlaceIsEnough) {
  EXPECT_EQ(Crossings({SlotOf(0, 4096, kA), SlotOf(3584, 512, kB), SlotOf(0, 512, kA)}, {kA, kB, kA}),
            (std::vector<bool>{true, true, false}));
}

TEST(Crossings, NeighboursDoNotMeet) {
  EXPECT_EQ(Crossings({SlotOf(0, 1000, kA), SlotOf(1024, 512, kB)}, {kA, kB}),
            (std::vector<bool>{false, false}));
}

TEST(Crossings, WhoHadItLastCounts) {
  // The place of slot 0 goes to slot 1 of its own stream before slot 2 of the other takes it.
  EXPECT_EQ(Crossings({SlotOf(0, 512, kA), SlotOf(0, 512, kA), SlotOf(0, 512, kB)}, {kA, kA, kB}),
            (std::vector<bool>{false, true, true}));
}

TEST(Crossings, WhatIsNotPlannedIsLeftOut) {
  EXPECT_EQ(Crossings({SlotOf(-1, 512, kA), SlotOf(0, 512, kB)}, {kA, kB}),
            (std::vector<bool>{false, false}));
}

}  // namespace
}  // namespace reprise::replay
