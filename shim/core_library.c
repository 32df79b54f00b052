#define _GNU_SOURCE
#include "shim/core_library.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/environment.h"
#include "shim/old_glibc.h"

/* The system's own call: the C library's fstat is bound to the newest that it is compiled with. */
static struct reprise_stderr stderr_now(void) {
  struct stat now;
  struct reprise_stderr found = {0};
  const int saved = errno;
  if (syscall(SYS_fstat, STDERR_FILENO, &now) == 0) {
    found.open = 1;
    found.device = now.st_dev;
    found.inode = now.st_ino;
  }
  errno = saved;
  return found;
}

/* The constructors of other libraries may come first, and allocate. */
struct reprise_stderr reprise_stderr_at_start(void) {
  static int known;
  static struct reprise_stderr at_start;
  if (!known) at_start = stderr_now();
  known = 1;
  return at_start;
}

/* The system's own call, which says how much of a mask there is. */
const struct reprise_cpus* reprise_cpus_at_start(void) {
  static struct reprise_cpus at_start;
  if (!at_start.bytes) {
    const int saved = errno;
    const long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof at_start.mask, at_start.mask);
    if (bytes > 0) at_start.bytes = (size_t)bytes;
    errno = saved;
  }
  return &at_start;
}

__attribute__((constructor)) static void note_the_start(void) {
  reprise_stderr_at_start();
  reprise_cpus_at_start();
}

static int is_still_stderr(void) {
  const struct reprise_stderr then = reprise_stderr_at_start(), now = stderr_now();
  return then.open && now.open && then.device == now.device && then.inode == now.inode;
}

/* To stderr. If nobody reads it any more, or it is a file at its limit, that must not end the job, and must not stop
 * it if it is a terminal where only the foreground may write, or a pipe that is full. */
static void write_quietly(const char* text, size_t length) {
  enum { for_a_slow_reader = 1000 }; /* milliseconds */
  struct pollfd target = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&target, 1, for_a_slow_reader) <= 0) return;
  static const struct timespec now;
  sigset_t held, raised, before, pending;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  held = raised;
  sigaddset(&held, SIGTTOU); /* the write then goes through */
  sigpending(&pending);
  sigprocmask(SIG_BLOCK, &held, &before); /* of this thread, on Linux; pthread_sigmask is too new */
  if (write(STDERR_FILENO, text, length) < 0) {
    /* Takes back what the write raised, and leaves what was on its way to the job before. */
    if (errno != EPIPE || sigismember(&pending, SIGPIPE)) sigdelset(&raised, SIGPIPE);
    if (errno != EFBIG || sigismember(&pending, SIGXFSZ)) sigdelset(&raised, SIGXFSZ);
    sigtimedwait(&raised, NULL, &now);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Those of ASCII, and U+0080 to U+009F in UTF-8, of which each byte is one: as in base/printable.h. */
static int is_control(const char* text, const char* at) {
  const unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
  const unsigned char before = at > text ? (unsigned char)at[-1] : 0;
  return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next < 0xa0) ||
         (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
}

/* What `room` has room for of `text`, each control character as in a C string: a path must neither move the cursor
 * nor break the line. How much that is. */
static size_t put_printable(const char* text, char* room, size_t size) {
  static const char digits[] = "0123456789abcdef";
  size_t length = 0;
  for (const char* at = text; *at; ++at) {
    const unsigned char byte = (unsigned char)*at;
    const char escaped[] = {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    const int control = is_control(text, at);
    const size_t bytes = control ? sizeof escaped : 1;
    if (bytes > size - length) break;
    memcpy(room + length, control ? escaped : at, bytes);
    length += bytes;
  }
  return length;
}

void reprise_say(const char* what, const char* detail) {
  if (reprise_quiet() || !is_still_stderr()) return;
  static const char end[] = "; memory is left as it is\n";
  static char line[PATH_MAX + 512];
  const char* const parts[] = {"reprise: ", what, detail ? ": " : "", detail ? detail : ""};
  const size_t room = sizeof line - (sizeof end - 1);
  size_t length = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    length += put_printable(parts[i], line + length, room - length);
  }
  memcpy(line + length, end, sizeof end - 1);
  write_quietly(line, length + sizeof end - 1);
}

/* libreprise_core.so in the folder that we were loaded from. */
static const char* core_path(void) {
  static const char name[] = "libreprise_core.so";
  static char path[PATH_MAX];
  Dl_info self;
  if (!dladdr((void*)core_path, &self) || !self.dli_fname) return NULL;
  const char* const slash = strrchr(self.dli_fname, '/');
  const size_t folder = slash ? (size_t)(slash - self.dli_fname) + 1 : 0;
  if (folder + sizeof name > sizeof path) return NULL;
  memcpy(path, self.dli_fname, folder);
  memcpy(path + folder, name, sizeof name);
  return path;
}

/* A file cut short (a copy that did not finish) would not fail to open: the loader would map it, read past
 * its end and end the process. */
static int is_whole(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  const off_t size = lseek(file, 0, SEEK_END);
  ElfW(Ehdr) header;
  /* What is no library at all, or cannot be read, is for the loader to say. */
  const int is_library =
      pread(file, &header, sizeof header, 0) == sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  int whole = 1;
  for (int i = 0; is_library && whole && i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    const off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof part);
    const ssize_t bytes = pread(file, &part, sizeof part, at);
    whole = bytes < 0 || (bytes == sizeof part && part.p_filesz <= (size_t)size &&
                          part.p_offset <= (size_t)size - part.p_filesz);
  }
  close(file);
  return whole;
}

void* reprise_core_function(const char* name, reprise_lookup_fn lookup) {
  if (!dlopen || !dlerror || !dladdr) return NULL; /* an old glibc, and no core can be for it */
  const char* const path = core_path();
  if (path && !is_whole(path)) {
    reprise_say("the core library is cut short", path);
    return NULL;
  }
  void* const library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    reprise_say("cannot open the core library", path ? dlerror() : "its folder is unknown");
    return NULL;
  }
  void* const function = lookup(library, name);
  if (!function) reprise_say("cannot use the core library", dlerror());
  return function;
}
