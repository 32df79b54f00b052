#include "cli/subprocess.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/exec_words.h"

namespace reprise::cli {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr size_t kMostKept = 64 << 10;

void CleanEnvironment() {
  std::vector<std::string> names = {"LD_PRELOAD"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (strncmp(*variable, "REPRISE_", strlen("REPRISE_")) == 0) {
      names.emplace_back(*variable, strcspn(*variable, "="));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

}  // namespace

Captured RunInFork(const std::function<int()>& body) {
  Captured result;
  std::array<std::array<int, 2>, 2> pipes{};
  for (auto& ends : pipes) {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return result;
  }
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    _exit(body());
  }
  close(pipes[0][1]);
  close(pipes[1][1]);
  if (child < 0) {
    close(pipes[0][0]);
    close(pipes[1][0]);
    return result;
  }

  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::array<pollfd, 2> polled{{{pipes[0][0], POLLIN, 0}, {pipes[1][0], POLLIN, 0}}};
  std::array<std::string*, 2> kept{&result.out, &result.err};
  bool late = false;
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    late = left <= 0;
    if (late || (poll(polled.data(), polled.size(), static_cast<int>(left)) < 0 && errno != EINTR)) break;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t bytes = read(polled[i].fd, buffer, sizeof buffer);
      if (bytes > 0 && kept[i]->size() < kMostKept) kept[i]->append(buffer, static_cast<size_t>(bytes));
      if (bytes == 0) polled[i].fd = -1;
    }
  }
  close(pipes[0][0]);
  close(pipes[1][0]);
  if (late) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.started = true;
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

Captured RunCaptured(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  constexpr int kNotStarted = 127;
  Captured result = RunInFork([&] {
    CleanEnvironment();
    for (const std::string& variable : variables) {
      const size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    const std::vector<char*> arguments = ExecWords(words);
    execvp(arguments[0], arguments.data());
    return kNotStarted;
  });
  if (result.exit_status == kNotStarted) result.started = false;
  return result;
}

std::string LoaderError(const std::string& library) {
  const Captured result = RunInFork([&] {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return 0;
    const char* const error = dlerror();
    if (error != nullptr && write(STDOUT_FILENO, error, strlen(error)) < 0) return 2;
    return 1;
  });
  if (result.exit_status == 0) return "";
  return result.out.empty() ? "the loader ended the process" : result.out;
}

}  // namespace reprise::cli
