// What a random program of the host's memory has, and the moves that it can make: random_host.cc says what it is for. Every call
// of a move is valid, or refused without harm. What it prints depends on its seed alone: not on addresses, and not on what
// docs/limits.md lets differ under the preload library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

enum class Kind { kFreed, kDeleted };  // how a block goes back

struct Block {
  unsigned char* at = nullptr;
  size_t bytes = 0;    // as asked for
  size_t stamped = 0;  // all that may be written, or as asked for
  size_t alignment = 0;
  Kind kind = Kind::kFreed;
  uint64_t pattern = 0;
};

// The stamp stands in each word of a block, of a very large one in some words of each page.
void Stamp(const Block& block);
// The first byte of those below `end` that is not as stamped, or `end`.
size_t FirstWrong(const Block& block, size_t end);

// Begins a call whose errno is asked for.
void ForgetErrno();
// 0: it was left alone.
int ErrnoOfCall();

struct World {
  World(uint64_t seed, bool quiet) : random(seed), quiet(quiet) {}

  size_t Draw(size_t below) { return random() % below; }
  bool OneIn(size_t n) { return Draw(n) == 0; }
  size_t SomeBytes();
  size_t SomeAlignment();
  size_t SomeBlock() { return Draw(blocks.size()); }

  // Prints a result, with the step it belongs to.
  void Report(const char* what, int64_t value) const;
  // And errno where the call failed, for then it says 0 or less. One that succeeds may change it: malloc does now and then.
  void ReportCall(const char* what, int64_t value) const;
  // Ends the process: its memory is not as it was left.
  [[noreturn]] void Fail(const char* what, const Block& block, size_t at) const;

  void StampAnew(Block& block);
  void Check(const Block& block) const { Check(block, block.stamped); }
  void Check(const Block& block, size_t end) const;
  void CheckAll() const;
  void Add(Block block);  // stamped, aligned and as large as was asked for
  Block Remove(size_t index);
  void Keep(const Block& block);

  std::mt19937_64 random;
  bool quiet;
  int step = 0;
  int forks = 0;  // that this process is the child of
  size_t live = 0;
  std::vector<Block> blocks;
  uint64_t next_pattern = 1;
};

// random_host_blocks.cc
Block SomeNewBlock(World& world, size_t bytes, size_t alignment);
void GiveBack(World& world, const Block& block);
void Allocate(World& world);
void Reallocate(World& world);
void FreeBlock(World& world);
void UseBlock(World& world);
void AskForTooMuch(World& world);
void AskWrongly(World& world);
void GrowTooMuch(World& world);
void TrimAll(World& world);
void PlayBlocks(World& world, int steps);  // the first four, at random

// random_host_system.cc
void MoveThroughFile(World& world);
void ReadByProcess(World& world);
void Advise(World& world);
void Protect(World& world);
void LockPages(World& world);
void MapOver(World& world);
void SignalItself(World& world);
void LimitMemory(World& world);
void LoadLibrary(World& world);
void OnOwnStack(World& world);

// random_host_children.cc
void ForkChild(World& world);
void SpawnProgram(World& world);

// random_host_iterations.cc: iterations that recur, each with its own blocks; now and then one is not as the others.
class Training {
 public:
  explicit Training(uint64_t seed);

  // No variation where `one_in_varies` is 0.
  void Iterate(World& world, int iterations, size_t one_in_varies);
  void ChangePhase(World& world) { phase_ = world.Draw(phases_.size()); }

 private:
  struct Layer {
    size_t bytes = 0;
    size_t alignment = 0;
    size_t gradient_bytes = 0;
    bool outlives = false;  // its gradient is freed in the next iteration
  };
  using Phase = std::vector<Layer>;

  void IterateOnce(World& world, const Phase& phase, size_t one_in_varies);

  std::vector<Phase> phases_;
  size_t phase_ = 0;
  std::vector<Block> carried_;
};
