#include "replay/core/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace reprise::replay {

bool TakeLease(const std::string& path, int seconds) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) {
      close(file);
      return true;
    }
    if (errno != EEXIST) return true;
    struct stat there;
    // Clocks of two machines may differ: what is from far ahead is as dead as what is old.
    if (stat(path.c_str(), &there) == 0 && std::abs(time(nullptr) - there.st_mtime) <= seconds) return false;
    // Not ours to take away, it would stand for ever.
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return true;
  }
  return false;
}

}  // namespace reprise::replay
