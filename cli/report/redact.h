// Takes out of an input what tells who ran what, where: for reports that leave the house.
#pragma once

#include "cli/input.h"

namespace reprise::cli {

// Paths, functions and libraries become numbered names, the same one everywhere in this input; whether a file
// is an installed package's stays visible, so that sites are the same frames as before. Command, host, file
// name, names of lifetimes and the reader's notes go. Sizes, times, lines and streams stay.
void Redact(LoadedInput& input);

}  // namespace reprise::cli
