// Loaded before the C library (LD_PRELOAD): counts the calls by which a program changes files, and
// makes some of them fail, or the program end, so that a test can go through all of them.
//
//   PACELINE_FAIL_AT=N      the N-th call, counted from 1
//   PACELINE_FAIL_HOW       fail: it alone fails; all: it and every later one; kill: the program
//                           ends before it, as by a kill
//   PACELINE_FAIL_COUNT=F   the number of calls is written to this file at the end
//   PACELINE_FAKE_FREE=N    so many bytes are free on every disk
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls = 0;
thread_local bool ours = false;  // while this file itself writes

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Whether the call that is about to be made must fail, with errno set.
bool fails() {
  if (ours) return false;
  static const char* const at = std::getenv("PACELINE_FAIL_AT");
  static const char* const how = std::getenv("PACELINE_FAIL_HOW");
  const long n = ++calls;
  if (at == nullptr || how == nullptr) return false;
  const long wanted = std::atol(at);
  if (std::strcmp(how, "all") == 0 ? n < wanted : n != wanted) return false;
  if (std::strcmp(how, "kill") == 0) _exit(137);
  errno = ENOSPC;
  return true;
}

struct Report {
  ~Report() {
    const char* const file = std::getenv("PACELINE_FAIL_COUNT");
    if (file == nullptr) return;
    ours = true;
    if (std::FILE* out = std::fopen(file, "w")) {
      std::fprintf(out, "%ld\n", calls.load());
      std::fclose(out);
    }
  }
} report;

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

}  // namespace

// The C library's own names, with C linkage and without the attributes of its headers.
#define PACELINE_WRAP(NAME, PARAMETERS, ARGUMENTS)             \
  int NAME PARAMETERS {                                        \
    return fails() ? -1 : real<int PARAMETERS>(#NAME) ARGUMENTS; \
  }

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (writes(flags) && fails()) return -1;
  return real<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (fd > STDERR_FILENO && fails()) return -1;
  return real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, count);
}

PACELINE_WRAP(fsync, (int fd), (fd))
PACELINE_WRAP(rename, (const char* from, const char* to), (from, to))
PACELINE_WRAP(unlink, (const char* path), (path))
PACELINE_WRAP(unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
PACELINE_WRAP(remove, (const char* path), (path))
PACELINE_WRAP(rmdir, (const char* path), (path))
PACELINE_WRAP(mkdir, (const char* path, mode_t mode), (path, mode))
PACELINE_WRAP(link, (const char* from, const char* to), (from, to))
PACELINE_WRAP(symlink, (const char* target, const char* path), (target, path))

int statvfs(const char* path, struct statvfs* out) {
  const int result = real<int(const char*, struct statvfs*)>("statvfs")(path, out);
  const char* const free_bytes = std::getenv("PACELINE_FAKE_FREE");
  if (result == 0 && free_bytes != nullptr) {
    out->f_bavail = std::strtoull(free_bytes, nullptr, 10) / out->f_frsize;
  }
  return result;
}

}  // extern "C"
