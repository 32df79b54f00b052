#include "profiler/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace reprise::profiler {
namespace {

std::string_view Basename(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// What stands between the job's call and the bytes.
enum class Role { kOther, kAllocator, kFramework };

struct KnownLibrary {
  std::string_view prefix;  // of the file's name, or of the function's
  std::string_view name;
  Role role;
};

// The first that fits counts.
constexpr KnownLibrary kLibraries[] = {
    {"libreprise", "Reprise", Role::kAllocator},
    {"libcublasLt", "cuBLASLt", Role::kFramework},
    {"libcublas", "cuBLAS", Role::kFramework},
    {"libcudnn", "cuDNN", Role::kFramework},
    {"libcufft", "cuFFT", Role::kFramework},
    {"libcurand", "cuRAND", Role::kFramework},
    {"libcusolver", "cuSOLVER", Role::kFramework},
    {"libcusparse", "cuSPARSE", Role::kFramework},
    {"libnccl", "NCCL", Role::kFramework},
    {"libnvshmem", "NVSHMEM", Role::kFramework},
    {"libcudart", "CUDA runtime", Role::kAllocator},
    {"libcuda.", "CUDA driver", Role::kAllocator},
    {"libtorch", "PyTorch", Role::kFramework},
    {"libc10", "PyTorch", Role::kFramework},
    {"libtensorflow", "TensorFlow", Role::kFramework},
    {"_pywrap_tensorflow", "TensorFlow", Role::kFramework},
    {"libxla", "XLA", Role::kFramework},
    {"xla_extension", "XLA", Role::kFramework},
    {"libmkl", "MKL", Role::kFramework},
    {"libdnnl", "oneDNN", Role::kFramework},
    {"libopenblas", "OpenBLAS", Role::kFramework},
    {"libgomp", "OpenMP", Role::kFramework},
    {"libomp", "OpenMP", Role::kFramework},
    {"libiomp", "OpenMP", Role::kFramework},
    {"libpython3", "Python", Role::kFramework},
    {"python3", "Python", Role::kFramework},
    {"_ctypes.", "Python", Role::kFramework},
    {"libffi", "libffi", Role::kFramework},
    {"libc.so", "C library", Role::kAllocator},
    {"libpthread", "C library", Role::kAllocator},
    {"ld-linux", "C library", Role::kAllocator},
    {"libstdc++", "C++ library", Role::kAllocator},
    {"libjemalloc", "jemalloc", Role::kAllocator},
    {"libtcmalloc", "tcmalloc", Role::kAllocator},
};

// PyTorch's threads for the backward pass run nothing of the job's own.
constexpr std::string_view kBackwardEngine = "torch::autograd::Engine::";

// Likewise by the function, for frames whose module is not known: PyTorch's snapshots have none.
constexpr KnownLibrary kFunctions[] = {
    {"torch::unwind::", "PyTorch", Role::kAllocator},
    {"torch::CapturedTraceback::", "PyTorch", Role::kAllocator},
    {"torch::cuda::(anonymous namespace)::gather", "PyTorch", Role::kAllocator},
    {"c10::cuda::CUDACachingAllocator::", "PyTorch", Role::kAllocator},
    {kBackwardEngine, "PyTorch", Role::kFramework},
    {"at::", "PyTorch", Role::kFramework},
    {"c10::", "PyTorch", Role::kFramework},
    {"torch::", "PyTorch", Role::kFramework},
    {"void at::", "PyTorch", Role::kFramework},
    {"void c10::", "PyTorch", Role::kFramework},
    {"void torch::", "PyTorch", Role::kFramework},
    {"THP", "PyTorch", Role::kFramework},
    {"_Py", "Python", Role::kFramework},
    {"Py_", "Python", Role::kFramework},
    {"PyEval_", "Python", Role::kFramework},
    {"PyObject_", "Python", Role::kFramework},
    {"PyType_", "Python", Role::kFramework},
    {"std::", "C++ library", Role::kAllocator},
    {"execute_native_thread_routine", "C++ library", Role::kAllocator},
    {"pthread_", "C library", Role::kAllocator},
    {"start_thread", "C library", Role::kAllocator},
    {"__clone", "C library", Role::kAllocator},
    {"clone3", "C library", Role::kAllocator},
};

const KnownLibrary* FirstThatFits(std::span<const KnownLibrary> known, std::string_view name) {
  const auto found =
      std::ranges::find_if(known, [&](const KnownLibrary& k) { return name.starts_with(k.prefix); });
  return found == known.end() ? nullptr : &*found;
}

const KnownLibrary* Known(std::string_view module_path) {
  return FirstThatFits(kLibraries, Basename(module_path));
}

const KnownLibrary* Known(const Frame& frame) {
  return frame.module.empty() ? FirstThatFits(kFunctions, frame.function) : Known(frame.module);
}

Role RoleOf(const Frame& frame) {
  const KnownLibrary* const known = Known(frame);
  return known == nullptr ? Role::kOther : known->role;
}

constexpr std::string_view kBackwardLabel = "backward pass";

constexpr std::array<std::string_view, 2> kPackageFolders = {"/site-packages/", "/dist-packages/"};
// Of a PyTorch that runs from where it was built.
constexpr std::array<std::string_view, 8> kTorchFolders = {
    "/torch/nn/",  "/torch/optim/",       "/torch/autograd/", "/torch/utils/",
    "/torch/_ops", "/torch/distributed/", "/torch/_dynamo/",  "/torch/_inductor/"};

// .../lib/python3.11/threading.py
bool InStandardLibrary(std::string_view file) {
  for (const std::string_view folder : {"/lib/python", "/lib64/python"}) {
    const size_t at = file.find(folder);
    if (at == file.npos) continue;
    std::string_view rest = file.substr(at + folder.size());
    const size_t version = std::min(rest.find_first_not_of("0123456789.t"), rest.size());
    rest.remove_prefix(version);
    if (version > 0 && rest.starts_with('/')) return true;
  }
  return false;
}

// "torch" for /usr/lib/python3/dist-packages/torch/nn/modules/linear.py.
std::string PackageOf(std::string_view file) {
  for (const std::string_view folder : kPackageFolders) {
    const size_t at = file.rfind(folder);
    if (at == file.npos) continue;
    const std::string_view rest = file.substr(at + folder.size());
    return std::string(rest.substr(0, rest.find_first_of("/.")));
  }
  for (const std::string_view folder : kTorchFolders) {
    if (file.find(folder) != file.npos) return "torch";
  }
  return IsOwnCode(file) ? "" : "Python";
}

Site OfPython(const Frame& frame) {
  Site site{.label = "", .file = frame.file, .line = frame.line, .function = frame.function, .library = ""};
  if (frame.function == kBackwardFrame) {
    site.label = kBackwardLabel;
  } else if (frame.file.empty()) {
    site.label = frame.function;
    if (frame.function.starts_with(kThreadFrame)) {  // <thread NAME>
      site.label = frame.function.substr(1, frame.function.size() - 2);
    }
  } else {
    site.label = fmt::format("{}:{} {}", Basename(frame.file), frame.line, frame.function);
    site.library = PackageOf(frame.file);
  }
  return site;
}

// Where the parameters of a C++ function's name begin: behind its template arguments, which may have
// parentheses of their own. An operator's symbol is neither.
size_t ParametersOf(std::string_view function) {
  constexpr std::string_view kOperator = "operator";
  int depth = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    if (function.substr(i).starts_with(kOperator)) {
      i += kOperator.size();
      if (function.substr(i).starts_with("()")) {
        i += 2;
      } else {
        i = std::min(function.find_first_not_of("<>=-!", i), function.size());
      }
    }
    if (i == function.size()) break;
    if (function[i] == '<') ++depth;
    if (function[i] == '>' && function[i - (i > 0)] != '-') --depth;
    if (function[i] == '(' && depth <= 0) return i;
  }
  return function.npos;
}

// Without parameters and anonymous namespaces, which make C++ names long.
std::string Short(std::string function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at; (at = function.find(kAnonymous)) != function.npos;) function.erase(at, kAnonymous.size());
  const size_t parameters = ParametersOf(function);
  return parameters == 0 ? function : function.substr(0, parameters);
}

