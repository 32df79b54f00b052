// FNV-1a (Fowler, Noll, Vo), 64 bits: the same on every machine and in every run. To tell things apart and to
// notice damage, not against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace reprise {

inline constexpr uint64_t kFnv1aOfNothing = 0xcbf29ce484222325;

// Of `text` behind what `hash` is of.
constexpr uint64_t Fnv1a(std::string_view text, uint64_t hash = kFnv1aOfNothing) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace reprise
