// Runs a job as if it had been started without us.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reprise::cli {

// How a job ended.
struct ChildEnd {
  int pid = 0;          // 0: there was none
  int start_error = 0;  // an errno: it could not be started at all
  int exit_status = 0;
  int signal = 0;  // set: ended by this signal
};

// Runs `words` (looked up in PATH) with these variables set, and waits. The job has our standard streams, our
// process group, and the signal mask, dispositions and timers that we had. Signals sent to us are passed on,
// unless they reach the job by themselves, as the terminal's do; when a terminal stops it, we stop.
// Where no process can be had for it, the job takes this one, and only its failing to start comes back.
// Call once, from a process with one thread. Signals stay blocked afterwards.
ChildEnd RunChild(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables);

// After RunChild: does `work` in a process of its own. One of the signals by which somebody ends a job ends it; it was
// sent to us, and seconds may be left until the next one, which takes the job's status with it. False: it was
// ended by a signal.
bool DoUnlessEnded(const std::function<void()>& work);

// Ends this process as the job ended, by the same signal if there was one (without a core dump of ours), so
// that whoever started us cannot tell the difference. 127: no such command, 126: it could not be started.
int EndLike(const ChildEnd& end);

}  // namespace reprise::cli
