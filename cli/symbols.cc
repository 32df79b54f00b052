#include "cli/symbols.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace reprise::cli {
namespace {

// As it is where it is no mangled name: the demangler would take "f" for a float.
std::string Demangled(const char* name) {
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&free)> demangled(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         free);
  return status == 0 && demangled != nullptr ? demangled.get() : name;
}

// Of separate files with debug information only what lies on this machine under its build id is looked for.
char* debug_path = nullptr;
const Dwfl_Callbacks kOffline = {.find_elf = dwfl_build_id_find_elf,
                                 .find_debuginfo = dwfl_build_id_find_debuginfo,
                                 .section_address = dwfl_offline_section_address,
                                 .debuginfo_path = &debug_path};

}  // namespace

// A module's file, opened.
class Symbols::File {
 public:
  File(const std::string& path, const std::string& build_id) : dwfl_(dwfl_begin(&kOffline), dwfl_end) {
    std::error_code error;
    if (dwfl_ == nullptr || build_id.empty() || path.front() != '/') return;
    if (!std::filesystem::is_regular_file(path, error)) return;  // a trace may name anything, a pipe too
    Dwfl_Module* const module = dwfl_report_offline(dwfl_.get(), path.c_str(), path.c_str(), -1);
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (module == nullptr || dwfl_module_getelf(module, &bias_) == nullptr) return;
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    const int length = dwfl_module_build_id(module, &bits, &address);
    std::string found;
    for (int i = 0; i < length; ++i) found += fmt::format("{:02x}", bits[i]);
    if (found == build_id) module_ = module;
  }

  bool usable() const { return module_ != nullptr; }

  std::string FunctionAt(uint64_t offset) const {
    const char* const name = dwfl_module_addrname(module_, bias_ + offset);
    if (name == nullptr) return "";
    return Demangled(name);
  }

  std::string LineAt(uint64_t offset, int64_t* line) const {
    Dwfl_Line* const found = dwfl_module_getsrc(module_, bias_ + offset);
    int number = 0;
    const char* const file =
        found == nullptr ? nullptr : dwfl_lineinfo(found, nullptr, &number, nullptr, nullptr, nullptr);
    *line = file == nullptr ? 0 : number;
    return file == nullptr ? "" : file;
  }

 private:
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl_;
  Dwfl_Module* module_ = nullptr;
  GElf_Addr bias_ = 0;
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

SymbolCounts Symbols::Name(profiler::StackTable* stacks) {
  absl::flat_hash_map<std::string, std::vector<profiler::FrameId>> frames_of;
  SymbolCounts counts;
  for (uint32_t i = 1; i <= stacks->frames(); ++i) {
    const profiler::Frame& frame = stacks->frame(profiler::FrameId(i));
    if (frame.kind == profiler::FrameKind::kDevice) {
      stacks->Describe(profiler::FrameId(i), Demangled(frame.function.c_str()), frame.file, frame.line);
    }
    if (frame.kind != profiler::FrameKind::kNative || !frame.function.empty()) continue;
    ++counts.frames;
    ++counts.unnamed;
    frames_of[frame.module].push_back(profiler::FrameId(i));
  }
  for (const profiler::Module& module : stacks->modules()) {
    const auto frames = frames_of.find(module.path);
    if (frames == frames_of.end()) continue;
    ++counts.modules;
    std::unique_ptr<File>& file = files_[module.build_id + module.path];
    if (file == nullptr) file = std::make_unique<File>(module.path, module.build_id);
    if (!file->usable()) {
      ++counts.other_builds;
      continue;
    }
    for (const profiler::FrameId id : frames->second) {
      const uint64_t offset = stacks->frame(id).address;
      std::string function = file->FunctionAt(offset);
      if (function.empty()) continue;
      int64_t line = 0;
      const std::string source = file->LineAt(offset, &line);
      stacks->Describe(id, std::move(function), source, line);
      --counts.unnamed;
    }
    frames_of.erase(frames);  // a file may define a module twice; once is enough
  }
  return counts;
}

}  // namespace reprise::cli
