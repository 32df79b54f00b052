/* An allocator to be preloaded that replaces all names of the C library's, as tcmalloc and mimalloc do: its inner ones
 * too. It knows its own blocks alone, and uses none twice. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct header {
  size_t bytes;
  const void* mark;
};

static _Alignas(4096) char memory[512 << 20]; /* untouched, it costs nothing */
static size_t taken;

static struct header* header_of(void* block) {
  struct header* const header = (struct header*)block - 1;
  if (header->mark != memory) abort();
  return header;
}

static void* take(size_t alignment, size_t bytes) {
  if (alignment < sizeof(struct header)) alignment = sizeof(struct header);
  const size_t room = bytes + alignment + sizeof(struct header);
  if (bytes > sizeof memory || room > sizeof memory - __atomic_load_n(&taken, __ATOMIC_RELAXED)) {
    errno = ENOMEM;
    return NULL;
  }
  const size_t from = __atomic_fetch_add(&taken, room, __ATOMIC_RELAXED);
  const uintptr_t at =
      ((uintptr_t)memory + from + sizeof(struct header) + alignment - 1) / alignment * alignment;
  ((struct header*)at)[-1] = (struct header){bytes, memory};
  return (void*)at;
}

void* memalign(size_t alignment, size_t bytes) { return take(alignment, bytes); }
void* malloc(size_t bytes) { return take(sizeof(struct header), bytes); }
void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return take(alignment, bytes); }

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = take(alignment, bytes);
  return *out ? 0 : ENOMEM;
}

void free(void* block) {
  if (block) header_of(block)->mark = NULL;
}

void* realloc(void* block, size_t bytes) {
  void* const other = malloc(bytes);
  if (!block || !other) return other;
  const size_t held = header_of(block)->bytes;
  memcpy(other, block, held < bytes ? held : bytes);
  free(block);
  return other;
}

void* reallocarray(void* block, size_t count, size_t bytes) { return realloc(block, count * bytes); }
size_t malloc_usable_size(void* block) { return block ? header_of(block)->bytes : 0; }

void* __libc_memalign(size_t alignment, size_t bytes) __attribute__((alias("memalign")));
void* __libc_malloc(size_t bytes) __attribute__((alias("malloc")));
void* __libc_calloc(size_t count, size_t bytes) __attribute__((alias("calloc")));
void* __libc_realloc(void* block, size_t bytes) __attribute__((alias("realloc")));
void __libc_free(void* block) __attribute__((alias("free")));
