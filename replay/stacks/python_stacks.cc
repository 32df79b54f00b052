#include "replay/stacks/python_stacks.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "profiler/sites.h"
#include "replay/core/log.h"
#include "replay/stacks/call_slots.h"
#include "replay/stacks/loaded_libraries.h"

namespace reprise::replay {
namespace {

using profiler::FrameId;
using profiler::StackId;

// Of one frame. A line of code makes as many calls, and so often the same code may have been made.
constexpr int kMostKept = 16;

std::atomic<PythonStacks*> begun{nullptr};
PythonApi real;  // what redirected calls go on to

// Of a thread that has given the lock up and not taken it again.
struct Released {
  PythonApi::ThreadState* state = nullptr;
  StackId stack{};
};
thread_local Released released;
thread_local StackId of_thread{};

uint64_t HashOf(const void* code, int place, uint64_t before) {
  return (before ^ reinterpret_cast<uintptr_t>(code) ^ (static_cast<uint64_t>(place) << 48)) *
         0x9e3779b97f4a7c15u;
}

// While it lives the collector does not run.
class CollectorPaused {
 public:
  explicit CollectorPaused(const PythonApi& api)
      : api_(api), was_on_(api.pause_collector && api.collector_off() != 0) {}
  ~CollectorPaused() {
    if (was_on_) api_.collector_on();
  }
  CollectorPaused(const CollectorPaused&) = delete;
  CollectorPaused& operator=(const CollectorPaused&) = delete;

 private:
  const PythonApi& api_;
  const bool was_on_;
};

// The error that the job's thread has set, if any, out of the way and back.
class ErrorKept {
 public:
  explicit ErrorKept(const PythonApi& api) : api_(api) { api_.error_take(&type_, &value_, &traceback_); }
  ~ErrorKept() { api_.error_put(type_, value_, traceback_); }
  ErrorKept(const ErrorKept&) = delete;
  ErrorKept& operator=(const ErrorKept&) = delete;