Site OfNative(const Frame& frame) {
  const KnownLibrary* const known = Known(frame);
  Site site{.label = "", .file = frame.file, .line = frame.line, .function = frame.function, .library = ""};
  const std::string_view module = Basename(frame.module);
  if (known != nullptr) {
    site.library = known->name;
  } else if (module.find(".so") != module.npos) {
    site.library = module;
  }
  const std::string_view where = site.library.empty() ? module : site.library;
  if (frame.function.empty()) {
    site.label = fmt::format("{}+{:#x}", module, frame.address);
  } else if (!frame.file.empty() && frame.line > 0) {
    site.label = fmt::format("{}:{} {}", Basename(frame.file), frame.line, Short(frame.function));
  } else {
    site.label = fmt::format("{}{}{}", Short(frame.function), where.empty() ? "" : " in ", where);
  }
  return site;
}

}  // namespace

bool IsOwnCode(std::string_view file) {
  if (file.empty()) return false;
  // Code without a file: what was typed or given as -c is the job's, what the interpreter and libraries make
  // is not.
  if (file.front() == '<')
    return file == "<string>" || file == "<stdin>" || file.starts_with("<ipython-input");
  const auto in = [&](std::string_view folder) { return file.find(folder) != file.npos; };
  return std::none_of(kPackageFolders.begin(), kPackageFolders.end(), in) &&
         std::none_of(kTorchFolders.begin(), kTorchFolders.end(), in) && !InStandardLibrary(file);
}

