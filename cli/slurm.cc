// reprise slurm: the one line of a batch script, and the batch script itself.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/shell.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exec_words.h"
#include "cli/job_summary.h"
#include "cli/output_folder.h"
#include "cli/run.h"
#include "cli/status.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;
constexpr int kNotStarted = 126;

std::string Quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

// Options on sbatch's command line come before those in the script.
std::string BatchScript(const std::string& self, const std::vector<std::string>& own,
                        const std::vector<std::string>& job) {
  const std::string name = fs::path(job[0]).filename().string();
  std::string script = "#!/bin/sh\n";
  if (!name.empty() && ShellQuoted(name) == name) script += fmt::format("#SBATCH --job-name={}\n", name);
  // srun no longer takes the CPUs of a task over from sbatch by itself, and of a heterogeneous job it takes one part
  // alone. One from which this job was submitted has handed its variables on.
  script +=
      "if [ -n \"${SLURM_CPUS_PER_TASK-}\" ]; then\n"
      "  export SRUN_CPUS_PER_TASK=\"${SRUN_CPUS_PER_TASK-$SLURM_CPUS_PER_TASK}\"\n"
      "fi\n"
      "parts=\n"
      "if [ \"${SLURM_JOB_ID_HET_GROUP_0-}\" = \"$SLURM_JOB_ID\" ]; then\n"
      "  parts=--het-group=0-$((SLURM_HET_SIZE - 1))\n"
      "fi\n";
  std::vector<std::string> line = {self, "slurm"};
  line.insert(line.end(), own.begin(), own.end());
  line.insert(line.end(), {"--", "srun"});
  return script + fmt::format("exec {} $parts {}\n", Quoted(line), Quoted(job));
}

// A file that is nowhere but in memory, to be read from its beginning. -1: errno says why.
int InMemory(const std::string& text) {
  const int file = memfd_create("batch script", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(file, 0, SEEK_SET) != 0) {
    close(file);
    return -1;
  }
  return file;
}

// Passes on what comes, as it comes, and keeps it.
std::string PassOn(int pipe) {
  std::string all;
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = read(pipe, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return all;
    const std::string_view part(buffer, static_cast<size_t>(bytes));
    all += part;
    if (const absl::Status written = WriteStdout(part); !written.ok()) Say(MessageOf(written));
  }
}

int StatusOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Its standard output is the id of the job, which becomes ours.
int Sbatch(const std::vector<std::string>& options, const std::string& script, std::string& id) {
  int pipes[2];
  const int input = InMemory(script);
  if (input < 0 || pipe2(pipes, O_CLOEXEC) != 0) {
    return Fail(fmt::format("cannot make a batch script: {}", strerror(errno)), kUsage);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), options.begin(), options.end());
  pid_t child = 0;
  const int error = posix_spawnp(&child, "sbatch", &actions, nullptr, ExecWords(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input);
  close(pipes[1]);
  if (error == 0) id = PassOn(pipes[0]);
  close(pipes[0]);
  if (error == 0) return StatusOf(child);
  return Fail(fmt::format("cannot start sbatch: {}", error == ENOENT ? "command not found" : strerror(error)),
              error == ENOENT ? kNotFound : kNotStarted);
}

// Where the files of job `id` will lie. "": what else the folder's name takes is not known here.
std::string FolderOf(const RunOptions& options, const std::string& id) {
  const std::string pattern = NamedPattern(options);
  if (pattern.empty()) return FolderOfRanks({.job = id});
  std::string folder;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      folder += pattern[i];
      continue;
    }
    const char what = ++i < pattern.size() ? pattern[i] : '\0';
    if (what != 'j' && what != '%') return "";
    folder += what == 'j' ? id : "%";
  }
  return folder;
}

// Whether sbatch is given the option of that letter ("-a") and name ("--array").
bool Has(const std::vector<std::string>& options, std::string_view letter, const std::string& name) {
  return std::ranges::any_of(options, [&](const std::string& option) {
    return option.starts_with(letter) || option == name || option.starts_with(name + "=");
  });
}

// Each task of an array has a number of its own, which is not known yet.
bool IsArray(const std::vector<std::string>& options) {
  const char* const variable = getenv("SBATCH_ARRAY_INX");
  return (variable != nullptr && *variable != '\0') || Has(options, "-a", "--array");
}

// What else sbatch may have to say, its help or its version, names no job.
bool IsNumber(std::string_view id) {
  return !id.empty() && std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
}

// `own` are the words of `ours`, the options for us.
int Submit(const RunOptions& ours, const std::vector<std::string>& own,
           const std::vector<std::string>& options, const std::vector<std::string>& job) {
  if (job.empty()) return Fail("slurm submit needs the job's command line behind --", kUsage);
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return Fail(fmt::format("cannot read /proc/self/exe: {}", error.message()), kUsage);
  std::string id;
  const int status = Sbatch(options, BatchScript(self, own, job), id);
  id = id.substr(0, id.find_first_of(";\n"));  // "12;cluster" where there are several
  if (status == kFine && IsNumber(id)) {
    if (IsArray(options)) {
      Say(fmt::format(
          "job {}, an array; one summary at the end of each task's output, which says where its files are",
          id));
      return status;
    }
    Say(fmt::format("job {}; one summary at the end of its output", id));
    const bool elsewhere = Has(options, "-D", "--chdir");
    if (const std::string folder = FolderOf(ours, id); !folder.empty() && !elsewhere) {
      SayNext(fmt::format("merge {}", QuotedFile(folder)));
    }
  }
  return status;
}

}  // namespace

void AddSlurm(CLI::App& app, const std::vector<std::string>& words, const std::vector<std::string>& job,
              int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("slurm", "Run a job's steps from a batch script, or submit one: slurm submit");
  JobCommand kind;
  if (const replay::Launched here = LaunchedHere(); here.job != "0") kind.folder = FolderOfRanks(here);
  // In front of `submit` stand options for us, behind it those for sbatch.
  kind.instead = [words, &job](const RunOptions& options,
                               const std::vector<std::string>& left_over) -> std::optional<int> {
    if (left_over.empty() || left_over[0] != "submit") return std::nullopt;
    const std::vector<std::string> own(words.begin() + 1,
                                       words.end() - static_cast<std::ptrdiff_t>(left_over.size()));
    return Submit(options, own, {left_over.begin() + 1, left_over.end()}, job);
  };
  AddJobOptions(command, kind, job, exit_status);
  command->footer(
      "In a batch script:\n"
      "  reprise slurm -- srun python train.py\n"
      "Everything that run takes; files go to reprise-out/JOB, one summary of all ranks at the end.\n\n"
      "From anywhere, with a batch script made for it:\n"
      "  reprise slurm submit --nodes=2 --ntasks=8 -- python train.py\n"
      "The words between submit and -- are sbatch's, options for reprise stand in front of submit. Prints "
      "the "
      "job's\nnumber; the status is that of sbatch, which with --wait is the job's.");
}

}  // namespace reprise::cli
