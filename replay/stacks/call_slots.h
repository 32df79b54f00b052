// Redirects the calls that loaded libraries make to functions of somebody else's, where preloading cannot: a
// definition in the executable itself comes before that of any preloaded library, and some Pythons are such
// executables.
//
// A library calls others through slots that the loader fills with addresses (the global offset table). Those
// of exactly the named functions are overwritten, in libraries that are loaded now.
#pragma once

#include <span>

namespace reprise::replay {

struct Redirect {
  const char* name;
  void* from;  // only slots that lead there, or that the loader has not filled yet
  void* to;    // calls the original
};

// Returns the slots changed, in all libraries or in the one that the loader knows by the path `library`. Any
// thread; other threads may be calling through the slots: an address is written whole. Libraries without such
// slots are left untouched; those loaded later need another call. Not the executable itself, nor the library
// that this is in.
int RedirectCalls(std::span<const Redirect> redirects, const char* library = nullptr);

}  // namespace reprise::replay
