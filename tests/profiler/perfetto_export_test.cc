// A viewer shows what it can nest: slices of one track that overlap without nesting are drawn wrong, and
// nobody would know. What else the file holds is tested by tests/cli and tests/cuda, with the parsers of
// others.
#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "profiler/exports.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using Slice = std::pair<uint64_t, uint64_t>;  // begin, end

// The slices by the name of their track. The numbers are those of Perfetto's schema.
std::map<std::string, std::vector<Slice>> SlicesOf(const std::string& trace) {
  std::map<uint64_t, std::string> names;
  std::map<std::string, std::vector<Slice>> slices;
  protozero::pbf_reader packets(trace);
  while (packets.next(1)) {
    uint64_t time = 0, track = 0;
    int32_t type = 0;
    protozero::pbf_reader packet = packets.get_message();
    while (packet.next()) {
      if (packet.tag() == 8) {
        time = packet.get_uint64();
      } else if (packet.tag() == 60) {
        protozero::pbf_reader descriptor = packet.get_message();
        uint64_t uuid = 0;
        while (descriptor.next()) {
          if (descriptor.tag() == 1) {
            uuid = descriptor.get_uint64();
          } else if (descriptor.tag() == 2) {
            names[uuid] = descriptor.get_string();
          } else {
            descriptor.skip();
          }
        }
      } else if (packet.tag() == 11) {
        protozero::pbf_reader event = packet.get_message();
        while (event.next()) {
          if (event.tag() == 9) {
            type = event.get_enum();
          } else if (event.tag() == 11) {
            track = event.get_uint64();
          } else {
            event.skip();
          }
        }
      } else {
        packet.skip();
      }
    }
    if (type == 1) slices[names[track]].push_back({time, 0});
    if (type == 2) slices[names[track]].back().second = time;
  }
  return slices;
}

Activity Kernel(uint32_t stream, int64_t begin, int64_t duration) {
  return {.kind = ActivityKind::kKernel, .track = stream, .begin_ns = begin, .duration_ns = duration};
}

TEST(ToPerfetto, WhatOverlapsOnOneStreamGetsATrackOfItsOwn) {
  const std::string trace =
      ToPerfetto({Alloc(0, 4096), Free(0)}, StackTable(),
                 {Kernel(3, 100, 50), Kernel(3, 120, 50), Kernel(3, 150, 10), Kernel(4, 110, 5)});
  const auto slices = SlicesOf(trace);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices.at("stream 3"), (std::vector<Slice>{{100, 150}, {150, 160}}));
  EXPECT_EQ(slices.at("stream 3 (2)"), (std::vector<Slice>{{120, 170}}));
  EXPECT_EQ(slices.at("stream 4"), (std::vector<Slice>{{110, 115}}));
}

TEST(ToPerfetto, OfSeveralFreeTracksTheFirstIsTaken) {
  const auto slices = SlicesOf(ToPerfetto({Alloc(0, 4096), Free(0)}, StackTable(),
                                          {Kernel(3, 100, 50), Kernel(3, 110, 5), Kernel(3, 160, 10)}));
  EXPECT_EQ(slices.at("stream 3"), (std::vector<Slice>{{100, 150}, {160, 170}}));
  EXPECT_EQ(slices.at("stream 3 (2)"), (std::vector<Slice>{{110, 115}}));
}

// So many that to look through all tracks for each slice would not end within a test's time.
TEST(ToPerfetto, EachOfManyOverlappingSlicesHasATrack) {
  constexpr int64_t kSlices = 400'000;
  std::vector<Activity> kernels;
  for (int64_t i = 0; i < kSlices; ++i) kernels.push_back(Kernel(3, i, kSlices));
  EXPECT_GT(ToPerfetto({}, StackTable(), kernels).size(), static_cast<size_t>(kSlices));
}

TEST(ToPerfetto, WhatBeganBeforeTheTraceBeginsWithIt) {
  const auto slices = SlicesOf(ToPerfetto({Alloc(0, 4096), Free(0)}, StackTable(), {Kernel(0, -20, 30)}));
  EXPECT_EQ(slices.at("stream 0"), (std::vector<Slice>{{0, 10}}));
}

}  // namespace
}  // namespace reprise::profiler
