// ReadFile under its former name.
#pragma once

#include "base/files.h"

namespace reprise::profiler {

using reprise::ReadFile;

}  // namespace reprise::profiler
