#include "replay/stacks/native_stacks.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "replay/stacks/loaded_libraries.h"

namespace reprise::replay {
namespace {

using profiler::FrameId;
using profiler::StackId;

// Our own frames come first and are not kept.
constexpr size_t kMostOwnFrames = 16;
constexpr size_t kMostAddresses = profiler::kMostStackDepth + kMostOwnFrames;
// More than any job's own code has. Code that is made as the job goes lies elsewhere each time: one frame, and so one
// stack of the table, has any number of addresses.
constexpr size_t kMostKnown = size_t{1} << 15;

struct Place {
  uintptr_t address;
  std::string module{};  // empty: in none
  uint64_t offset = 0;
  std::string build_id{};
  bool ours = false;
};

std::string BuildIdIn(const char* notes, size_t bytes, size_t alignment) {
  const auto round_up = [&](size_t n) { return (n + alignment - 1) / alignment * alignment; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    memcpy(&note, notes, sizeof note);
    const size_t name_at = sizeof note, text_at = name_at + round_up(note.n_namesz);
    const size_t length = text_at + round_up(note.n_descsz);
    if (length > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name_at, "GNU", 4) == 0) {
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[text_at + i]));
      }
      return text;
    }
    notes += length;
    bytes -= length;
  }
  return "";
}

std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes =
        reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);  // NOLINT(performance-*)
    std::string id = BuildIdIn(notes, segment.p_memsz, std::max<size_t>(segment.p_align, 4));
    if (!id.empty()) return id;
  }
  return "";
}

std::string PathOf(const dl_phdr_info& info) {
  if (info.dlpi_name != nullptr && info.dlpi_name[0] != '\0') return info.dlpi_name;
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/thread-self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : "the executable";
}

bool IsOurs(const dl_phdr_info& info) {
  const std::string_view path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return Covers(info, reinterpret_cast<uintptr_t>(&IsOurs)) || name == "libreprise.so" ||
         name == "libreprise-host.so";
}

// Says for each address where it is. Nothing is allocated by the loader meanwhile, and by us only strings. False: there
// was no memory for those.
bool Find(std::vector<Place>& places) {
  return ForEachLibrary([&places](const dl_phdr_info& info) {
    std::string path, build_id;
    bool ours = false;
    for (Place& place : places) {
      if (!place.module.empty() || !Covers(info, place.address)) continue;
      if (path.empty()) {
        path = PathOf(info);
        build_id = BuildIdOf(info);
        ours = IsOurs(info);
      }
      place.module = path;
      place.build_id = build_id;
      place.offset = place.address - info.dlpi_addr;
      place.ours = ours;
    }
  });
}

}  // namespace

std::unique_ptr<NativeStacks> NativeStacks::Begin(StackSource& source) {
  const Unwind unwind = OpenUnwinder();
  return unwind == nullptr ? nullptr : std::unique_ptr<NativeStacks>(new NativeStacks(source, unwind));
}

StackId NativeStacks::Take() {
  std::array<void*, kMostAddresses> storage;
  const int depth = unwind_(storage.data(), static_cast<int>(storage.size()));
  if (depth <= 0) return StackId(0);
  const std::span<void* const> addresses = std::span(storage).first(static_cast<size_t>(depth));
  uint64_t hash = addresses.size();
  for (void* const address : addresses)
    hash = (hash ^ reinterpret_cast<uintptr_t>(address)) * 0x9e3779b97f4a7c15u;
  const StackId known = Known(addresses, hash);
  return known != StackId(0) ? known : Learn(addresses, hash);
}

StackId NativeStacks::Known(std::span<void* const> addresses, uint64_t hash) {
  // After one is unloaded, an address may mean another library.
  const unsigned long long unloaded = CountLibraries().unloaded;
  const std::lock_guard lock(mutex_);
  if (unloaded != unloaded_ || known_ >= kMostKnown) {
    stacks_.clear();
    known_ = 0;
  }
  unloaded_ = unloaded;
  const auto found = stacks_.find(hash);
  if (found == stacks_.end()) return StackId(0);
  for (const KnownStack& stack : found->second) {
    if (std::ranges::equal(stack.addresses, addresses)) return stack.id;
  }
  return StackId(0);
}

StackId NativeStacks::Learn(std::span<void* const> addresses, uint64_t hash) {
  std::vector<Place> places;
  // What is on the stack is where a call returns to; the call is before it, perhaps at the end of its
  // function.
  for (void* const address : addresses) places.push_back({reinterpret_cast<uintptr_t>(address) - 1});
  if (!Find(places)) return StackId(0);
  places.erase(places.begin(),
               std::find_if(places.begin(), places.end(), [](const Place& p) { return !p.ours; }));
  if (places.size() > profiler::kMostStackDepth) places.resize(profiler::kMostStackDepth);
  std::vector<FrameId> frames;
  for (const Place& place : places) {
    profiler::Frame frame;
    // Code that somebody makes as it goes lies elsewhere in each run.
    frame.module = place.module.empty() ? "code in no file" : place.module;
    frame.address = place.offset;
    frames.push_back(source_.stacks().Intern(frame));
    if (frames.back() == FrameId(0)) return StackId(0);
    bool is_new = false;
    if (!place.module.empty()) {
      const std::lock_guard lock(mutex_);
      is_new = modules_.insert(place.module).second;
    }
    if (is_new) source_.stacks().AddModule({.path = place.module, .build_id = place.build_id});
  }
  const StackId id = source_.stacks().Intern(frames);
  if (id == StackId(0)) return id;
  const std::lock_guard lock(mutex_);
  stacks_[hash].push_back({{addresses.begin(), addresses.end()}, id});
  ++known_;
  return id;
}

}  // namespace reprise::replay
