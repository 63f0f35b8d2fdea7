// Shows a process a folder as through an NFS client's caches; a library to preload. It is the worst that nfs(5) allows
// ("DATA AND METADATA COHERENCE"), in milliseconds instead of a minute. The files are this machine's own. A process
// that has not preloaded the library writes there as another machine would. Programs that a process starts with the
// library do not inherit it.
//
//   NFS_FOLDER=DIR     the folder; others are as they are
//   NFS_LATE_MS=N      for how long changes by others there stay unseen
//   NFS_CTO=0          as mounted with `nocto`: opening a file to read does not ask for its size again
//   NFS_STALE=NAME:N   the first N times that a file of this name is opened to read, its handle is stale (ESTALE)
//   NFS_LOG=FILE       gets a line for each answer that was outdated: "missing NAME", "short NAME", "stale NAME"
//
// A name that others made is missing (`lookupcache=all`), and a file has its last known size (`acregmax`), until this
// much time has passed since the change could have been seen. That is as late as if somebody on this machine had looked
// an instant before the change. As in Linux' client, the process sees the current state of what it makes or opens to
// write. Opening a file to read asks for its size (close-to-open), but not for a name that is known to be missing.
// Reading a folder updates all its names and sizes.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace {

struct State {
  bool there = false;
  off_t size = 0;
  bool operator==(const State&) const = default;
};

struct Entry {
  State seen;        // what the client knows
  State news;        // what it does not know yet
  int64_t since_ms;  // since when there has been such news
};

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int64_t NowMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

State TruthOf(const std::string& path) {
  static auto* const lstat_of = Real<int(const char*, struct stat*)>("lstat");
  struct stat info {};
  return lstat_of(path.c_str(), &info) == 0 ? State{true, S_ISREG(info.st_mode) ? info.st_size : 0} : State{};
}

class Client {
 public:
  Client() {
    const std::string stale = Variable("NFS_STALE");
    stale_name_ = stale.substr(0, stale.find(':'));
    stale_left_ = stale.find(':') == std::string::npos ? 0 : std::atoi(stale.c_str() + stale.find(':') + 1);
    ::unsetenv("LD_PRELOAD");
  }

  // Returns an empty text for a path outside the folder.
  std::string PathOf(const char* path) const {
    if (path == nullptr || folder_.empty()) return {};
    std::string whole = path;
    if (!whole.starts_with('/')) {
      char here[4096];
      if (::getcwd(here, sizeof here) == nullptr) return {};
      whole = std::string(here) + '/' + whole;
    }
    return whole.starts_with(folder_ + '/') ? whole : "";
  }

  bool IsMissing(const std::string& path) { return !Look(path).there; }
  off_t SizeOf(const std::string& path) { return Look(path).size; }

  // Updates what is known, as if this process asked the server.
  void Ask(const std::string& path) {
    const State truth = TruthOf(path);
    entries_[path] = {truth, truth, 0};
  }
  void AskOfFolder(const std::string& folder) {
    static auto* const open_folder = Real<DIR*(const char*)>("opendir");
    DIR* const names = open_folder(folder.c_str());
    if (names == nullptr) return;
    while (const dirent* name = ::readdir(names)) Ask(folder + '/' + name->d_name);
    ::closedir(names);
  }

  bool IsStale(const std::string& path) {
    if (stale_left_ == 0 || NameOf(path) != stale_name_) return false;
    --stale_left_;
    Say("stale", path);
    return true;
  }

  bool closes_to_open() const { return closes_to_open_; }
  std::map<int, std::string>& opened() { return opened_; }
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  static std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  const State& Look(const std::string& path) {
    const State truth = TruthOf(path);
    Entry& entry = entries_[path];
    if (entry.news != truth) {
      entry.news = truth;
      entry.since_ms = NowMs();
    }
    if (!truth.there || NowMs() - entry.since_ms >= late_ms_) entry.seen = truth;
    if (truth != entry.seen) Say(entry.seen.there ? "short" : "missing", path);
    return entry.seen;
  }

