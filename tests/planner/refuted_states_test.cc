#include "planner/refuted_states.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace reprise::planner {
namespace {

RefutedStates::Key Spread(uint64_t i) { return {i * 0x9e3779b97f4a7c15u, i * 0xbf58476d1ce4e5b9u}; }

TEST(RefutedStates, HasWhatWasAddedAndNothingElse) {
  RefutedStates states;
  EXPECT_FALSE(states.Has(Spread(1)));
  states.Add(Spread(1));
  EXPECT_TRUE(states.Has(Spread(1)));
  EXPECT_FALSE(states.Has(Spread(2)));
  states.Clear();
  EXPECT_FALSE(states.Has(Spread(1)));
}

TEST(RefutedStates, AnEmptyTableDoesNotHaveTheKeyZero) { EXPECT_FALSE(RefutedStates().Has({})); }

TEST(RefutedStates, ForgetsWhenFullButMakesNothingUp) {
  RefutedStates states;
  constexpr uint64_t kAdded = 3'000'000;
  for (uint64_t i = 1; i <= kAdded; ++i) states.Add(Spread(i));
  uint64_t kept = 0;
  uint64_t made_up = 0;
  for (uint64_t i = 1; i <= kAdded; ++i) {
    kept += states.Has(Spread(i));
    made_up += states.Has(Spread(kAdded + i));
  }
  EXPECT_GT(kept, 500'000u);
  EXPECT_LE(kept, uint64_t{1} << 20);
  EXPECT_EQ(made_up, 0u);
}

}  // namespace
}  // namespace reprise::planner
