// What several tests of the profiler need: streams of events, files, a writer that is killed, messages as text.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profiler/stacks.h"
#include "profiler/trace_reader.h"
#include "profiler/types.h"
#include "tests/temp_folder.h"

namespace reprise::profiler {

inline std::string Text(const absl::Status& status) { return std::string(status.message()); }

inline void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

// One that must be readable.
inline Trace ReadGoodTrace(const std::string& path) {
  absl::StatusOr<Trace> trace = ReadTrace(path);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *std::move(trace) : Trace();
}

// Runs `body` in a child of its own, for what would stay with this process. The child's exit status; negative:
// it was killed.
inline int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Calls write(ready) in a child, and kills that once it has called ready(): there it goes on, or waits.
template <typename Write>
void KillOnceReady(Write write) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    write([&] {
      if (::write(told[1], "x", 1) != 1) _exit(1);
    });
    while (true) pause();
  }
  close(told[1]);
  char byte;
  EXPECT_EQ(read(told[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(told[0]);
}

inline Frame Python(std::string function, int64_t line, std::string file = "train.py") {
  return {.kind = FrameKind::kPython, .function = std::move(function), .file = std::move(file), .line = line};
}
inline Frame Native(std::string module, uint64_t address, std::string function = "") {
  return {.function = std::move(function), .module = std::move(module), .address = address};
}

inline Event Alloc(uint64_t id, int64_t bytes, uint64_t stream = 0) {
  return {.id = BlockId(id), .bytes = Bytes(bytes), .stream = Stream(stream)};
}
inline Event Aligned(uint64_t id, int64_t bytes, int64_t alignment) {
  return {.id = BlockId(id), .bytes = Bytes(bytes), .alignment = Bytes(alignment)};
}
inline Event Free(uint64_t id, uint64_t stream = 0) {
  return {.kind = EventKind::kFree, .id = BlockId(id), .stream = Stream(stream)};
}
inline Event Mark(uint64_t number) { return {.kind = EventKind::kMark, .id = BlockId(number)}; }

// A consistent sequence of `count` events with everything an event can have: several streams and threads, ids
// that jump, sizes that come back and sizes that do not, marks, times in whole microseconds.
inline std::vector<Event> RandomEvents(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::vector<Event> events;
  std::vector<BlockId> live;
  uint64_t next_id = below(1000);
  int64_t time_ns = 0;
  while (events.size() < count) {
    Event event{.stream = Stream(below(10) == 0 ? below(4) : 0), .thread = below(20) == 0 ? below(5) : 1};
    time_ns += int64_t{1000} * (below(50) == 0 ? below(5'000'000) : below(200));
    event.time_ns = time_ns;
    const uint32_t choice = below(100);
    if (choice == 0) {
      event.kind = EventKind::kMark;
      event.id = BlockId(below(1000));
    } else if (choice < 55 || live.empty()) {
      if (below(100) == 0) next_id += below(1'000'000);
      event.id = BlockId(next_id++);
      event.bytes = Bytes(below(4) == 0 ? 1 + below(1u << 31) : 4096 << below(10));
      event.alignment = Bytes(below(3) == 0 ? 1 << below(13) : 64);
      live.push_back(event.id);
    } else {
      const size_t victim = below(static_cast<uint32_t>(live.size()));
      event.kind = EventKind::kFree;
      event.id = live[victim];
      live[victim] = live.back();
      live.pop_back();
    }
    events.push_back(event);
  }
  return events;
}

inline bool IsPrefix(const std::vector<Event>& prefix, const std::vector<Event>& events) {
  return prefix.size() <= events.size() && std::equal(prefix.begin(), prefix.end(), events.begin());
}

}  // namespace reprise::profiler
