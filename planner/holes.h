// Free ranges of addresses, found by when their neighbours leave.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

namespace reprise::planner {

// Who is where in [0, height), one beside the other, each until an end; and the holes in between. Times are any numbers that
// only grow; the ground and the height never leave. Every operation is O(log n), but for the looks of Beside.
class Holes {
 public:
  static constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
  static constexpr int64_t kNowhere = -1;

  explicit Holes(int64_t height);

  // Where `bytes` at a multiple of `alignment` have a neighbour that leaves as near to `end` as any that has room beside it;
  // of several such places in the smallest hole, and then in the lowest. Beside that neighbour, but for what alignment takes.
  // kNowhere: there is no room. One look for each end and each hole on the way.
  int64_t Beside(int32_t end, int64_t bytes, int64_t alignment);
  // Somebody is at [bottom, top), which is free, until `end`.
  void Put(int64_t bottom, int64_t top, int32_t end);
  // Whoever is at `bottom` leaves.
  void Drop(int64_t bottom);

  int64_t looks() const { return looks_; }  // by Beside, in all

 private:
  struct Tenant {
    int64_t top;
    int32_t end;
  };
  using Tenants = std::map<int64_t, Tenant>;  // by their bottoms
  // A hole, seen from a neighbour.
  struct Edge {
    int32_t end;  // of the neighbour
    int64_t bytes;
    int64_t bottom;
    bool is_top;  // the neighbour is above
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  using Edges = std::set<Edge>;

  void Open(Tenants::const_iterator below, Tenants::const_iterator above);
  void Close(Tenants::const_iterator below, Tenants::const_iterator above);
  int64_t InGroup(Edges::const_iterator& edge, int32_t end, int64_t bytes, int64_t alignment);

  Tenants tenants_;  // with the ground and the height as the first and the last
  Edges edges_;      // of all holes, two each
  int64_t looks_ = 0;
};

}  // namespace reprise::planner
