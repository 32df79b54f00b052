// A random program of the host's memory, drawn from a seed: all ways to take, grow and free a block, all that a program may do with
// its own memory, children, threads that come and go, and iterations that recur. Each block is stamped as a whole, and checked before
// it is freed. What the program prints must be the same with and without the preload library (random_host_test.py).
//
//   random_host SEED STEPS [train] [threads] [signals] [beside]
//
// SEED: @ for that of the variable RANDOM_SEED, so that programs that differ are the same job. train: iterations that recur, before
// all else and in between. threads: now and then another thread goes on, and ends in one of the ways that there are. signals: a
// handler interrupts it all the time. beside: three more threads do the same to blocks of their own, and exchange some.
#include "tests/shim/random_host.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/random_move.h"

namespace {

struct Options {
  bool train = false;
  bool threads = false;
  bool signals = false;
  bool beside = false;
};

constexpr Move<World> kMoves[] = {
    {48, Allocate},   {34, FreeBlock},  {22, Reallocate}, {20, UseBlock},       {2, AskForTooMuch},
    {2, AskWrongly},  {3, GrowTooMuch}, {2, TrimAll},     {6, MoveThroughFile}, {2, ReadByProcess},
    {10, Advise},     {4, Protect},     {3, LockPages},   {2, MapOver},         {2, SignalItself},
    {2, LimitMemory}, {2, LoadLibrary}, {3, OnOwnStack},  {4, ForkChild},       {1, SpawnProgram},
};

constexpr size_t kStepsBetweenIterations = 12, kStepsBetweenThreads = 20;
constexpr int kFirstIterations = 40;

struct Program {
  World world;
  Training training;
  Options options;
  int last_step = 0;
};

Program* program;

thread_local bool is_of_program;
// What its thread leaves to be freed when all else of it is gone.
struct Left {
  ~Left() {
    for (const Block& block : blocks) GiveBack(program->world, block);
  }
  std::vector<Block> blocks;
};
thread_local Left left;

void OnAlarm(int) {
  if (is_of_program) return;
  static constexpr char kForeign[] = "a signal came to a thread that is not the program's\n";
  (void)!write(STDERR_FILENO, kForeign, sizeof kForeign - 1);
  _exit(10);
}

void PlayStep(Program& played) {
  World& world = played.world;
  ++world.step;
  if (played.options.train && world.OneIn(kStepsBetweenIterations)) {
    if (world.OneIn(6)) played.training.ChangePhase(world);
    const int iterations = static_cast<int>(1 + world.Draw(world.OneIn(3) ? 40 : 6));
    static constexpr size_t kVaries[] = {0, 0, 400, 60};
    played.training.Iterate(world, iterations, kVaries[world.Draw(std::size(kVaries))]);
    return world.Report("iterated", iterations);
  }
  const Move<World>& move = SomeMove<World>(kMoves, world);
  // The limit would be that of the other threads too.
  if (move.play == LimitMemory && played.options.beside) return;
  move.play(world);
}

// No call for memory is where a thread is cancelled.
void PlayCancelled(World& world) {
  int state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_cancel(pthread_self());
  for (int i = 0; i < 40; ++i) {
    const size_t bytes = 1 + world.Draw(1 << 16), alignment = size_t{16} << world.Draw(9);
    void* at = nullptr;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    const int code = posix_memalign(&at, alignment, bytes);
    if (code == 0 && i % 3 == 0) at = realloc(at, 2 * bytes);
    if (i % 2 == 0) free(at);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (code != 0) world.Report("no memory", code);
    if (i % 2 == 0) continue;
    Block block = {
        .at = static_cast<unsigned char*>(at), .bytes = bytes, .alignment = i % 3 == 0 ? 16 : alignment};
    world.Add(block);
  }
  world.Report("went on", 0);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  pthread_testcancel();
  _exit(11);
}

// Held while a thread begins that the handler does not know yet.
void HoldAlarms(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(how, &set, nullptr);
}

void BeginThread() {
  is_of_program = true;
  HoldAlarms(SIG_UNBLOCK);
}

void* PlayThread(void*) {
  BeginThread();
  World& world = program->world;
  while (world.step < program->last_step) PlayStep(*program);
  for (size_t i = world.Draw(6); i > 0 && !world.blocks.empty(); --i)
    left.blocks.push_back(world.Remove(world.SomeBlock()));
  const size_t end = world.Draw(3);
  if (end == 0) PlayCancelled(world);
  if (end == 1) pthread_exit(&program);
  return nullptr;
}

pthread_t StartThread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  HoldAlarms(SIG_BLOCK);
  if (pthread_create(&thread, nullptr, run, argument) != 0) _exit(12);
  HoldAlarms(SIG_UNBLOCK);
  return thread;
}

