// What a preload library would tell the core of stderr, were it loaded now.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include "replay/abi.h"

namespace reprise::replay {

inline reprise_stderr StderrNow() {
  struct stat now {};
  const bool open = fstat(STDERR_FILENO, &now) == 0;
  return {open, now.st_dev, now.st_ino};
}

}  // namespace reprise::replay
