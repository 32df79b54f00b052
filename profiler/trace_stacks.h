// How a trace's stacks become the bytes of its blocks and come back. The layout is drawn in trace_format.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "profiler/stacks.h"

namespace reprise::profiler {

// How much of a table has been written.
struct StacksWritten {
  size_t frames = 0;
  size_t stacks = 0;
  size_t modules = 0;
};

// The raw bytes of a block with what `table` has beyond `written`, as much as is worth one block, and moves
// `written` on. Empty: nothing is new. The table's names are at most kMostStackText long, as SharedStacks has
// them.
std::string EncodeStacks(const StackTable& table, StacksWritten* written);

// Adds what the block holds. `raw` is untrusted; after an error the table holds a part of it.
// InvalidArgument: what is wrong with it; ResourceExhausted: more than a trace may have (shared_stacks.h).
absl::Status DecodeStacks(std::string_view raw, StackTable* table);

}  // namespace reprise::profiler
