// Threads of ours in somebody's job. A process ends with its last thread, and one of ours must not be the one that it
// waits for; and a thread inherits the CPUs of who starts it, which may be a single one, where it would be in the way.
#pragma once

#include <cstddef>

namespace reprise {

// Every thread of ours has a name that begins so.
inline constexpr const char* kOwnThreads = "reprise-";

// Has the main thread ended (by pthread_exit: else the process would be gone), and every other but ours too? A
// thread of ours that may wait for long asks now and then, and ends if so. False where /proc does not tell.
bool OnlyOwnThreadsAreLeft();

// Which CPUs the process was given, as sched_getaffinity has it; 0 bytes: not known. Before there is a thread of ours.
void SetProcessCpus(const void* mask, size_t bytes);
// The calling thread, one of ours, may run on all of those, and takes none from who waits for one: a job's thread that
// must not wait has a priority that would be inherited too. What cannot be had stays as it is.
void LeaveTheStartersCpu();

}  // namespace reprise