void PlayInThread(World& world, int last_step) {
  program->last_step = last_step;
  void* result = nullptr;
  if (pthread_join(StartThread(PlayThread, nullptr), &result) != 0) _exit(12);
  world.Report("thread", result == PTHREAD_CANCELED ? 2 : result != nullptr);
}

void Play(int steps) {
  World& world = program->world;
  while (world.step < steps) {
    if (program->options.threads && world.OneIn(kStepsBetweenThreads)) {
      PlayInThread(world, std::min(steps, world.step + static_cast<int>(world.Draw(40))));
    } else {
      PlayStep(*program);
    }
  }
}

std::atomic<Block*> exchanged[16];

void* PlayBeside(void* seed) {
  BeginThread();
  const auto number = reinterpret_cast<uintptr_t>(seed);
  World world(number, /*quiet=*/true);
  Training training(number);
  for (;;) {
    PlayBlocks(world, 20);
    training.Iterate(world, 3, 200);
    if (world.blocks.empty()) continue;
    std::optional<Block> given;
    Block* const gives = new Block(world.Remove(world.SomeBlock()));
    Block* const gets = exchanged[world.Draw(std::size(exchanged))].exchange(gives);
    if (gets == nullptr) continue;
    GiveBack(world, *gets);
    delete gets;
  }
  return nullptr;
}

void PlayBeside(uint64_t seed) {
  for (uint64_t i = 1; i <= 3; ++i) {
    pthread_detach(StartThread(PlayBeside, reinterpret_cast<void*>(seed * 10 + i)));
  }
}

// A limit on its addresses must not meet a stack that grows.
void TouchStack() {
  volatile char stack[2 << 20];
  for (size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 0;
}

void BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void BeginAlarms() {
  struct sigaction action = {};
  action.sa_handler = OnAlarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {.it_interval = {.tv_sec = 0, .tv_usec = 300},
                           .it_value = {.tv_sec = 0, .tv_usec = 300}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

void AtExit() {
  World& world = program->world;
  world.CheckAll();
  while (world.blocks.size() > 3) FreeBlock(world);
  PlayBlocks(world, 10);
}

bool Read(std::string_view word, Options& options) {
  if (word == "train") return options.train = true;
  if (word == "threads") return options.threads = true;
  if (word == "signals") return options.signals = true;
  if (word == "beside") return options.beside = true;
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  for (int i = 3; i < count; ++i) {
    if (!Read(arguments[i], options)) return 2;
  }
  if (count < 3) return 2;
  const char* const text = strcmp(arguments[1], "@") == 0 ? getenv("RANDOM_SEED") : arguments[1];
  const uint64_t seed = strtoull(text == nullptr ? "1" : text, nullptr, 10);
  is_of_program = true;
  TouchStack();
  BlockSignals();
  if (options.signals) BeginAlarms();
  if (options.beside) PlayBeside(seed);
  program = new Program{World(seed, /*quiet=*/false), Training(seed), options};
  atexit(AtExit);
  if (options.train) program->training.Iterate(program->world, kFirstIterations, 0);
  Play(atoi(arguments[2]));
  program->world.CheckAll();
  return 0;
}
