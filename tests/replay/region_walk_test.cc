// Why: a device that is planned by threads has a region for each and may have hundreds of thousands of blocks; to look
// for every block through every region held the job up.
#include "replay/region_walk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reprise::replay {
namespace {

Region At(int64_t begin, int64_t end) { return {Offset(begin), Offset(end)}; }

TEST(RegionWalk, VisitsInOrderWhatHasBegun) {
  RegionWalk walk({At(40, 50), At(0, 10), At(20, 90)});
  std::vector<Region> visited;
  const auto visit = [&](const Region& region) { visited.push_back(region); };
  walk.To(Offset(19), visit);
  EXPECT_EQ(visited, (std::vector{At(0, 10)}));
  walk.To(Offset(20), visit);
  EXPECT_EQ(visited, (std::vector{At(0, 10), At(20, 90)}));
  walk.To(Offset(100), visit);
  EXPECT_EQ(visited, (std::vector{At(0, 10), At(20, 90), At(40, 50)}));
}

TEST(RegionWalk, VisitsEachOnceHoweverManyBlocks) {
  std::vector<Region> regions;
  for (int64_t i = 0; i < 64; ++i) regions.push_back(At(i * 1000, i * 1000 + 500));
  RegionWalk walk(regions);
  int64_t visits = 0;
  for (int64_t block = 0; block < 100'000; ++block) walk.To(Offset(block), [&](const Region&) { ++visits; });
  EXPECT_EQ(visits, 64);
}

}  // namespace
}  // namespace reprise::replay
