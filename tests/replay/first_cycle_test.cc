// Why: in a plan's first cycle nothing may be placed where something still lies, or all of it comes to lie beside the
// plan; and what outlives that cycle must lie where the next one expects it.
#include "replay/first_cycle.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>
#include <random>

#include "planner/portfolio.h"
#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/stream_order.h"

namespace reprise::replay {
namespace {

constexpr Bytes kMiB{1 << 20};

profiler::Slot SlotAt(int64_t begin, int64_t length, Bytes bytes = kMiB) {
  return {.bytes = bytes, .alignment = Bytes(64), .begin = begin, .length = length};
}

// Slots 0 and 1 share the lowest MiB, slot 2 lies above and is freed in the next cycle, slot 3 is persistent.
ServingPlan SmallPlan() {
  ServingPlan plan;
  plan.cycle = {SlotAt(0, 1), SlotAt(1, 2), SlotAt(2, 3), SlotAt(3, 4)};
  plan.cycle[3].persistent = true;
  for (const int64_t mib : {0, 0, 1, -1}) {
    plan.slots.push_back({.bytes = kMiB, .offset = mib < 0 ? Offset(-1) : Offset(mib << 20)});
  }
  plan.end = Offset(2 << 20);
  return plan;
}

Resident At(int64_t mib, int64_t until) { return {Offset(mib << 20), kMiB, until}; }

std::vector<int64_t> Places(const std::vector<ServingPlan::Slot>& slots) {
  std::vector<int64_t> mib;
  for (const ServingPlan::Slot& slot : slots)
    mib.push_back(slot.offset.count() < 0 ? -1 : slot.offset.count() >> 20);
  return mib;
}

TEST(FirstCycle, IsLaidAroundWhatIsThereAndForAsLongAsItIs) {
  const std::vector<Resident> residents = {At(0, 1)};
  const auto first = LayFirstCycle(SmallPlan(), 0, residents, planner::Solve);
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(Places(*first)[0], 0) << "it is freed before slot 1 comes, not before slot 0 does";
  EXPECT_EQ(Places(*first)[2], 1) << "outlives the cycle: where the plan says";
  EXPECT_EQ(Places(*first)[3], -1) << "persistent";
}

TEST(FirstCycle, BeginsWithTheSlotThatIsAtHand) {
  // Slot 2 comes first and is freed when slot 1 comes, the last of this cycle.
  const std::vector<Resident> residents = {At(1, 1)};
  const auto first = LayFirstCycle(SmallPlan(), 2, residents, planner::Solve);
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(Places(*first)[2], 1);
  EXPECT_EQ(Places(*first)[1], 0) << "it is what is alive when this cycle is over";
}

TEST(FirstCycle, OfABlockThatStaysNothingIsPlacedThere) {
  const std::vector<Resident> residents = {At(1, Resident::kStays)};
  const auto first = LayFirstCycle(SmallPlan(), 0, residents, planner::Solve);
  ASSERT_TRUE(first.has_value());
  for (const int64_t mib : Places(*first)) EXPECT_NE(mib, 1);
}

TEST(FirstCycle, IsThePlansOwnWhereNothingIsInTheWay) {
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, {}, planner::Solve).has_value());
  const std::vector<Resident> gone_in_time = {At(1, 2)};
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, gone_in_time, planner::Solve).has_value());
  const std::vector<Resident> beside = {At(2, Resident::kStays)};
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, beside, planner::Solve).has_value());
}

TEST(FirstCycle, IsThePlansOwnWhereAlmostNothingIsInTheWay) {
  ServingPlan plan = SmallPlan();
  plan.cycle[0].bytes = plan.slots[0].bytes = Bytes(10'000);
  const std::vector<Resident> residents = {At(0, 1)};
  EXPECT_FALSE(LayFirstCycle(plan, 0, residents, planner::Solve).has_value());
  plan.cycle[0].bytes = plan.slots[0].bytes = Bytes(12'000);
  EXPECT_TRUE(LayFirstCycle(plan, 0, residents, planner::Solve).has_value());
}

TEST(FirstCycle, ManySmallBlocksInOnePlaceAreNotLookedAtOneByOne) {
  std::vector<Resident> residents;
  for (int64_t i = 0; i < 200; ++i) residents.push_back({Offset((1 << 20) + 512 * i), Bytes(512), 1});
  EXPECT_TRUE(LayFirstCycle(SmallPlan(), 0, residents, planner::Solve).has_value())
      << "slot 2 counts as taken";
  residents.resize(20);
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, residents, planner::Solve).has_value())
      << "they are gone by then";
}

