/* Files of which nothing but their beginning can be read by its place. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pread(int file, void* bytes, size_t count, off_t at) {
  if (at == 0) return syscall(SYS_pread64, file, bytes, count, at);
  errno = EIO;
  return -1;
}
