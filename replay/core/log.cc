#include "replay/core/log.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <optional>
#include <span>

#include "base/printable.h"

namespace reprise::replay {
namespace {

LogLevel log_level = LogLevel::kWarn;
std::optional<reprise_stderr> at_start;  // none: the log has not begun

bool StillStderr() {
  if (!at_start) return true;
  struct stat now;
  return at_start->open != 0 && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == at_start->device &&
         now.st_ino == at_start->inode;
}

// Whether it takes PIPE_BUF bytes: where it is full and nobody reads it, a write would wait for ever. Waited for once: the
// job waits too.
bool TakesText() {
  constexpr int kForASlowReader = 1000;  // milliseconds
  static std::atomic<int> patience = kForASlowReader;
  pollfd target{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  const bool takes = poll(&target, 1, patience) > 0;
  if (!takes) patience = 0;
  return takes;
}

}  // namespace

WriteSignalsHeld::WriteSignalsHeld() {
  sigemptyset(&held_);
  sigaddset(&held_, SIGPIPE);
  sigaddset(&held_, SIGXFSZ);
  sigaddset(&held_, SIGTTOU);  // such a write then goes through, and raises nothing
  sigpending(&pending_before_);
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

WriteSignalsHeld::~WriteSignalsHeld() {
  const int saved = errno;
  // Takes back what our writes raised, and leaves what was on its way to the job before.
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec now{};
    if (sigismember(&pending_before_, signal) == 0) sigtimedwait(&one, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

void BeginLog(LogLevel level, const reprise_stderr& stderr_at_start) {
  at_start = stderr_at_start;
  log_level = level;
}

void LogText(LogLevel level, std::string_view text) noexcept {
  if (level == LogLevel::kQuiet || level > log_level) return;
  const int saved = errno;
  const WriteSignalsHeld signals_held;
  while (StillStderr() && !text.empty() && TakesText()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  errno = saved;
}

// On the stack: what is to be said may be that there is no memory.
void Log(LogLevel level, std::string_view line) noexcept {
  constexpr std::string_view kBegin = "reprise: ";
  std::array<char, PIPE_BUF> text;
  size_t size = kBegin.copy(text.data(), kBegin.size());
  size += PutPrintable(line, std::span(text).subspan(size, text.size() - size - 1));
  text[size++] = '\n';
  LogText(level, std::string_view(text.data(), size));
}

}  // namespace reprise::replay
