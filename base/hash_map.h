// Tables that a failed allocation leaves as they were. Abseil's are not: one whose growth has thrown must not be
// touched again, not even destroyed. What lives on after an exception was caught has these.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"

namespace reprise {

template <typename Key, typename Value>
using HashMap = std::unordered_map<Key, Value, absl::Hash<Key>>;
template <typename Key>
using HashSet = std::unordered_set<Key, absl::Hash<Key>>;

}  // namespace reprise
