// A library that is preloaded into a program (LD_PRELOAD), between it and the C library. Disks fail or are read-only,
// writes are cut short, no process or thread starts, and the wall clock jumps, as faults.h says. Trainers get no
// faults: how they handle a bad disk is their own responsibility, and shows in a point's result.
#include "tests/torture/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace {

using ridgeline::testing::Faults;

Faults* g_faults = nullptr;  // null: no faults

__attribute__((constructor)) void Begin() {
  const char* file = std::getenv(ridgeline::testing::kFaultsVariable);
  if (file == nullptr || std::strstr(program_invocation_short_name, "trainer") != nullptr) return;
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = ::mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory != MAP_FAILED) g_faults = static_cast<Faults*>(memory);
}

// From 0 to 999; each thread has its own sequence.
uint32_t Dice() {
  thread_local uint64_t state = static_cast<uint64_t>(::syscall(SYS_gettid)) * 0x9e3779b97f4a7c15U + 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<uint32_t>(state >> 20) % 1000;
}

bool IsOurs(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  // No stream and no allocation, because this may be called from anywhere.
  char* at = static_cast<char*>(::mempcpy(link.data(), "/proc/self/fd/", 14));
  std::array<char, 12> digits{};
  size_t count = 0;
  do digits[count++] = static_cast<char>('0' + fd % 10);
  while ((fd /= 10) > 0);
  while (count > 0) *at++ = digits[--count];
  const ssize_t n = ::readlink(link.data(), path.data(), path.size());
  return n > 0 && std::string_view(path.data(), static_cast<size_t>(n)).starts_with(g_faults->folder);
}

bool Fails(int fd) {
  if (g_faults == nullptr || Dice() >= g_faults->failing || !IsOurs(fd)) return false;
  ++g_faults->failed;
  errno = EIO;
  return true;
}

bool IsReadOnly(int fd) {
  if (g_faults == nullptr || !g_faults->read_only || !IsOurs(fd)) return false;
  ++g_faults->refused;
  errno = EROFS;
  return true;
}

// Decides by the whole path, which our programs use for files that they make.
bool IsReadOnly(const char* path) {
  if (g_faults == nullptr || !g_faults->read_only || !std::string_view(path).starts_with(g_faults->folder))
    return false;
  ++g_faults->refused;
  errno = EROFS;
  return true;
}

int Open(int folder, const char* path, int flags, mode_t mode) {
  const bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
  return changes && IsReadOnly(path) ? -1 : static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

size_t Cut(int fd, size_t size) {
  if (g_faults == nullptr || size < 2 || Dice() >= g_faults->shortened || !IsOurs(fd)) return size;
  ++g_faults->cut;
  return size / 2;
}

bool Starts() {
  if (g_faults == nullptr || Dice() >= g_faults->not_starting) return true;
  ++g_faults->unstarted;
  errno = EAGAIN;
  return false;
}

// The C library's own function of that name.
template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int64_t AheadNs() {
  const int64_t ahead_ns = g_faults == nullptr ? 0 : g_faults->clock_ahead_ns.load();
  if (ahead_ns != 0) ++g_faults->misled;
  return ahead_ns;
}

}  // namespace

// The C library's own names. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

ssize_t read(int fd, void* to, size_t size) { return Fails(fd) ? -1 : ::syscall(SYS_read, fd, to, size); }
ssize_t pread(int fd, void* to, size_t size, off_t at) {
  return Fails(fd) ? -1 : ::syscall(SYS_pread64, fd, to, size, at);
}
ssize_t pread64(int fd, void* to, size_t size, off_t at) { return pread(fd, to, size, at); }
ssize_t write(int fd, const void* from, size_t size) {
  return Fails(fd) || IsReadOnly(fd) ? -1 : ::syscall(SYS_write, fd, from, Cut(fd, size));
}
ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  return Fails(fd) || IsReadOnly(fd) ? -1 : ::syscall(SYS_pwrite64, fd, from, Cut(fd, size), at);
}
ssize_t pwrite64(int fd, const void* from, size_t size, off_t at) { return pwrite(fd, from, size, at); }
int fsync(int fd) { return Fails(fd) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return Fails(fd) ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd)); }

// The mode exists if the call makes a file. Otherwise it is an arbitrary number that nothing reads.
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return Open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return Open(AT_FDCWD, path, flags, mode);
}
// _FORTIFY_SOURCE turns a call without a mode into this.
int OpenWithoutMode(const char* path, int flags) __asm__("__open_2");
int OpenWithoutMode(const char* path, int flags) { return Open(AT_FDCWD, path, flags, 0); }
int OpenWithoutMode64(const char* path, int flags) __asm__("__open64_2");
int OpenWithoutMode64(const char* path, int flags) { return Open(AT_FDCWD, path, flags, 0); }
int ftruncate(int fd, off_t size) noexcept {
  return IsReadOnly(fd) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}
int ftruncate64(int fd, off_t size) noexcept { return ftruncate(fd, size); }
int mkdir(const char* path, mode_t mode) noexcept {
  return IsReadOnly(path) ? -1 : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}
int rename(const char* from, const char* to) noexcept {
  return IsReadOnly(to) ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}
int unlink(const char* path) noexcept { return IsReadOnly(path) ? -1 : static_cast<int>(::syscall(SYS_unlink, path)); }

pid_t fork() noexcept {
  static auto* const real = Real(&fork, "fork");
  return Starts() ? real() : -1;
}
int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
  static auto* const real = Real(&posix_spawnp, "posix_spawnp");
  return Starts() ? real(pid, file, actions, attributes, argv, environment) : EAGAIN;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* of) noexcept {
  static auto* const real = Real(&pthread_create, "pthread_create");
  return Starts() ? real(thread, attributes, start, of) : EAGAIN;
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t ns = now->tv_sec * kSecondNs + now->tv_nsec + AheadNs();
  *now = {ns / kSecondNs, ns % kSecondNs};
  return 0;
}
int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec exact{};
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  *now = {exact.tv_sec, exact.tv_nsec / 1000};
  return 0;
}
time_t time(time_t* now) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now != nullptr) *now = exact.tv_sec;
  return exact.tv_sec;
}

}  // extern "C". NOLINTEND(bugprone-reserved-identifier)
