// One of many processes, on any machines that share a file system, does what all of them need.
#pragma once

#include <string>

namespace reprise::replay {

// True: it is for us to do it. The file at `path` says so to others until it is removed, or counts as left by
// a process that died once it is older than `seconds`. Two may then believe it at once, so what they do must
// not be harmed by that. True also where no such file can be made: writing the result says what is wrong.
bool TakeLease(const std::string& path, int seconds);

}  // namespace reprise::replay
