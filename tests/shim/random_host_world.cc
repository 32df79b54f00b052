// The contents of a random program's blocks, and what is drawn for them.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "tests/shim/random_host.h"

namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kMostLive = 192 * kMiB;
constexpr size_t kDenseUpTo = 4 * kMiB;
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kPageWords = 4096 / kWord;
constexpr int kNoErrno = 77;

uint64_t WordAt(uint64_t pattern, size_t word) { return (pattern + word) * 0x9E3779B97F4A7C15; }

// Calls `visit` with the number of each whole word that is stamped, in order, until it is false.
template <typename Visit>
void ForEachWord(size_t bytes, Visit visit) {
  const size_t words = bytes / kWord;
  const bool dense = bytes <= kDenseUpTo;
  const size_t tail = words < kPageWords ? 0 : words - kPageWords;
  for (size_t word = 0; word < words;) {
    if (!visit(word)) return;
    const bool every = dense || word + 1 < kPageWords || word >= tail;
    word = every ? word + 1 : std::min(tail, word + kPageWords - 1);
  }
}

}  // namespace

void ForgetErrno() { errno = kNoErrno; }
int ErrnoOfCall() { return errno == kNoErrno ? 0 : errno; }

void Stamp(const Block& block) {
  ForEachWord(block.stamped, [&](size_t word) {
    const uint64_t value = WordAt(block.pattern, word);
    memcpy(block.at + word * kWord, &value, kWord);
    return true;
  });
  const uint64_t last = WordAt(block.pattern, block.stamped / kWord);
  memcpy(block.at + block.stamped / kWord * kWord, &last, block.stamped % kWord);
}

size_t FirstWrong(const Block& block, size_t end) {
  size_t wrong = end;
  ForEachWord(block.stamped, [&](size_t word) {
    if ((word + 1) * kWord > end) return false;
    uint64_t value = 0;
    memcpy(&value, block.at + word * kWord, kWord);
    if (value == WordAt(block.pattern, word)) return true;
    wrong = word * kWord;
    return false;
  });
  const size_t tail = block.stamped / kWord * kWord;
  if (wrong < end || end != block.stamped) return wrong;
  const uint64_t last = WordAt(block.pattern, block.stamped / kWord);
  return memcmp(block.at + tail, &last, block.stamped - tail) == 0 ? end : tail;
}

size_t World::SomeBytes() {
  size_t bytes = 0;
  switch (Draw(20)) {
    case 0:
      bytes = Draw(65);
      break;
    case 1:
      bytes = 65 + Draw(4031);
      break;
    case 2:
    case 3:
      bytes = 4095 + Draw(3);
      break;
    case 4:
      bytes = (1 + Draw(16)) * 64 * kKiB - 64 + Draw(129);
      break;
    case 5:
      bytes = (1 + Draw(4)) * 256 * kKiB - 64 + Draw(129);
      break;
    case 6:
    case 7:
      bytes = Draw(kMiB);
      break;
    case 8:
      bytes = OneIn(2) ? (1 + Draw(4)) * kMiB - 1 + Draw(3) : kMiB + Draw(8 * kMiB);
      break;
    case 9:
      bytes = OneIn(4) ? 8 * kMiB + Draw(OneIn(4) ? 400 * kMiB : 24 * kMiB) : 5000;
      break;
    default:
      bytes = 4 * kKiB + Draw(60 * kKiB);
  }
  return live + bytes > kMostLive && bytes > 64 * kKiB ? bytes % (64 * kKiB) : bytes;
}

size_t World::SomeAlignment() {
  static constexpr size_t kOdd[] = {8, 16, 64 * kKiB, 256 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 16 * kMiB};
  if (OneIn(2)) return 64;
  if (OneIn(4)) return kOdd[Draw(std::size(kOdd))];
  return size_t{16} << Draw(9);
}

void World::Report(const char* what, int64_t value) const {
  if (!quiet) printf("%d.%d %s %lld\n", forks, step, what, static_cast<long long>(value));
}

void World::ReportCall(const char* what, int64_t value) const {
  const int error = value > 0 ? 0 : ErrnoOfCall();
  if (!quiet) printf("%d.%d %s %lld errno %d\n", forks, step, what, static_cast<long long>(value), error);
}

void World::Fail(const char* what, const Block& block, size_t at) const {
  fprintf(stderr, "%d.%d %s: of %zu bytes, aligned to %zu, byte %zu\n", forks, step, what, block.bytes,
          block.alignment, at);
  fflush(nullptr);
  _exit(9);
}

void World::StampAnew(Block& block) {
  block.pattern = next_pattern++ << 32 ^ reinterpret_cast<uintptr_t>(this);
  Stamp(block);
}

void World::Check(const Block& block, size_t end) const {
  const size_t wrong = FirstWrong(block, end);
  if (wrong != end) Fail("a block was overwritten", block, wrong);
}

void World::CheckAll() const {
  for (const Block& block : blocks) Check(block);
}

void World::Add(Block block) {
  if (reinterpret_cast<uintptr_t>(block.at) % block.alignment != 0) Fail("a block is not aligned", block, 0);
  const size_t usable = malloc_usable_size(block.at);
  if (usable < block.bytes) Fail("a block is too small", block, usable);
  block.stamped = OneIn(3) ? usable : block.bytes;
  StampAnew(block);
  Keep(block);
}

Block World::Remove(size_t index) {
  const Block block = blocks[index];
  blocks[index] = blocks.back();
  blocks.pop_back();
  live -= block.bytes;
  return block;
}

void World::Keep(const Block& block) {
  live += block.bytes;
  blocks.push_back(block);
}