std::string LibraryOf(std::string_view module_path) {
  const KnownLibrary* const known = Known(module_path);
  return std::string(known == nullptr ? Basename(module_path) : known->name);
}

std::string_view KnownPrefix(std::string_view function) {
  const KnownLibrary* const known = FirstThatFits(kFunctions, function);
  return known == nullptr ? std::string_view() : known->prefix;
}

std::string_view KnownLibraryPrefix(std::string_view module_path) {
  const KnownLibrary* const known = Known(module_path);
  return known == nullptr ? std::string_view() : known->prefix;
}

Site SiteOf(const StackTable& stacks, StackId stack) {
  const Frame* innermost_python = nullptr;
  const Frame* library_entry = nullptr;
  const Frame* own_native = nullptr;
  std::string_view library;
  bool in_library = true;
  bool backward = false;
  for (const FrameId id : stacks.stack(stack)) {
    const Frame& frame = stacks.frame(id);
    if (frame.kind == FrameKind::kPython) {
      if (IsOwnCode(frame.file)) return OfPython(frame);
      if (innermost_python == nullptr) innermost_python = &frame;
      continue;
    }
    backward = backward || frame.function.starts_with(kBackwardEngine);
    if (const Role role = RoleOf(frame); role != Role::kAllocator) {
      if (role == Role::kOther) {
        if (own_native == nullptr) own_native = &frame;
        continue;
      }
      // The innermost library, by the call that entered it: that is the operation its caller wanted.
      const std::string_view name = Known(frame)->name;
      if (library_entry == nullptr) library = name;
      in_library = in_library && name == library;
      if (in_library &&
          (library_entry == nullptr || !frame.function.empty() || library_entry->function.empty())) {
        library_entry = &frame;
      }
    }
  }
  if (innermost_python != nullptr) return OfPython(*innermost_python);
  if (own_native != nullptr) return OfNative(*own_native);
  if (backward) return {.label = std::string(kBackwardLabel), .function = std::string(kBackwardFrame)};
  if (library_entry != nullptr) return OfNative(*library_entry);
  const auto frames = stacks.stack(stack);
  return frames.empty() ? Site{.label = std::string(kNoStack)} : OfNative(stacks.frame(frames.front()));
}

std::string LibraryThatAsked(const StackTable& stacks, StackId stack) {
  for (const FrameId id : stacks.stack(stack)) {
    const Frame& frame = stacks.frame(id);
    if (frame.kind == FrameKind::kNative && !frame.module.empty() && RoleOf(frame) != Role::kAllocator) {
      return LibraryOf(frame.module);
    }
  }
  return "";
}

bool SaysWhere(const Site& site) {
  return site.label != kNoStack && !site.function.starts_with(kThreadFrame);
}

}  // namespace reprise::profiler
