/* A job without manners: `chaos SEED THREADS STEPS`. Threads allocate, reallocate and free at random, hand
 * blocks to each other, fork, and are still at it when the process exits. Every block carries a pattern that
 * is checked whenever it is touched: memory that is live twice shows. The first thread's numbers are printed
 * at the end; they depend on the seed alone. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kSlots = 48, kShared = 16, kForkEvery = 1000 };

typedef struct {
  size_t bytes; /* the first word of every block, with the pattern behind it */
  unsigned char pattern[];
} Block;

static _Atomic(Block*) shared[kShared];
static long steps;

static uint64_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "chaos: %s\n", what);
  _exit(1);
}

static size_t pattern_bytes(size_t bytes) { return bytes - sizeof(Block); }

static void fill(Block* block, size_t bytes) {
  block->bytes = bytes;
  memset(block->pattern, (int)(bytes % 251), pattern_bytes(bytes));
}

static void check(const Block* block, size_t bytes) {
  const unsigned char want = (unsigned char)(block->bytes % 251);
  for (size_t i = 0; i < pattern_bytes(bytes); i += 61) {
    if (block->pattern[i] != want) fail("a block was overwritten");
  }
  if (block->pattern[pattern_bytes(bytes) - 1] != want) fail("the end of a block was overwritten");
}

static size_t random_size(uint64_t* random) {
  const size_t most = next(random) % 8 == 0 ? 1 << 19 : 1 << 14;
  return sizeof(Block) + 1 + next(random) % most;
}

static Block* take(uint64_t* random) {
  const size_t bytes = random_size(random);
  const size_t alignment = (size_t)16 << next(random) % 9;
  void* block = NULL;
  switch (next(random) % 4) {
    case 0:
      block = memalign(alignment, bytes);
      break;
    case 1:
      block = aligned_alloc(alignment, bytes);
      break;
    default:
      if (posix_memalign(&block, alignment, bytes) != 0) fail("no memory");
  }
  if (!block) fail("no memory");
  if ((uintptr_t)block % alignment != 0) fail("an address is not aligned");
  if (malloc_usable_size(block) < bytes) fail("a block is too small");
  fill(block, bytes);
  return block;
}

static Block* resize(Block* block, size_t bytes) {
  const size_t before = block->bytes;
  block = realloc(block, bytes);
  if (!block) fail("no memory");
  check(block, before < bytes ? before : bytes);
  fill(block, bytes);
  return block;
}

static void give_back(Block* block) {
  if (!block) return;
  check(block, block->bytes);
  free(block);
}

static uint64_t step(Block** slots, uint64_t* random) {
  Block** const slot = &slots[next(random) % kSlots];
  const uint64_t what = next(random) % 8;
  if (!*slot) {
    *slot = take(random);
  } else if (what < 5) {
    give_back(*slot);
    *slot = NULL;
  } else if (what < 7) {
    *slot = resize(*slot, random_size(random));
  } else { /* to another thread, and something of another thread's is freed here */
    give_back(atomic_exchange(&shared[next(random) % kShared], *slot));
    *slot = NULL;
  }
  return *slot ? (*slot)->bytes : 0;
}

/* The child uses, frees and replaces what it inherited, and leaves by exit. */
static void fork_once(Block** slots, uint64_t random) {
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) fail("no fork");
  if (child == 0) {
    for (int i = 0; i < 200; ++i) step(slots, &random);
    exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child failed");
}

static uint64_t work(uint64_t random, int forks) {
  Block* slots[kSlots] = {NULL};
  uint64_t sum = 0;
  for (long i = 0; i < steps; ++i) {
    sum = sum * 31 + step(slots, &random);
    if (forks && i % kForkEvery == kForkEvery - 1) fork_once(slots, random);
  }
  return sum; /* the live blocks stay behind */
}

static void* thread_main(void* seed) {
  /* Thread after thread in one: each round leaves live blocks, the last is cut off by exit. */
  for (uint64_t round = 1;; ++round) work((uintptr_t)seed * 1000003 + round, 0);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const uint64_t seed = strtoul(argv[1], NULL, 10);
  const long threads = strtol(argv[2], NULL, 10);
  steps = strtol(argv[3], NULL, 10);
  for (long i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, (void*)(uintptr_t)(seed * 100 + (uint64_t)i + 1)) != 0) {
      fail("no thread");
    }
    pthread_detach(thread);
  }
  printf("%016llx\n", (unsigned long long)work(seed, 1));
  return 0;
}