TEST(FirstCycle, IsThePlansOwnWhereNoOtherComesOfIt) {
  const std::vector<Resident> residents = {At(0, 1)};
  const auto refuses = [](const planner::Problem&,
                          const planner::Budget&) -> absl::StatusOr<planner::Solution> {
    return absl::DeadlineExceededError("");
  };
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, residents, refuses).has_value());
  const auto throws = [](const planner::Problem&,
                         const planner::Budget&) -> absl::StatusOr<planner::Solution> {
    throw std::bad_alloc();
  };
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, residents, throws).has_value());
  const auto overlaps = [](const planner::Problem& problem, const planner::Budget&) {
    planner::Solution solution;
    for (const planner::Buffer& buffer : problem.buffers)
      solution.placement.offsets.push_back(buffer.pinned.value_or(Offset(0)));
    return absl::StatusOr<planner::Solution>(solution);
  };
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, residents, overlaps).has_value());
}

// The job waits for it.
TEST(FirstCycle, IsNotWaitedForForEverWhereTheClockStandsStill) {
  int64_t steps = 0;
  const auto asks = [&](const planner::Problem&,
                        const planner::Budget& budget) -> absl::StatusOr<planner::Solution> {
    steps = budget.steps;
    return absl::DeadlineExceededError("");
  };
  LayFirstCycle(SmallPlan(), 0, std::vector{At(0, 1)}, asks);
  EXPECT_EQ(steps, 9'000'000) << "about a second's";
}

// The first answer of a solver that has no time may be far off.
TEST(FirstCycle, IsThePlansOwnWhereTheOtherReachesMuchHigher) {
  const auto laid = [](int64_t highest, const std::vector<Resident>& residents,
                       Bytes lower_bound = Bytes(0)) {
    const auto solve = [&](const planner::Problem& problem, const planner::Budget&) {
      planner::Solution solution;
      for (const planner::Buffer& buffer : problem.buffers)
        solution.placement.offsets.push_back(buffer.pinned.value_or(Offset(highest << 20)));
      solution.placement.slab = kMiB * (highest + 1);
      solution.lower_bound = lower_bound;
      return absl::StatusOr<planner::Solution>(solution);
    };
    ServingPlan plan = SmallPlan();
    plan.cycle[1].length = 1;  // so that the two that are laid do not meet
    return LayFirstCycle(plan, 0, residents, solve).has_value();
  };
  EXPECT_FALSE(laid(8, {At(0, 1)}));
  EXPECT_FALSE(laid(8, {At(0, 1), At(6, 1)}));
  EXPECT_TRUE(laid(8, {At(0, 1), At(7, 1)}));
  EXPECT_TRUE(laid(8, {At(0, 1)}, kMiB * 8)) << "so much is live at once";
}

TEST(FirstCycle, SharesNothingBetweenBlocksWithAStreamAndWithout) {
  ServingPlan plan = SmallPlan();
  plan.cycle[1].stream = plan.slots[1].stream = kEveryStream;
  planner::Problem asked;
  const auto keeps = [&](const planner::Problem& problem, const planner::Budget& budget) {
    asked = problem;
    return planner::Solve(problem, budget);
  };
  const std::vector<Resident> residents = {At(0, 1), At(2, 1)};
  EXPECT_TRUE(LayFirstCycle(plan, 0, residents, keeps).has_value());
  EXPECT_EQ(asked.reuse, planner::Reuse::kForbidden);
  EXPECT_NE(asked.buffers[0].lane, asked.buffers[1].lane);
}

