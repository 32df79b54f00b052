#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/block_signals.h"

namespace reprise {
namespace {

constexpr size_t kFirstChunk = size_t{1} << 16;

// Room for a regular file as it is now, and for the read that finds its end: text that has to grow is held twice
// over meanwhile. Of what says nothing of its size, a pipe or a file of /proc, some.
size_t FirstChunk(int fd, int64_t most_bytes) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return kFirstChunk;
  return std::max(kFirstChunk, static_cast<size_t>(std::min<int64_t>(facts.st_size, most_bytes)) + 1);
}

bool IsLarger(int fd, int64_t most_bytes) {
  struct stat facts {};
  return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > most_bytes;
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path, int64_t most_bytes) {
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(
        fmt::format("{}: more than {} bytes, the most that is read of such a file", path, most_bytes));
  };
  if (IsLarger(fd, most_bytes)) return too_large();
  std::string contents(FirstChunk(fd, most_bytes), '\0');
  size_t size = 0;
  while (true) {
    if (size == contents.size()) contents.resize(2 * size);
    const ssize_t got = read(fd, contents.data() + size, contents.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path + ": cannot be read");
    if (got == 0) break;
    size += static_cast<size_t>(got);
    if (static_cast<int64_t>(size) > most_bytes) return too_large();
  }
  contents.resize(size);
  return contents;
}

// A device that is no terminal has nothing in it (/dev/null) or no end (/dev/zero).
bool IsEndless(int fd) {
  struct stat facts {};
  char byte = 0;
  return fstat(fd, &facts) == 0 && S_ISCHR(facts.st_mode) && isatty(fd) == 0 && read(fd, &byte, 1) > 0;
}

// With the slash; "": the working folder.
std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// A name in the folder of `path`, so that a rename stays within one file system. Nobody else's, on no other
// machine either, and not what a dead process with our number has left. Without the name of `path`, which may
// be as long as names can be.
std::string DraftFor(const std::string& path) {
  static std::atomic<unsigned> drafts{0};
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::ranges::replace(host, '/', '_');  // a host may have any name
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}reprise.{}.{}.{}{:09}.{}.part", FolderOf(path), host, getpid(), now.tv_sec,
                     now.tv_nsec, drafts.fetch_add(1));
}

absl::Status WriteAndClose(int fd, const std::string& path, std::string_view text, bool synced) {
  absl::Status status;
  if (!WriteAll(fd, text) || (synced && fsync(fd) != 0)) status = SystemError("cannot write", path);
  if (close(fd) != 0 && status.ok()) status = SystemError("cannot write", path);
  return status;
}

// Makes a rename in the folder of `path` last through a power failure. Some file systems cannot: ignored.
void SyncFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Protects the draft as the file that it replaces. Whom it cannot be given to, no other gets their rights. The
// mode comes last: a change of owner takes bits from it.
bool Protect(int draft, const struct stat& replaced) {
  mode_t mode = replaced.st_mode & 07777U;
  if (fchown(draft, static_cast<uid_t>(-1), replaced.st_gid) != 0) mode &= ~mode_t{S_IRWXG | S_ISGID};
  if (fchown(draft, replaced.st_uid, static_cast<gid_t>(-1)) != 0) mode &= ~mode_t{S_ISUID};
  return fchmod(draft, mode) == 0;
}

// `replaced`: what the file is protected as; nullptr: as every new one.
absl::Status WriteByRename(const std::string& path, std::string_view text, bool synced,
                           const struct stat* replaced) {
  const std::string draft = DraftFor(path);
  // What only its owner may read is nobody else's before it is whole, either.
  const int fd = AboveStandard(
      open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaced == nullptr ? 0666 : 0600));
  if (fd < 0) return SystemError("cannot create", path);
  absl::Status status;
  if (replaced != nullptr && !Protect(fd, *replaced)) status = SystemError("cannot protect", path);
  if (absl::Status written = WriteAndClose(fd, path, text, synced); status.ok()) status = std::move(written);
  if (status.ok() && rename(draft.c_str(), path.c_str()) != 0) status = SystemError("cannot replace", path);
  if (!status.ok()) unlink(draft.c_str());
  if (status.ok() && synced) SyncFolder(path);
  return status;
}

}  // namespace

absl::Status SystemError(std::string_view what, std::string_view path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, fmt::format("{} {}", what, path));
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path + ": cannot be opened");
  absl::StatusOr<std::string> contents =
      absl::InvalidArgumentError(path + ": is a device without an end, not a file");
  if (!IsEndless(fd)) contents = ReadAll(fd, path, most_bytes);
  close(fd);
  return contents;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t most_bytes) {
  // A pipe without a writer would hold up the opening itself.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, path + ": cannot be opened");
  struct stat facts {};
  absl::StatusOr<std::string> contents =
      absl::InvalidArgumentError(path + ": is a pipe or a device, not a file");
  if (fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
    contents = ReadAll(fd, path, most_bytes);
  close(fd);
  return contents;
}

int AboveStandard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return above;
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status WriteFile(const std::string& path, std::string_view text) {
  struct stat there {};
  const bool is_there = stat(path.c_str(), &there) == 0;
  if (!is_there) {
    if (errno != ENOENT) return SystemError("cannot write", path);  // such as links in a circle
  } else if (!S_ISREG(there.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return SystemError("cannot open", path);
    return WriteAndClose(fd, path, text, /*synced=*/false);
  } else if (access(path.c_str(), W_OK) != 0) {
    return SystemError("cannot replace", path);
  }
  // Who ends the command meanwhile, from the keyboard or by a scheduler, is not left with a draft: that comes once there
  // is none any more. The command has no other thread that would take the signal.
  const BlockSignals held{SIGINT, SIGTERM, SIGHUP};
  return WriteByRename(path, text, /*synced=*/true, is_there ? &there : nullptr);
}

absl::Status ReplaceFile(const std::string& path, std::string_view text) {
  return WriteByRename(path, text, /*synced=*/false, nullptr);
}

}  // namespace reprise
