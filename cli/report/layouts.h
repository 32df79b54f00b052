// Where an allocator placed the blocks, as the page draws it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/report/blocks.h"

namespace reprise::cli {

struct Layout {
  std::string name;
  std::string meaning;
  Bytes height;                 // of the range drawn
  Bytes closed_up;              // ranges of addresses in which no block ever lay, left out of it
  std::vector<Offset> offsets;  // of BlockTable::drawn; negative: this allocator had no place for it
};

// `offsets`: by event, where the block of an allocation lies; negative where it has no place. Ranges where no
// block ever lies are closed up when they are long: models never hand out an address twice, real ones are far
// apart.
Layout LayoutOf(std::string name, std::string meaning, const BlockTable& blocks,
                std::span<const Offset> offsets);

}  // namespace reprise::cli
