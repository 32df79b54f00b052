// What is left of a thread's stack: for work on a thread of the job's, which may have a small one.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace reprise {

// Bytes that the caller may still use; 0 where it runs on another stack than its thread's own, or nothing is known.
inline size_t StackRoom() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto begin = reinterpret_cast<uintptr_t>(low);
  return here > begin && here - begin < size ? here - begin : 0;
}

}  // namespace reprise
