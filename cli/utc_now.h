// Date and time, for what is written to say when it was made.
#pragma once

#include <string>

namespace reprise::cli {

// "2026-03-01T12:00:00Z".
std::string UtcNow();

}  // namespace reprise::cli
