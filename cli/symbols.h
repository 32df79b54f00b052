// Names for native frames, from the files that they stand in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "profiler/stacks.h"

namespace reprise::cli {

struct SymbolCounts {
  int64_t frames = 0;   // native ones
  int64_t unnamed = 0;  // of those: the file is gone, is another build, or does not say
  int64_t modules = 0;
  int64_t other_builds = 0;  // of the modules: the file has another build id, or is gone
};

// Keeps what it has opened: the traces of a job's ranks name the same files.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Fills in function, file and line of native frames. A file counts only if it has the build id that was
  // recorded: a name from another build would be a lie. Nothing is downloaded. Kernels' names become readable
  // too.
  SymbolCounts Name(profiler::StackTable* stacks);

 private:
  class File;
  absl::flat_hash_map<std::string, std::unique_ptr<File>> files_;  // by build id and path
};

}  // namespace reprise::cli
