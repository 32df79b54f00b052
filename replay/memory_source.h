// Where an arena's physical memory comes from.
//
// A source owns a reserved range of addresses, cut into granules of one size. Reserving costs no memory; a
// granule is memory only while it is committed. The arena decides which granules are committed; the source
// does it and may refuse.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace reprise::replay {

class MemorySource {
 public:
  virtual ~MemorySource() = default;

  virtual Bytes granule() const = 0;          // a power of two, a multiple of the arena's unit
  virtual int64_t granule_count() const = 0;  // how many granules the reserved range has

  // Makes granules [first, first + count), none of which is committed, usable memory. False: refused, and
  // nothing has changed.
  virtual bool Commit(int64_t first, int64_t count) = 0;

  // Gives back granules [first, first + count), all committed; their contents are lost. A source may keep the
  // memory at hand for the next Commit, until Trim.
  virtual void Release(int64_t first, int64_t count) = 0;
  virtual void Trim() {}
  // Whether what is released is to be had elsewhere in the range.
  virtual bool moves() const { return true; }

  // Plans over [0, end) may be served from now on. For sources that can take memory in one piece only.
  virtual void Plan(Bytes end) {}
};

}  // namespace reprise::replay
