#include "base/exceptions.h"

#include <cxxabi.h>

#include <cstdlib>

namespace reprise {

// What can be had here can be had again right after, by the loader: some bytes for the library, and some for the list
// of all libraries that have such parts.
bool MakeReadyToThrow() noexcept {
  constexpr size_t kEnough = size_t{8} << 10;
  void* volatile const some = std::malloc(kEnough);
  std::free(some);
  if (some == nullptr) return false;
  // Declared as if it only computed something: a call whose answer nobody wants would be left out.
  const void* volatile const globals = abi::__cxa_get_globals();
  return globals != nullptr;
}

}  // namespace reprise