TEST(FirstCycle, SaysAnewWhosePlaceGoesToAnotherStreamNext) {
  ServingPlan plan = SmallPlan();
  plan.slots[1].offset = Offset(2 << 20);
  plan.cycle[1].stream = plan.slots[1].stream = Stream{1};
  plan.cycle[1].freed_on = Stream{1};
  const auto together = [](const planner::Problem& problem, const planner::Budget&) {
    planner::Solution solution;
    for (const planner::Buffer& buffer : problem.buffers)
      solution.placement.offsets.push_back(buffer.pinned.value_or(Offset(5 << 20)));
    solution.placement.slab = solution.lower_bound = kMiB * 6;
    return absl::StatusOr<planner::Solution>(solution);
  };
  const std::vector<Resident> residents = {At(0, 1)};
  const auto first = LayFirstCycle(plan, 0, residents, together);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(plan.slots[0].crosses);
  EXPECT_TRUE((*first)[0].crosses);
}

TEST(FirstCycle, OfTooManyBlocksIsNotWaitedFor) {
  int asked = 0;
  const auto counts = [&](const planner::Problem& problem, const planner::Budget& budget) {
    ++asked;
    return planner::Solve(problem, budget);
  };
  std::vector<Resident> residents;
  for (int64_t i = 0; i < int64_t{1} << 17; ++i)
    residents.push_back({Offset(512 * i), Bytes(512), Resident::kStays});
  EXPECT_FALSE(LayFirstCycle(SmallPlan(), 0, residents, counts).has_value());
  EXPECT_EQ(asked, 0);
}

TEST(FirstCycle, IsThePlansOwnOnAThreadWithASmallStack) {
  const auto laid_on = [](size_t stack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_t thread;
    bool laid = false;
    const auto run = [](void* result) -> void* {
      const std::vector<Resident> residents = {At(0, 1)};
      *static_cast<bool*>(result) = LayFirstCycle(SmallPlan(), 0, residents, planner::Solve).has_value();
      return nullptr;
    };
    EXPECT_EQ(pthread_create(&thread, &attributes, run, &laid), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    return laid;
  };
  EXPECT_FALSE(laid_on(size_t{96} << 10));
  EXPECT_TRUE(laid_on(size_t{1} << 20));
}

// A rectangle of time and addresses.
struct Piece {
  int64_t lower;
  int64_t upper;
  Offset begin;
  Offset end;
};

bool Overlap(const Piece& a, const Piece& b) {
  return a.lower < b.upper && b.lower < a.upper && a.begin < b.end && b.begin < a.end;
}

// What lives in the cycle that begins with `from`: the slots as `slots` has them, and the residents.
std::vector<Piece> Pieces(const ServingPlan& plan, const std::vector<ServingPlan::Slot>& slots, uint32_t from,
                          std::span<const Resident> residents) {
  std::vector<Piece> pieces;
  const auto cycle = static_cast<int64_t>(slots.size());
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].planned()) continue;
    const int64_t lower = (i + cycle - from) % cycle;
    pieces.push_back({lower, std::min(cycle, lower + plan.cycle[i].length), slots[i].offset,
                      slots[i].offset + slots[i].bytes});
  }
  for (const Resident& r : residents)
    pieces.push_back({0, std::min(r.until, cycle), r.offset, r.offset + r.bytes});
  return pieces;
}

