#include "tests/simcuda/driver/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/simcuda/driver/config.h"

namespace sim {
namespace {

constexpr uint64_t kFileFactor = 32;
constexpr uint64_t kHostPage = 4096;

char* MustMap(uint64_t size, int protection, int flags, int file) {
  void* memory = mmap(nullptr, size, protection, flags | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) {
    Say("the host refuses " + std::to_string(size) + " bytes of address space");
    abort();
  }
  return static_cast<char*>(memory);
}

}  // namespace

Physical::Physical(uint64_t capacity) : capacity_(capacity), space_(0, capacity * kFileFactor) {
  file_ = memfd_create("simcuda", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(capacity * kFileFactor)) != 0) {
    Say("no memory file for a device");
    abort();
  }
  alias_ = MustMap(std::max(capacity * kFileFactor, kHostPage), PROT_READ | PROT_WRITE, MAP_SHARED, file_);
}

std::optional<uint64_t> Physical::Take(uint64_t bytes) {
  if (bytes > capacity_ - used_) return std::nullopt;
  std::optional<uint64_t> offset = space_.Take(bytes, bytes >= kPageGrain ? kPageGrain : kAllocationGrain);
  if (!offset) return std::nullopt;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return offset;
}

void Physical::Give(uint64_t offset, uint64_t bytes) {
  uint64_t begin = std::min(RoundUp(offset, kHostPage), offset + bytes);
  uint64_t end = std::max(begin, (offset + bytes) / kHostPage * kHostPage);
  memset(At(offset), 0, begin - offset);
  memset(At(end), 0, offset + bytes - end);
  if (begin < end) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
  }
  space_.Give(offset, bytes);
  used_ -= bytes;
}

AddressSpace::AddressSpace() {
  uint64_t size = uint64_t{16} << 40;
  auto reserved = reinterpret_cast<uint64_t>(MustMap(size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  begin_ = RoundUp(reserved, kPageGrain);
  end_ = (reserved + size) / kPageGrain * kPageGrain;
  free_ = Ranges(begin_, end_);
}

std::pair<uint64_t, Mapping*> AddressSpace::Find(uint64_t address) {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return {0, nullptr};
  --it;
  if (address - it->first >= it->second.size) return {0, nullptr};
  return {it->first, &it->second};
}

bool AddressSpace::Visit(uint64_t address, uint64_t size, const std::function<bool(const Mapping&)>& allowed,
                         const std::function<void(char*, uint64_t)>& visit) {
  struct Piece {
    char* bytes;
    uint64_t size;
  };
  std::vector<Piece> pieces;
  while (size > 0) {
    auto [base, mapping] = Find(address);
    if (mapping == nullptr || !allowed(*mapping)) return false;
    uint64_t skip = address - base;
    uint64_t part = std::min(size, mapping->size - skip);
    pieces.push_back({mapping->bytes + skip, part});
    address += part;
    size -= part;
  }
  for (const Piece& piece : pieces) visit(piece.bytes, piece.size);
  return true;
}

}  // namespace sim
