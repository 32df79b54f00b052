// The devices of a snapshot, by what they held at most: which of them is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/pickle.h"

namespace reprise::profiler {

// Dictionaries of a snapshot have about ten keys. Every one is looked up by name, so one that has very many,
// and occurs very often, is not searched.
inline constexpr size_t kMostKeys = 64;

struct DeviceUse {
  int64_t device = 0;
  double live_peak = 0;  // bytes, as far as the history goes back
};

// Those with a segment or a history, largest live peak first; of one alone it is not worked out, and 0. Of the lists
// `segments` and, if it is there, `device_traces`; what in them is none is passed over. Looks at no more than `most_entries` of
// theirs: a list may hold one entry many times.
std::vector<DeviceUse> DevicesOf(PickleValue segments, std::optional<PickleValue> traces,
                                 size_t most_entries);

// Whether a history says when frees were completed, and not only when they were asked for: `skip_actions` leaves out
// what a job's author names.
bool TellsCompletions(PickleValue trace);

// The device that a segment is of.
int64_t DeviceOf(PickleValue segment);

// That of several devices the first is read, and what the others held.
std::string NoteOn(const std::vector<DeviceUse>& devices);

}  // namespace reprise::profiler
