// The best-fit heuristic for offset assignment of Sekiyama, Imai, Negishi, Kawachiya and Ushijima,
// "Profile-guided memory optimization for deep neural networks" (2018), which carries the strip-packing
// heuristic of Burke, Kendall and Whitwell (2004) over to lifetimes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/problem.h"
#include "planner/search.h"

namespace reprise::planner {

// The placed buffers form a skyline over time. Again and again: take its lowest line; of the unplaced buffers
// whose lifetime lies within the line, put the best one on it (in the paper that of the longest lifetime; here
// who asks ranks them); if there is none, lift the line to the lower of its neighbours and merge them. In a
// cyclic instance the skyline is closed to a ring. Pinned buffers divide the addresses into bands: a line is
// filled with what fits under the next obstacle, and lifted over it when nothing does. A pinned buffer that
// is in use for a part of the time only is taken to be there always. About O(n log n) for a pass.
//
// With chains a line is filled at once, by those buffers that are worth the most together; where thousands fit
// it is begun with the best one.
class BestFit {
 public:
  explicit BestFit(const Instance& instance);  // must outlive this
  ~BestFit();
  BestFit(const BestFit&) = delete;
  BestFit& operator=(const BestFit&) = delete;

  // A new pass, with nothing placed. `order` has the free buffers, the best first. `values`, by buffer and
  // above 0: what each is worth in a chain, until the end of the pass; none: without chains.
  void Begin(std::span<const int32_t> order, std::span<const double> values = {});
  // Goes on with the pass. False: `search` said stop.
  bool Place(Search& search);

  const std::vector<int64_t>& offsets() const;  // by buffer, after a pass

 private:
  struct Room;  // what all passes share
  struct Pass;
  struct Window;

  int64_t FillLowestLine();  // returns the steps of it
  void ChooseBest(const Window& window);
  bool ChooseChain(const Window& window);

  const Instance& instance_;
  const std::unique_ptr<Room> room_;
  std::unique_ptr<Pass> pass_;
};

}  // namespace reprise::planner
