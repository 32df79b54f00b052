#include "replay/stacks/python_api.h"

#include <dlfcn.h>

#include <string_view>

#include "absl/strings/str_cat.h"

namespace reprise::replay {
namespace {

template <typename Function>
bool Look(const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<PythonApi> PythonApi::Find() {
  PythonApi api{};
  const char* (*version_of)() = nullptr;
  if (!Look("Py_GetVersion", &version_of)) return absl::NotFoundError("no Python in this process");
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto** function) {
    if (!Look(name, function) && missing == nullptr) missing = name;
  };
  need("Py_IsInitialized", &api.is_initialized);
  need("PyGILState_GetThisThreadState", &api.this_threads_state);
  if (!Look("PyThreadState_GetUnchecked", &api.current_state)) {  // its name since 3.13
    need("_PyThreadState_UncheckedGet", &api.current_state);
  }
  need("PyThreadState_GetFrame", &api.frame_of);
  need("PyFrame_GetCode", &api.code_of);
  need("PyFrame_GetBack", &api.caller_of);
  need("PyFrame_GetLineNumber", &api.line_of);
  Look("PyFrame_GetLasti", &api.place_of);
  need("PyCode_Addr2Line", &api.line_at);
  need("PyObject_GetAttrString", &api.attribute_of);
  need("PyUnicode_AsUTF8AndSize", &api.text_of);
  need("PyErr_Fetch", &api.error_take);
  need("PyErr_Restore", &api.error_put);
  need("Py_IncRef", &api.keep);
  need("Py_DecRef", &api.drop);
  need("PyEval_SaveThread", &api.save_thread);
  need("PyEval_RestoreThread", &api.restore_thread);
  need("PyGILState_Release", &api.release);
  const std::string_view version = version_of();
  if (missing != nullptr)
    return absl::NotFoundError(
        absl::StrCat("Python ", std::string(version.substr(0, 4)), " has no ", missing));
  if (version.find("free-threading") != version.npos) {
    return absl::NotFoundError("this Python has no lock (free threading)");
  }
  if (version.starts_with("3.11.")) {
    need("PyGC_Disable", &api.collector_off);
    need("PyGC_Enable", &api.collector_on);
    if (missing != nullptr) return absl::NotFoundError(absl::StrCat("this Python has no ", missing));
    api.pause_collector = true;
  }
  return api;
}

}  // namespace reprise::replay
