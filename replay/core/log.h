// The core's one voice: lines on stderr that begin with "reprise: ".
//
// Written with write(2) alone, so that it may be used under the engine's lock and at exit, and without memory of its
// own, so that it may be used where there is none. A line goes only to what was stderr when the process began (abi.h).
#pragma once

#include <csignal>
#include <string_view>

#include "base/not_cancelled.h"
#include "replay/abi.h"

namespace reprise::replay {

// While one lives, writing on this thread cannot end or stop the job: a reader that went away (SIGPIPE) and a
// limit on file sizes (SIGXFSZ) are errors of our write alone, a terminal where only its foreground may
// write (SIGTTOU) takes it from a job in the background too, and a thread that is to be cancelled goes on:
// without us an allocation writes nothing, and is no place where that happens.
class WriteSignalsHeld {
 public:
  WriteSignalsHeld();
  ~WriteSignalsHeld();
  WriteSignalsHeld(const WriteSignalsHeld&) = delete;
  WriteSignalsHeld& operator=(const WriteSignalsHeld&) = delete;

 private:
  const NotCancelled not_cancelled_;
  sigset_t held_;
  sigset_t before_;
  sigset_t pending_before_;
};

enum class LogLevel { kQuiet, kWarn, kInfo };

// Before the first line; the level is kWarn until then. One thread.
void BeginLog(LogLevel level, const reprise_stderr& stderr_at_start);

// One line, control characters in it spelt, where `level` is at most the level of the log. kQuiet lines are never written. Of a line only as much is
// written as a pipe takes at once (PIPE_BUF).
void Log(LogLevel level, std::string_view line) noexcept;

// Several lines as they are, at once, each already ended; for the exit summary.
void LogText(LogLevel level, std::string_view text) noexcept;

}  // namespace reprise::replay
