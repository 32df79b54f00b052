#include "planner/best_fit.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "planner/chain.h"
#include "planner/unplaced.h"

namespace reprise::planner {
namespace {

constexpr int32_t kNoLine = -1;
constexpr int32_t kNoRank = Unplaced::kNoRank;
constexpr int64_t kStepsOfALine = 3;   // a search in the tree of the unplaced
constexpr size_t kMostInChain = 2000;  // that it is chosen from
constexpr size_t kCandidatesPerStep = 4;

// The addresses between pinned buffers, of which each is taken to be in use all the time.
class Obstacles {
 public:
  // Heights will be multiples of `grain`.
  Obstacles(const Instance& instance, int64_t grain) : grain_(grain) {
    std::vector<Range> ranges;
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      if (!instance.is_pinned(i)) continue;
      const int64_t begin = instance.pinned[i] / grain * grain;
      ranges.push_back({begin, RoundUpTo(instance.pinned[i] + instance.size[i], grain)});
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (const Range& range : ranges) {
      if (ranges_.empty() || range.begin > ranges_.back().end) ranges_.push_back(range);
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    }
  }

  // The lowest multiple of the grain from `height` on that is not within an obstacle.
  int64_t Above(int64_t height) const {
    height = RoundUpTo(height, grain_);
    const auto range = FirstEndingAbove(height);
    return range != ranges_.end() && range->begin <= height ? range->end : height;
  }

  // Where the next obstacle begins, from `height` on, or Search::kNothing.
  int64_t Next(int64_t height) const {
    const auto range = FirstEndingAbove(height);
    return range != ranges_.end() ? range->begin : Search::kNothing;
  }

 private:
  struct Range {
    int64_t begin;
    int64_t end;
  };
  std::vector<Range>::const_iterator FirstEndingAbove(int64_t height) const {
    return std::partition_point(ranges_.begin(), ranges_.end(),
                                [&](const Range& r) { return r.end <= height; });
  }

  const int64_t grain_;
  std::vector<Range> ranges_;  // ascending, with room between any two
};

// Lines of the skyline, in order of time; in a cyclic instance the last is followed by the first, and one
// line may go past the end of the cycle.
class RingSkyline {
 public:
  struct Line {
    int32_t begin = 0;
    int32_t length = 0;  // 0: merged into another
    int64_t height = 0;
    int32_t previous = kNoLine;
    int32_t next = kNoLine;
  };

  RingSkyline(int32_t slots, bool ring, int64_t height) : slots_(slots) {
    const int32_t line = Add({0, slots, height, kNoLine, kNoLine});
    if (ring) lines_[line].previous = lines_[line].next = line;
  }

  const Line& operator[](int32_t line) const { return lines_[line]; }

  int32_t Lowest() {
    while (lines_[heap_.top().line].length == 0 || lines_[heap_.top().line].height != heap_.top().height)
      heap_.pop();
    return heap_.top().line;
  }

  // Raises the part of `line` that begins at slot `begin` and is `length` slots long to `height`. What is left
  // of the line behind it is the next one.
  void Raise(int32_t line, int32_t begin, int32_t length, int64_t height) {
    const int32_t before = (begin - lines_[line].begin + slots_) % slots_;
    const int32_t after = lines_[line].length - before - length;
    const int64_t old = lines_[line].height;
    if (before > 0) InsertBefore(line, {lines_[line].begin, before, old, kNoLine, kNoLine});
    if (after > 0) InsertAfter(line, {(begin + length) % slots_, after, old, kNoLine, kNoLine});
    lines_[line].begin = begin % slots_;
    lines_[line].length = length;
    SetHeight(line, height);
    MergeWithEqualNeighbours(line);
  }

  // Makes `line`, the whole ring, begin elsewhere.
  void Turn(int32_t line, int32_t begin) { lines_[line].begin = begin; }

  // Raises the line to the lowest of its neighbours and of `height`.
  void Lift(int32_t line, int64_t height) {
    for (int32_t neighbour : {lines_[line].previous, lines_[line].next}) {
      if (neighbour != kNoLine && neighbour != line) height = std::min(height, lines_[neighbour].height);
    }
    SetHeight(line, height);
    MergeWithEqualNeighbours(line);
  }

 private:
  struct Entry {
    int64_t height;
    int32_t begin;
    int32_t line;
    bool operator<(const Entry& other) const {  // std::priority_queue has the largest on top
      return height != other.height ? height > other.height : begin > other.begin;
    }
  };

  int32_t Add(Line line) {
    lines_.push_back(line);
    const int32_t index = static_cast<int32_t>(lines_.size()) - 1;
    heap_.push({line.height, line.begin, index});
    return index;
  }

  void SetHeight(int32_t line, int64_t height) {
    lines_[line].height = height;
    heap_.push({height, lines_[line].begin, line});
  }

  void Link(int32_t a, int32_t b) {
    if (a != kNoLine) lines_[a].next = b;
    if (b != kNoLine) lines_[b].previous = a;
  }

  void InsertBefore(int32_t line, Line added) {
    const int32_t index = Add(added);
    Link(lines_[line].previous, index);
    Link(index, line);
  }

  void InsertAfter(int32_t line, Line added) {
    const int32_t index = Add(added);
    Link(index, lines_[line].next);
    Link(line, index);
  }

  void MergeWithEqualNeighbours(int32_t line) {
    const int32_t previous = lines_[line].previous;
    if (previous != kNoLine && previous != line && lines_[previous].height == lines_[line].height) {
      lines_[line].begin = lines_[previous].begin;
      Swallow(line, previous);
    }
    const int32_t next = lines_[line].next;
    if (next != kNoLine && next != line && lines_[next].height == lines_[line].height) Swallow(line, next);
  }

