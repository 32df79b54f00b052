// Sizes that are nearly the same cost next to nothing, whatever features a problem has.
#include "planner/rounded.h"

#include <vector>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/first_fit.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

const Budget kPlenty{.seconds = 3600};

Placement RoundedPlacementOf(const Search& search) {
  Placement placement;
  for (const int64_t offset : search.best()) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(search.best_slab());
  return placement;
}

// A queue: ten batches at a time, of sizes within a twentieth.
Problem Queue(int buffers) {
  RandomProblems random(61);
  Problem problem;
  for (int64_t i = 0; i < buffers; ++i)
    problem.buffers.push_back(Block(i, i + 10, 10'000 - random.Below(500)));
  return problem;
}

TEST(Rounded, SizesThatDifferALittleLieAsIfTheyWereTheSame) {
  const Problem problem = Queue(2000);
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  std::vector<int64_t> offsets;
  std::vector<int32_t> by_start;
  for (int32_t i = 0; i < instance.buffers(); ++i) by_start.push_back(i);
  FirstFit(instance).Place(by_start, Search::kNothing, search, offsets);
  EXPECT_GT(SlabOf(instance, offsets), search.target() * 5 / 4) << "as they are";
  const Turn turn = BeginRounded(search, "tested");
  turn();
  EXPECT_LE(search.best_slab(), 100'000);
  EXPECT_TRUE(CheckPlacement(problem, RoundedPlacementOf(search)).ok());
}

// Ten columns, each as wide as the largest size, with what has the largest size in the last one as well.
constexpr int64_t kColumn = 9999;

void OfferColumns(Search& search) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < search.instance().buffers(); ++i) offsets.push_back(i % 10 * kColumn);
  search.Offer(offsets, "columns");
}

// As wide as they are at first, they bring nothing: all are in one.
TEST(Rounded, ClassesBecomeNarrower) {
  RandomProblems random(62);
  Problem problem;
  for (int64_t i = 0; i < 2000; ++i) {
    const int64_t less = i == 9 ? 0 : random.Below(50);
    problem.buffers.push_back(Block(i, i + 10, (i % 10 == 9 ? kColumn : 8000) - less));
  }
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  OfferColumns(search);
  ASSERT_EQ(search.best_slab(), 10 * kColumn);
  const Turn turn = BeginRounded(search, "tested");
  while (!search.Over() && turn()) {
  }
  EXPECT_LE(search.best_slab(), 9 * 8000 + kColumn);
}

TEST(Rounded, LaysNothingThatCannotComeOutLower) {
  RandomProblems random(64);
  Problem problem;
  for (int64_t i = 0; i < 2000; ++i)
    problem.buffers.push_back(Block(i, i + 10, i == 9 ? kColumn : kColumn - random.Below(50)));
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), kPlenty);
  OfferColumns(search);
  const Turn turn = BeginRounded(search, "tested");
  while (!search.Over() && turn()) {
  }
  EXPECT_LE(search.steps(), 5 * instance.buffers()) << "sizes are looked at for each width, and that is all";
}

TEST(Rounded, PlacesProblemsOfEveryKind) {
  RandomProblems random(63);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random.Make(OfEveryKind(round));
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), kPlenty);
    const Turn turn = BeginRounded(search, "tested");
    while (!search.Over() && turn()) {
    }
    ASSERT_NE(search.best_slab(), Search::kNothing) << round;
    ASSERT_TRUE(CheckPlacement(problem, RoundedPlacementOf(search)).ok())
        << round << CheckPlacement(problem, RoundedPlacementOf(search));
  }
}

}  // namespace
}  // namespace reprise::planner
