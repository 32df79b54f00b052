// The Python lines that a thread is at.
//
// A thread that holds the interpreter's lock is asked for them through Python's public API. But frameworks
// give the lock up around their work, and allocate without it, when nothing of Python's may be touched. Its
// lines cannot change until it has the lock again, though: so they are read as it gives the lock up, by
// redirecting the calls that loaded libraries make to PyEval_SaveThread, PyEval_RestoreThread and
// PyGILState_Release (call_slots.h; preloading does not reach functions of the executable, where some Pythons
// have them). Redirected calls go on to Python's own.
//
// What is called under the lock runs no code of the job and gives the lock to nobody: the collector is paused
// where a frame may become an object (3.11), an error that is set is put back, and code is asked for strings
// that it holds.
//
// Code objects once seen are kept (a reference), so that an address names the same code for ever and a known
// line costs a look-up. They hold names and constants alone, and there are at most some for each frame that a trace
// keeps: a job that compiles the same source again and again (exec) makes a new one each time, and of these the
// first are kept and the others asked anew at each allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "replay/stacks/python_api.h"
#include "replay/stacks/stack_source.h"

namespace reprise::replay {

class PythonStacks : public StackTaker {
 public:
  ~PythonStacks() override;
  // At most one a process. Where there is no Python that can be asked, threads are named and no more, and the
  // log says why.
  static std::unique_ptr<PythonStacks> Begin(StackSource& source);

  profiler::StackId Take() override;

 private:
  // Where a frame is: `place` as PyFrame_GetLasti has it, before 3.11 the line.
  struct Position {
    PythonApi::Object* code;
    int place;
    friend bool operator==(const Position&, const Position&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Position& p) {
      return H::combine(std::move(hash), p.code, p.place);
    }
  };
  struct KnownStack {
    std::vector<Position> positions;
    profiler::StackId id;
  };

  explicit PythonStacks(StackSource& source) : source_(source) {}
  void Redirect();
  static PythonApi::ThreadState* SaveThread();
  static void RestoreThread(PythonApi::ThreadState* state);
  static void Release(int state);
  void BeforeRelease() noexcept;

  profiler::StackId TakeHeld();
  size_t Walk(std::span<Position> positions) const;
  profiler::StackId Known(std::span<const Position> positions, uint64_t hash);
  profiler::StackId Learn(std::span<const Position> positions, uint64_t hash);
  profiler::Frame Describe(const Position& position) const;
  std::string Text(PythonApi::Object* code, const char* attribute) const;
  profiler::StackId OfThread();

  StackSource& source_;
  PythonApi api_{};
  bool has_python_ = false;
  std::atomic<unsigned long long> libraries_{0};  // loaded when calls were last redirected
  std::atomic<uint64_t> without_lines_{0};        // times that a thread of Python's had none

  std::mutex mutex_;                                   // held for a look-up
  HashMap<Position, profiler::FrameId> frames_;        // whose code is kept
  HashMap<profiler::FrameId, int> kept_;               // how many positions of each frame
  HashMap<uint64_t, std::vector<KnownStack>> stacks_;  // by hash of the positions
};

}  // namespace reprise::replay
