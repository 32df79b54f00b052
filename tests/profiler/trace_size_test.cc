// Real training streams must cost at most 8 bytes an event in the file, as a fast job writes them and as a
// slow one does, with and without times. Needs the bench data (REPRISE_BENCH).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <random>

#include "base/files.h"
#include "profiler/csv_import.h"
#include "profiler/trace_reader.h"
#include "profiler/trace_writer.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

// Bytes an event of the closed trace, with a block after every `block` events. Checks that the events come
// back.
double BytesAnEvent(const std::vector<Event>& events, size_t block) {
  TempFolder folder;
  const std::string path = folder / "trace.reprise";
  auto writer = TraceWriter::Open(path, {});
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_TRUE((*writer)->Append(events[i]).ok());
    if (i % block != block - 1) continue;
    EXPECT_TRUE((*writer)->Flush().ok());
  }
  EXPECT_TRUE((*writer)->Close().ok());
  const auto trace = ReadTrace(path);
  EXPECT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, events);
  return static_cast<double>((*writer)->bytes_written()) / static_cast<double>(events.size());
}

TEST(TraceSize, AtMost8BytesAnEventOnRealStreams) {
  const char* bench = std::getenv("REPRISE_BENCH");
  if (bench == nullptr) GTEST_SKIP() << "REPRISE_BENCH is not set: no real streams to measure";
  constexpr size_t kFast = kMostBlockEvents, kSlow = 1000;  // events a block
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(bench) / "events")) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    auto events = ParseEventCsv(*ReadFile(entry.path()), entry.path().string());
    ASSERT_TRUE(events.ok()) << events.status();
    const double fast = BytesAnEvent(*events, kFast), slow = BytesAnEvent(*events, kSlow);
    // Times as noisy as can be: 0 to 200 microseconds between events, two threads in turns of some length.
    std::mt19937 random(1);
    int64_t now_us = 0;
    for (Event& event : *events) {
      event.time_ns = 1000 * (now_us += random() % 200);
      event.thread = (now_us / 10'000) % 2;
    }
    const double timed = BytesAnEvent(*events, kSlow);
    std::cout << fmt::format("{}: {:.2f} bytes an event; in blocks of {}: {:.2f}, with times {:.2f}\n",
                             entry.path().filename().string(), fast, kSlow, slow, timed);
    EXPECT_LE(std::max({fast, slow, timed}), 8.0) << entry.path();
  }
  EXPECT_GT(files, 0) << bench << " has no events";
}

}  // namespace
}  // namespace reprise::profiler