  void Swallow(int32_t line, int32_t neighbour) {
    lines_[line].length += lines_[neighbour].length;
    lines_[neighbour].length = 0;
    if (lines_[line].previous == neighbour) Link(lines_[neighbour].previous, line);
    if (lines_[line].next == neighbour) Link(line, lines_[neighbour].next);
  }

  const int32_t slots_;
  std::vector<Line> lines_;
  std::priority_queue<Entry> heap_;  // has stale entries; those of the present have the line's present height
};

}  // namespace

struct BestFit::Pass {
  Pass(const Instance& instance, const Obstacles& obstacles)
      : skyline(instance.slots, instance.cyclic, obstacles.Above(0)), offsets(instance.pinned) {}

  RingSkyline skyline;
  std::vector<int64_t> offsets;
  std::span<const double> values;  // in a chain; none: without chains
};

// The slots of a line and the room above it.
struct BestFit::Window {
  int32_t low;
  int32_t high;
  int64_t room;
  bool wraps;  // goes past the end of the cycle, and takes buffers that begin there as well
};

struct BestFit::Room {
  explicit Room(const Instance& instance)
      : grain(CommonAlignment(instance)),
        obstacles(instance, grain),
        heights(HeightsOf(instance, grain)),
        unplaced(instance, FreeBuffers(instance), heights) {}

  // With what alignment may cost on top of a line.
  static std::vector<int64_t> HeightsOf(const Instance& instance, int64_t grain) {
    std::vector<int64_t> heights(instance.buffers());
    for (size_t i = 0; i < heights.size(); ++i) heights[i] = instance.size[i] + instance.alignment[i] - grain;
    return heights;
  }

  const int64_t grain;
  const Obstacles obstacles;
  const std::vector<int64_t> heights;
  Unplaced unplaced;
  std::unique_ptr<Chain> chain;     // null before a pass has chains
  std::vector<int32_t> candidates;  // scratch: those that fit a line
  std::vector<int32_t> chosen;      // scratch: those that come onto it
};

BestFit::BestFit(const Instance& instance) : instance_(instance), room_(std::make_unique<Room>(instance)) {}
BestFit::~BestFit() = default;

void BestFit::Begin(std::span<const int32_t> order, std::span<const double> values) {
  room_->unplaced.Reset(order);
  pass_ = std::make_unique<Pass>(instance_, room_->obstacles);
  pass_->values = values;
  if (!values.empty() && room_->chain == nullptr) room_->chain = std::make_unique<Chain>(instance_);
}

bool BestFit::Place(Search& search) {
  while (!room_->unplaced.empty()) {
    if (search.Stop(FillLowestLine())) return false;
  }
  return true;
}

int64_t BestFit::FillLowestLine() {
  const Obstacles& obstacles = room_->obstacles;
  RingSkyline& skyline = pass_->skyline;
  const int32_t slots = instance_.slots;
  int32_t line = skyline.Lowest();
  const int64_t height = skyline[line].height;
  const int64_t ceiling = obstacles.Next(height);
  const bool whole_ring = instance_.cyclic && skyline[line].length == slots;
  const int32_t low = whole_ring ? 0 : skyline[line].begin;
  const int32_t high = whole_ring ? 2 * slots : low + skyline[line].length;
  const Window window = {low, high, ceiling - height, /*wraps=*/high > slots && !whole_ring};
  room_->candidates.clear();
  // A ring has no end that a chain could begin at before something lies on it.
  const bool chain = !pass_->values.empty() && !whole_ring && ChooseChain(window);
  if (!chain) ChooseBest(window);
  if (room_->chosen.empty())
    skyline.Lift(line, ceiling == Search::kNothing ? ceiling : obstacles.Above(ceiling));
  for (const int32_t buffer : room_->chosen) {
    room_->unplaced.Take(buffer);
    if (whole_ring) skyline.Turn(line, instance_.begin[buffer]);
    int64_t& offset = pass_->offsets[buffer];
    offset = RoundUpTo(height, instance_.alignment[buffer]);
    skyline.Raise(line, instance_.begin[buffer], instance_.length(buffer),
                  obstacles.Above(offset + instance_.size[buffer]));
    line = skyline[line].next;
  }
  return kStepsOfALine + static_cast<int64_t>(room_->candidates.size() / kCandidatesPerStep);
}

void BestFit::ChooseBest(const Window& window) {
  Unplaced& unplaced = room_->unplaced;
  int32_t rank = unplaced.Find(window.low, window.high, window.room);
  if (window.wraps) rank = std::min(rank, unplaced.Find(0, window.high - instance_.slots, window.room));
  room_->chosen.clear();
  if (rank != kNoRank) room_->chosen.push_back(unplaced.buffer(rank));
}

// False: too many fit.
bool BestFit::ChooseChain(const Window& window) {
  const auto find_all = [&](int32_t low, int32_t high) {
    return room_->unplaced.FindAll(low, high, window.room, kMostInChain, room_->candidates);
  };
  if (!find_all(window.low, window.high)) return false;
  if (window.wraps && !find_all(0, window.high - instance_.slots)) return false;
  room_->chosen = room_->chain->Best(window.low, window.high, room_->candidates, pass_->values);
  return true;
}

const std::vector<int64_t>& BestFit::offsets() const { return pass_->offsets; }

}  // namespace reprise::planner