  void Say(const char* what, const std::string& path) const {
    if (log_.empty()) return;
    static auto* const open_file = Real<int(const char*, int, ...)>("open");
    const int fd = open_file(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const std::string line = std::string(what) + ' ' + NameOf(path) + '\n';
    if (fd < 0 || ::write(fd, line.data(), line.size()) < 0) std::abort();
    ::close(fd);
  }

  const std::string folder_ = Variable("NFS_FOLDER");
  const std::string log_ = Variable("NFS_LOG");
  const int64_t late_ms_ = std::atoll(Variable("NFS_LATE_MS").c_str());
  const bool closes_to_open_ = Variable("NFS_CTO") != "0";
  std::string stale_name_;
  int stale_left_ = 0;
  std::recursive_mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<int, std::string> opened_;  // opened to read; the client shows them only to their known size
};

Client& Ours() {
  static Client client;
  return client;
}
// Made before the process can start another one.
[[maybe_unused]] const Client& first_of_all = Ours();

int OpenAs(const char* name, const char* path, int flags, mode_t mode) {
  auto* const open_file = Real<int(const char*, int, ...)>(name);
  const std::string ours = Ours().PathOf(path);
  if (ours.empty()) return open_file(path, flags, mode);
  const std::lock_guard lock(Ours().mutex());
  const bool reads = (flags & (O_CREAT | O_ACCMODE)) == O_RDONLY && (flags & O_DIRECTORY) == 0;
  if (reads && Ours().IsMissing(ours)) return errno = ENOENT, -1;
  if (reads && Ours().IsStale(ours)) return errno = ESTALE, -1;
  const int fd = open_file(path, flags, mode);
  if (fd < 0) return fd;
  if (!reads || Ours().closes_to_open()) Ours().Ask(ours);
  if (reads) Ours().opened()[fd] = ours;
  return fd;
}

int StatAs(const char* name, const char* path, struct stat* info) {
  auto* const stat_of = Real<int(const char*, struct stat*)>(name);
  const std::string ours = Ours().PathOf(path);
  if (ours.empty()) return stat_of(path, info);
  const std::lock_guard lock(Ours().mutex());
  if (Ours().IsMissing(ours)) return errno = ENOENT, -1;
  const int error = stat_of(path, info);
  if (error == 0 && S_ISREG(info->st_mode)) info->st_size = Ours().SizeOf(ours);
  return error;
}

}  // namespace

#define SEEN extern "C" __attribute__((visibility("default")))

SEEN int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return OpenAs("open", path, flags, mode);
}
// What _FORTIFY_SOURCE makes of a call without a mode.
SEEN int OpenWithoutMode(const char* path, int flags) __asm__("__open_2");
int OpenWithoutMode(const char* path, int flags) { return OpenAs("open", path, flags, 0); }

SEEN int stat(const char* __restrict path, struct stat* __restrict info) noexcept { return StatAs("stat", path, info); }
SEEN int lstat(const char* __restrict path, struct stat* __restrict info) noexcept {
  return StatAs("lstat", path, info);
}

SEEN int fstat(int fd, struct stat* info) noexcept {
  const int error = Real<int(int, struct stat*)>("fstat")(fd, info);
  const std::lock_guard lock(Ours().mutex());
  const auto file = Ours().opened().find(fd);
  if (error == 0 && file != Ours().opened().end()) info->st_size = Ours().SizeOf(file->second);
  return error;
}

SEEN ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  const std::lock_guard lock(Ours().mutex());
  const auto file = Ours().opened().find(fd);
  if (file != Ours().opened().end()) {
    size = std::min(size, static_cast<size_t>(std::max<off_t>(0, Ours().SizeOf(file->second) - offset)));
  }
  return Real<ssize_t(int, void*, size_t, off_t)>("pread")(fd, bytes, size, offset);
}

SEEN int close(int fd) {
  const std::lock_guard lock(Ours().mutex());
  Ours().opened().erase(fd);
  return Real<int(int)>("close")(fd);
}

SEEN int mkdir(const char* path, mode_t mode) noexcept {
  const int error = Real<int(const char*, mode_t)>("mkdir")(path, mode);
  const int why = errno;
  const std::lock_guard lock(Ours().mutex());
  if (const std::string ours = Ours().PathOf(path); !ours.empty()) Ours().Ask(ours);
  errno = why;
  return error;
}

SEEN int rename(const char* from, const char* to) noexcept {
  const int error = Real<int(const char*, const char*)>("rename")(from, to);
  const int why = errno;
  const std::lock_guard lock(Ours().mutex());
  if (const std::string ours = Ours().PathOf(to); !ours.empty()) Ours().Ask(ours);
  errno = why;
  return error;
}

SEEN int access(const char* path, int mode) noexcept {
  const std::string ours = Ours().PathOf(path);
  const std::lock_guard lock(Ours().mutex());
  if (!ours.empty() && Ours().IsMissing(ours)) return errno = ENOENT, -1;
  return Real<int(const char*, int)>("access")(path, mode);
}

// How the C++ library opens a folder to read it.
SEEN DIR* fdopendir(int fd) {
  std::error_code ec;
  const std::string folder = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ec);
  const std::lock_guard lock(Ours().mutex());
  if (const std::string ours = Ours().PathOf(folder.c_str()); !ours.empty()) Ours().AskOfFolder(ours);
  return Real<DIR*(int)>("fdopendir")(fd);
}
