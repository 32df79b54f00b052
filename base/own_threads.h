// A process ends with its last thread, and a thread of ours must not be the one that it waits for.
#pragma once

namespace reprise {

// Every thread of ours has a name that begins so.
inline constexpr const char* kOwnThreads = "reprise-";

// Has the main thread ended (by pthread_exit: else the process would be gone), and every other but ours too? A
// thread of ours that may wait for long asks now and then, and ends if so. False where /proc does not tell.
bool OnlyOwnThreadsAreLeft();

}  // namespace reprise
