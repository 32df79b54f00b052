// libunwind, opened when it is wanted and for us alone: were it linked, its own way of throwing exceptions
// would be found in the process before the compiler's.
//
// Before it reads an address that it is not sure of, it writes the byte there into a pipe of its own: a pipe
// that a job knows nothing of, closes with all that it has not opened itself, and whose numbers then go to
// files of the job. So libunwind gets no pipe: the calls it makes for one are redirected (call_slots.h), and
// answered by a check that needs none.
#pragma once

namespace reprise::replay {

// As unw_backtrace: fills in where the calling thread's calls return to, innermost first; how many.
using Unwind = int (*)(void** addresses, int most);

// The same for the process's life. Null, and the log says why, where libunwind is not to be had. Not for a
// job that walks stacks with libunwind before us: the pipe is there then.
Unwind OpenUnwinder();

}  // namespace reprise::replay
