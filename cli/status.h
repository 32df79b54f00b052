// Exit statuses, the same for every command.
#pragma once

namespace reprise::cli {

enum ExitStatus : int {
  kFine = 0,
  kNegative = 1,  // done, and the answer is no: an invalid placement, something in the way
  kUsage = 2,     // the command line is wrong, or what it asks for cannot be done here: no such output folder
  kBadInput = 3,  // an input file cannot be read or is not what it should be
  kDoesNotFit = 4,  // no placement within the capacity was found
  kOutOfTime = 5,   // the time was over before there was a placement
};

}  // namespace reprise::cli
