// The part of Python's public C API that tells where a thread is, found in the process at run time. Nothing
// is linked, no header of Python's is included: which Python it is, and whether there is one, is the job's
// matter.
#pragma once

#include "absl/status/statusor.h"

namespace reprise::replay {

// The types are Python's, and opaque here.
struct PythonApi {
  using Object = void;
  using ThreadState = void;

  // Any thread, with or without the interpreter's lock.
  int (*is_initialized)();
  ThreadState* (
      *this_threads_state)();       // PyGILState_GetThisThreadState: null for a thread Python does not know
  ThreadState* (*current_state)();  // of whoever holds the lock; from 3.13 on of this thread if it does

  // With the lock held. What they return is a reference to be given back, but for the last three.
  Object* (*frame_of)(ThreadState* state);
  Object* (*code_of)(Object* frame);
  Object* (*caller_of)(Object* frame);
  int (*line_of)(Object* frame);
  int (*place_of)(Object* frame);           // PyFrame_GetLasti, from 3.11 on; null before
  int (*line_at)(Object* code, int place);  // PyCode_Addr2Line
  Object* (*attribute_of)(Object* object, const char* name);
  const char* (*text_of)(Object* text, ssize_t* bytes);
  void (*error_take)(Object** type, Object** value, Object** traceback);
  void (*error_put)(Object* type, Object* value, Object* traceback);
  void (*keep)(Object* object);
  void (*drop)(Object* object);
  int (*collector_off)();  // PyGC_Disable: was it on?
  int (*collector_on)();

  // Where the lock is given up; for redirecting calls (python_stacks.cc).
  ThreadState* (*save_thread)();
  void (*restore_thread)(ThreadState* state);
  void (*release)(int state);

  // In 3.11 asking for a frame may make an object, and that may run the garbage collector, which runs the
  // job's code.
  bool pause_collector = false;

  bool HeldByThisThread() const {
    ThreadState* const state = current_state();
    // Both, because before 3.12 current_state() is whoever holds the lock, and PyGILState_Check answers yes
    // to everything once there are subinterpreters.
    return state != nullptr && state == this_threads_state();
  }

  // NotFound: there is no Python here, or one that lacks what is needed (before 3.9).
  static absl::StatusOr<PythonApi> Find();
};

}  // namespace reprise::replay
