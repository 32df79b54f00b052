// What a thread needs to throw. Where the C++ library was loaded into a running program, as it is with us into one that
// is not of C++, the loader takes a thread's part of it at the first exception, and ends the process if there is no
// memory for that. So it is seen to before memory may be short.
#pragma once

namespace reprise {

// Whether the calling thread has it from now on. False: there is no memory.
bool MakeReadyToThrow() noexcept;

// The same, for who asks at every call. Only where a thread's variables are there from its start: a part of the core.
inline bool CanThrow() noexcept {
  thread_local bool ready = false;
  return ready || (ready = MakeReadyToThrow());
}

// Whether `run` came to its end: it threw nothing, and could have.
template <typename Run>
bool Completes(Run run) noexcept {
  if (!MakeReadyToThrow()) return false;
  try {
    run();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace reprise