TEST(FirstCycle, NothingOverlapsWhateverLiesThere) {
  // Not by time: what a busy machine has no time for may reach too high.
  const auto by_work = [](const planner::Problem& problem, const planner::Budget&) {
    return planner::Solve(problem, {.seconds = 60, .steps = 300'000});
  };
  int laid = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    profiler::Iteration iteration;
    iteration.period = draw(8, 80);
    for (int64_t i = 0; i < iteration.period; ++i) {
      iteration.slots.push_back(SlotAt(i, draw(1, iteration.period), Bytes(4096 * draw(1, 100))));
    }
    Candidate candidate;
    Plan(MakeRequest(iteration, {}), 0.01, candidate);
    ASSERT_TRUE(candidate.status.ok());
    const ServingPlan& plan = candidate.plan;
    std::vector<Resident> residents;
    for (Offset at{512 * draw(0, 999)}; at < plan.end; at = at + Bytes(512 * draw(1, 999))) {
      const Bytes bytes(512 * draw(1, 400));
      const bool stays = draw(0, 3) == 0;
      residents.push_back({at, bytes, stays ? Resident::kStays : draw(1, iteration.period - 1)});
      at = at + bytes;
    }
    const auto from = static_cast<uint32_t>(draw(0, iteration.period - 1));
    const auto first = LayFirstCycle(plan, from, residents, by_work);
    if (!first.has_value()) continue;
    ++laid;
    const std::vector<Piece> pieces = Pieces(plan, *first, from, residents);
    for (size_t a = 0; a < pieces.size(); ++a) {
      for (size_t b = 0; b < a; ++b)
        ASSERT_FALSE(Overlap(pieces[a], pieces[b])) << seed << ": " << a << ", " << b;
    }
  }
  EXPECT_GT(laid, 30);
}

// Allocates activations, frees the gradients of the round before, allocates new ones and frees the activations.
class KeptGradients {
 public:
  explicit KeptGradients(Engine* engine) : engine_(engine) {}
  // Where its activations lay.
  std::vector<Offset> Round() {
    const Engine::Guard guard = engine_->Lock();
    std::vector<Offset> activations;
    for (int64_t i = 0; i < 24; ++i) activations.push_back(Alloc(guard, Bytes(512 * (100 + i * i * 7))));
    for (const Offset gradient : gradients_) engine_->Free(guard, gradient, Stream{});
    gradients_.clear();
    for (int64_t i = 0; i < 8; ++i) gradients_.push_back(Alloc(guard, Bytes(512 * (60 + i * i * 11))));
    for (const Offset activation : activations) engine_->Free(guard, activation, Stream{});
    return activations;
  }
  Offset Alloc(const Engine::Guard& guard, Bytes bytes) {
    return *engine_->Allocate(guard, bytes, Bytes(512), Stream{});
  }

 private:
  Engine* engine_;
  std::vector<Offset> gradients_;
};

TEST(FirstCycle, LiesElsewhereInAnEngineAndTheNextWhereItWasPlanned) {
  constexpr Offset kElsewhere{int64_t{1} << 30};
  int first_cycles = 0;
  Engine::Options options{.plan_seconds = 0.05};
  options.solve = [&](const planner::Problem& problem, const planner::Budget& budget) {
    if (problem.period.has_value()) return planner::Solve(problem, budget);
    ++first_cycles;
    planner::Solution solution;
    Offset next = kElsewhere;
    for (const planner::Buffer& buffer : problem.buffers) {
      solution.placement.offsets.push_back(buffer.pinned.value_or(next));
      if (!buffer.pinned.has_value()) next = next + buffer.size;
    }
    solution.placement.slab = solution.lower_bound = next - Offset(0);
    return absl::StatusOr<planner::Solution>(solution);
  };
  InlineRunner runner;
  const auto engine =
      *Engine::Create(options, std::make_unique<CountedMemory>(Bytes(2 << 20), kLargestRange), &runner);
  KeptGradients job(engine.get());
  std::vector<Offset> activations;
  while (first_cycles == 0) activations = job.Round();
  EXPECT_EQ(std::ranges::count_if(activations, [&](Offset at) { return at >= kElsewhere; }), 24);
  for (int i = 0; i < 3; ++i) {
    for (const Offset at : job.Round()) EXPECT_LT(at, kElsewhere);
  }
  const Engine::Guard guard = engine->Lock();
  EXPECT_EQ(engine->counters(guard).conflicts, 0);
  EXPECT_LT(job.Alloc(guard, Bytes(int64_t{8} << 20)), kElsewhere) << "nor is anything kept free up to there";
  EXPECT_LT(engine->counters(guard).plan_needs, Bytes(int64_t{1} << 30));
  EXPECT_EQ(first_cycles, 1);
}

}  // namespace
}  // namespace reprise::replay
