#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/console.h"
#include "cli/exec_words.h"

namespace reprise::cli {
namespace {

// Faults of our own must end us, whatever the mask.
sigset_t SignalsToWaitFor() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&set, fault);
  return set;
}

constexpr std::array kTimers = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

// Stops our timers, which live on through an exec, but not in a child; what is left of each.
std::array<itimerval, kTimers.size()> TakeTimers() {
  constexpr itimerval kNone = {};
  std::array<itimerval, kTimers.size()> left = {};
  for (size_t i = 0; i < kTimers.size(); ++i) setitimer(kTimers[i], &kNone, &left[i]);
  return left;
}

void StartTimers(const std::array<itimerval, kTimers.size()>& left) {
  for (size_t i = 0; i < kTimers.size(); ++i) setitimer(kTimers[i], &left[i], nullptr);
}

// Comes back where it cannot, with an errno.
int BecomeJob(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const std::vector<char*> arguments = ExecWords(words);
  execvp(arguments[0], arguments.data());
  return errno;
}

// Where the child leaves an errno; nullptr: nowhere. No pipe: descriptors may be as few as the job needs.
int* PlaceForError() {
  void* const place = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<int*>(place);
}

// Whether there is a shell that could notice a stop, and end it.
bool HasTerminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

// Whether the signal is one of a terminal's stops, which a shell has to notice. Whoever stops a job by SIGSTOP may
// continue it alone.
bool IsOfTerminal(int stop) { return stop == SIGTSTP || stop == SIGTTIN || stop == SIGTTOU; }

// True when the job is over. Its orphans become our children where we are a container's first process; a shell, there in
// our place, would take them away.
bool Reap(pid_t job, ChildEnd& end) {
  int status = 0;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (child != job) continue;
    if (WIFSTOPPED(status)) {
      // The shell continues both of us.
      if (IsOfTerminal(WSTOPSIG(status)) && HasTerminal()) raise(SIGSTOP);
      continue;
    }
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.exit_status = WEXITSTATUS(status);
    return true;
  }
  return false;
}

// Whether the job, in our place, would have got a signal that has not reached it.
bool IsForJob(const siginfo_t& info, pid_t job) {
  // What the job sent to us it knows.
  if (info.si_code <= 0) return info.si_pid != job;
  switch (info.si_signo) {
    // The kernel sends these to the whole group, but for SIGCHLD, which is about the job.
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGWINCH:
    case SIGCHLD:
      return false;
    // These too; when a terminal hangs up, to the leader of its session alone.
    case SIGHUP:
    case SIGCONT:
      return getsid(0) == getpid();
    default:
      return true;
  }
}

void WaitAndPassOn(pid_t job, const sigset_t& signals, ChildEnd& end) {
  while (!Reap(job, end)) {
    siginfo_t info;
    const int signal = sigwaitinfo(&signals, &info);
    if (signal <= 0 || !IsForJob(info, job)) continue;
    // With its sender and its value if it was queued; other kinds the kernel lets nobody hand on.
    if (syscall(SYS_rt_sigqueueinfo, job, signal, &info) != 0) kill(job, signal);
  }
}

}  // namespace

ChildEnd RunChild(const std::vector<std::string>& words,
                  const std::map<std::string, std::string>& variables) {
  ChildEnd end;
  const sigset_t signals = SignalsToWaitFor();
  sigset_t mask_before;
  sigprocmask(SIG_BLOCK, &signals, &mask_before);
  // Ignored by whoever started us, the job would leave no status behind.
  struct sigaction child_before;
  struct sigaction child_default = {};
  child_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &child_default, &child_before);

  int* const error = PlaceForError();
  const auto timers = TakeTimers();
  const pid_t self = getpid();
  const pid_t job = fork();
  // No further process may be had (ulimit -u), which the job without us does not need.
  if (job < 0) {
    Say(fmt::format("no process for the job ({}): it takes this one, and nothing is said at its end",
                    strerror(errno)));
  }
  if (job <= 0) {
    // What ends us without a word, a time limit's SIGKILL, is meant for the job.
    if (job == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (job == 0 && getppid() != self) _exit(126);
    sigaction(SIGCHLD, &child_before, nullptr);
    StartTimers(timers);
    sigprocmask(SIG_SETMASK, &mask_before, nullptr);
    end.start_error = BecomeJob(words, variables);
    if (job < 0) return end;
    if (error != nullptr) *error = end.start_error;
    _exit(end.start_error == ENOENT ? 127 : 126);
  }
  end.pid = job;
  WaitAndPassOn(job, signals, end);
  if (error != nullptr) end.start_error = *error;
  return end;
}

bool DoUnlessEnded(const std::function<void()>& work) {
  const pid_t self = getpid();
  const pid_t worker = fork();
  if (worker < 0) {
    work();
    return true;
  }
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == self) work();
    _exit(0);
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&signals, signal);
  int status = 0;
  while (waitpid(worker, &status, WNOHANG) == 0) {
    if (sigwaitinfo(&signals, nullptr) != SIGCHLD) kill(worker, SIGKILL);
  }
  return WIFEXITED(status);
}

int EndLike(const ChildEnd& end) {
  if (end.start_error != 0) return end.start_error == ENOENT ? 127 : 126;
  if (end.signal == 0) return end.exit_status;
  prctl(PR_SET_DUMPABLE, 0);
  signal(end.signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, end.signal);
  raise(end.signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  return 128 + end.signal;  // a signal that cannot end a process on its own
}

}  // namespace reprise::cli