 private:
  const PythonApi& api_;
  PythonApi::Object* type_ = nullptr;
  PythonApi::Object* value_ = nullptr;
  PythonApi::Object* traceback_ = nullptr;
};

}  // namespace

std::unique_ptr<PythonStacks> PythonStacks::Begin(StackSource& source) {
  std::unique_ptr<PythonStacks> stacks(new PythonStacks(source));
  const absl::StatusOr<PythonApi> api = PythonApi::Find();
  if (!api.ok()) {
    Log(LogLevel::kInfo,
        absl::StrCat(std::string(api.status().message()), "; allocations get no Python stacks"));
    return stacks;
  }
  if (begun != nullptr) return stacks;
  stacks->api_ = *api;
  stacks->has_python_ = true;
  real = *api;
  begun = stacks.get();
  stacks->Redirect();
  return stacks;
}

PythonStacks::~PythonStacks() {
  PythonStacks* self = this;
  begun.compare_exchange_strong(self, nullptr);
}

// Where libraries were loaded since the last time; and now and then all the same, because one may have been
// seen while another thread was still loading it.
void PythonStacks::Redirect() {
  const unsigned long long loaded = CountLibraries().loaded;
  const bool changed = libraries_.exchange(loaded, std::memory_order_relaxed) != loaded;
  const uint64_t times = without_lines_.fetch_add(1, std::memory_order_relaxed);
  if (!changed && !std::has_single_bit(times)) return;
  const auto address = [](auto* function) { return reinterpret_cast<void*>(function); };
  const std::array<struct Redirect, 3> redirects = {{
      {"PyEval_SaveThread", address(api_.save_thread), address(&SaveThread)},
      {"PyEval_RestoreThread", address(api_.restore_thread), address(&RestoreThread)},
      {"PyGILState_Release", address(api_.release), address(&Release)},
  }};
  RedirectCalls(redirects);
}

PythonApi::ThreadState* PythonStacks::SaveThread() {
  if (PythonStacks* const stacks = begun.load(std::memory_order_acquire)) stacks->BeforeRelease();
  return real.save_thread();
}

void PythonStacks::RestoreThread(PythonApi::ThreadState* state) {
  released.state = nullptr;
  real.restore_thread(state);
}

// Also where a thread goes back to being without the lock inside a call that has given it up.
void PythonStacks::Release(int state) {
  if (PythonStacks* const stacks = begun.load(std::memory_order_acquire)) stacks->BeforeRelease();
  real.release(state);
}

void PythonStacks::BeforeRelease() noexcept {
  released.state = nullptr;
  source_.Guarded([this] {
    if (!api_.HeldByThisThread()) return;
    const StackId stack = TakeHeld();
    released = {api_.this_threads_state(), stack};
  });
}

StackId PythonStacks::Take() {
  if (!has_python_) return OfThread();
  PythonApi::ThreadState* const state = api_.this_threads_state();
  if (state == nullptr) return OfThread();
  if (api_.HeldByThisThread()) return TakeHeld();
  if (released.state == state) return released.stack;
  Redirect();  // by a library that was loaded since
  return OfThread();
}

StackId PythonStacks::TakeHeld() {
  if (api_.is_initialized() == 0) return StackId(0);  // it is coming to its end
  std::array<Position, profiler::kMostStackDepth> storage;
  const std::span<const Position> positions = std::span(storage).first(Walk(storage));
  if (positions.empty()) return OfThread();
  uint64_t hash = positions.size();
  for (const Position& position : positions) hash = HashOf(position.code, position.place, hash);
  const StackId known = Known(positions, hash);
  return known != StackId(0) ? known : Learn(positions, hash);
}

// The frames are suspended in the call that we are in, so they keep their code alive without our references.
size_t PythonStacks::Walk(std::span<Position> positions) const {
  const CollectorPaused paused(api_);
  size_t depth = 0;
  PythonApi::Object* frame = api_.frame_of(api_.current_state());
  while (frame != nullptr) {
    PythonApi::Object* caller = nullptr;
    if (depth < positions.size()) {
      PythonApi::Object* const code = api_.code_of(frame);
      positions[depth++] = {code, api_.place_of != nullptr ? api_.place_of(frame) : api_.line_of(frame)};
      api_.drop(code);
      if (depth < positions.size()) caller = api_.caller_of(frame);
    }
    api_.drop(frame);
    frame = caller;
  }
  return depth;
}

StackId PythonStacks::Known(std::span<const Position> positions, uint64_t hash) {
  const std::lock_guard lock(mutex_);
  const auto found = stacks_.find(hash);
  if (found == stacks_.end()) return StackId(0);
  for (const KnownStack& stack : found->second) {
    if (std::ranges::equal(stack.positions, positions)) return stack.id;
  }
  return StackId(0);
}

StackId PythonStacks::Learn(std::span<const Position> positions, uint64_t hash) {
  std::vector<FrameId> frames;
  bool all_kept = true;
  for (const Position& position : positions) {
    FrameId id{};
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = frames_.find(position); found != frames_.end()) id = found->second;
    }
    if (id == FrameId(0)) {
      id = source_.stacks().Intern(Describe(position));  // Python is asked without our lock
      if (id == FrameId(0)) return StackId(0);
      const std::lock_guard lock(mutex_);
      all_kept = all_kept && kept_[id] < kMostKept;
      if (kept_[id] < kMostKept && frames_.try_emplace(position, id).second) {
        ++kept_[id];
        api_.keep(position.code);
      }
    }
    frames.push_back(id);
  }
  const StackId id = source_.stacks().Intern(frames);
  // The address of code that is not kept may come to mean another one.
  if (id == StackId(0) || !all_kept) return id;
  const std::lock_guard lock(mutex_);
  stacks_[hash].push_back({{positions.begin(), positions.end()}, id});
  return id;
}

profiler::Frame PythonStacks::Describe(const Position& position) const {
  const CollectorPaused paused(api_);
  const ErrorKept error(api_);
  profiler::Frame frame{.kind = profiler::FrameKind::kPython};
  frame.file = Text(position.code, "co_filename");
  // Qualified ("Block.forward") from 3.11 on.
  frame.function = Text(position.code, api_.place_of != nullptr ? "co_qualname" : "co_name");
  frame.line = api_.place_of != nullptr ? api_.line_at(position.code, position.place) : position.place;
  return frame;
}

std::string PythonStacks::Text(PythonApi::Object* code, const char* attribute) const {
  std::string result;
  PythonApi::Object* const text = api_.attribute_of(code, attribute);
  if (text != nullptr) {
    ssize_t bytes = 0;
    const char* const utf8 = api_.text_of(text, &bytes);
    if (utf8 != nullptr) result.assign(utf8, static_cast<size_t>(bytes));
    api_.drop(text);
  }
  return result;  // what was wrong is forgotten with ErrorKept
}

// A thread that runs no Python line: by its name, which PyTorch's threads of the backward pass have.
StackId PythonStacks::OfThread() {
  if (of_thread != StackId(0)) return of_thread;
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  profiler::Frame frame{.kind = profiler::FrameKind::kPython};
  frame.function = std::string_view(name).starts_with("pt_autograd")
                       ? std::string(profiler::kBackwardFrame)
                       : absl::StrCat(std::string(profiler::kThreadFrame), name, ">");
  const FrameId id = source_.stacks().Intern(frame);
  if (id != FrameId(0)) of_thread = source_.stacks().Intern(std::span(&id, 1));
  return of_thread;
}

}  // namespace reprise::replay
