#include "node/process_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"

namespace ridgeline::node {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostDescendants = 65'536;  // the most that are counted of a fork bomb

constexpr size_t kMostEnvironment = size_t{128} << 10;  // bytes of a process's environment that are searched
constexpr int64_t kScanPauseNs = 250'000'000;
constexpr int64_t kGoneLookNs = 20'000'000;
constexpr int kGoneLooks = 250;

std::string ProcOf(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Whether this process or the system lacks what it takes to look, which says nothing about what is there.
bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Reads a file of a process: as much as is searched of an environment, which is more than other files have. Empty if
// the process is gone or may not be looked at; nothing if there is a shortage.
std::optional<std::string> ReadOf(pid_t pid, const char* name) {
  char block[1 << 14];
  std::string text;
  const Fd fd(::open((ProcOf(pid) + name).c_str(), O_RDONLY | O_CLOEXEC));
  ssize_t got = fd.get() < 0 ? -1 : 1;
  while (got > 0 && text.size() < kMostEnvironment) {
    got = ::read(fd.get(), block, std::min(sizeof block, kMostEnvironment - text.size()));
    if (got > 0) text.append(block, static_cast<size_t>(got));
  }
  if (got < 0 && IsShortage(errno)) return std::nullopt;
  return text;
}

// Whether the process is ours and has `entry`, "NAME=VALUE", in its environment.
std::optional<bool> Has(pid_t pid, const std::string& entry) {
  struct stat info {};
  if (::stat(ProcOf(pid).c_str(), &info) != 0 || info.st_uid != ::geteuid()) return false;
  const std::optional<std::string> environment = ReadOf(pid, "/environ");
  if (!environment) return std::nullopt;
  return ('\0' + *environment + '\0').find('\0' + entry + '\0') != std::string::npos;
}

// The children of all threads of a process.
std::optional<std::vector<pid_t>> ChildrenOf(pid_t pid) {
  std::string all;
  std::error_code ec;
  for (fs::directory_iterator task(ProcOf(pid) + "/task", ec), end; !ec && task != end; task.increment(ec)) {
    const std::string name = "/task/" + task->path().filename().string() + "/children";
    const std::optional<std::string> children = ReadOf(pid, name.c_str());
    if (!children) return std::nullopt;
    all += *children + ' ';
  }
  if (IsShortage(ec.value())) return std::nullopt;
  std::istringstream in(all);
  std::vector<pid_t> children;
  for (pid_t child = 0; in >> child;) children.push_back(child);
  return children;
}

// Adds `figure` of each process's file `name`. Nothing if there is a shortage.
std::optional<int64_t> SumOver(const std::optional<std::vector<pid_t>>& processes, const char* name,
                               const std::function<int64_t(const std::string& text)>& figure) {
  if (!processes) return std::nullopt;
  int64_t sum = 0;
  for (const pid_t pid : *processes) {
    const std::optional<std::string> text = ReadOf(pid, name);
    if (!text) return std::nullopt;
    sum += figure(*text);
  }
  return sum;
}

}  // namespace

std::optional<std::vector<pid_t>> ProcessTree::All() {
  LookForMarked();
  std::optional<std::vector<pid_t>> found = ChildrenOf(::getpid());
  if (!found) return std::nullopt;
  found->insert(found->end(), marked_lately_.begin(), marked_lately_.end());
  std::set<pid_t> seen;
  std::vector<pid_t> all;
  for (size_t i = 0; i < found->size() && all.size() < kMostDescendants; ++i) {
    const pid_t pid = (*found)[i];
    if (!seen.insert(pid).second) continue;
    all.push_back(pid);
    const std::optional<std::vector<pid_t>> children = ChildrenOf(pid);
    if (!children) return std::nullopt;
    found->insert(found->end(), children->begin(), children->end());
  }
  return all;
}

std::optional<std::vector<pid_t>> ProcessTree::Marked() const {
  std::vector<pid_t> found;
  if (mark_.empty()) return found;
  const std::string entry = std::string(kMarkVariable) + '=' + mark_;
  std::error_code ec;
  for (fs::directory_iterator at("/proc", ec), end; !ec && at != end; at.increment(ec)) {
    const pid_t pid = std::atoi(at->path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    const std::optional<bool> has = Has(pid, entry);
    if (!has) return std::nullopt;
    if (*has) found.push_back(pid);
  }
  if (ec) return std::nullopt;
  return found;
}

void ProcessTree::LookForMarked() {
  const SystemClock clock;
  if (mark_.empty() || clock.MonotonicNs() < next_scan_ns_) return;
  if (auto marked = Marked()) marked_lately_ = *std::move(marked);
  next_scan_ns_ = clock.MonotonicNs() + kScanPauseNs;
}

bool ProcessTree::EndMarked() const {
  SystemClock clock;
  bool sees = true;
  for (int look = 0; look < kGoneLooks; ++look) {
    const std::optional<std::vector<pid_t>> left = Marked();
    sees = left.has_value();
    if (sees && left->empty()) return true;
    for (const pid_t pid : left.value_or(std::vector<pid_t>())) ::kill(pid, SIGKILL);
    clock.SleepNs(kGoneLookNs);
  }
  return sees;
}

bool ProcessTree::End() {
  SystemClock clock;
  const bool marked_ended = EndMarked();
  for (int blind = 0; blind < kGoneLooks;) {
    const std::optional<std::vector<pid_t>> children = ChildrenOf(::getpid());
    if (!children) {  // the kernel still says whether there are any
      ++blind;
      if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return marked_ended;
      clock.SleepNs(kGoneLookNs);
      continue;
    }
    if (children->empty()) return marked_ended;
    for (const pid_t pid : *children) ::kill(pid, SIGKILL);
    for (const pid_t pid : *children) ::waitpid(pid, nullptr, 0);
  }
  return false;
}

std::optional<Resident> ResidentOf(pid_t pid) {
  const std::optional<std::string> text = ReadOf(pid, "/statm");
  if (!text) return std::nullopt;
  std::istringstream in(*text);
  int64_t size = 0;  // all in pages
  int64_t resident = 0;
  int64_t shared = 0;
  in >> size >> resident >> shared;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return in ? Resident{resident * page, shared * page} : Resident{};
}

std::optional<int64_t> ProcessTree::HeldBytes() {
  const std::optional<std::vector<pid_t>> all = All();
  if (!all) return std::nullopt;
  int64_t own = 0;
  int64_t shared = 0;
  for (const pid_t pid : *all) {
    const std::optional<Resident> resident = ResidentOf(pid);
    if (!resident) return std::nullopt;
    own += resident->bytes - resident->shared_bytes;
    shared = std::max(shared, resident->shared_bytes);
  }
  return own + shared;
}

std::optional<int64_t> ProcessTree::ProportionalBytes() {
  const auto kib = SumOver(All(), "/smaps_rollup", [](const std::string& text) {
    std::istringstream in(text);
    std::string word;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // skips the range
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "Pss:") return value;
      in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return int64_t{0};
  });
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

std::optional<int64_t> ProcessTree::WrittenBytes() {
  return SumOver(All(), "/io", [](const std::string& text) {
    std::istringstream in(text);
    std::string word;
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "wchar:") return value;
    }
    return int64_t{0};
  });
}

std::optional<int64_t> ProcessTree::UsedNs() {
  constexpr int kWordsBefore = 11;  // after the name, which may hold anything: utime is field 14, and stime 15
  const int64_t ticks_per_s = ::sysconf(_SC_CLK_TCK);
  const auto ticks = SumOver(All(), "/stat", [](const std::string& text) {
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return int64_t{0};
    std::istringstream words(text.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < kWordsBefore; ++i) words >> skipped;
    int64_t user = 0;
    int64_t system = 0;
    return words >> user >> system ? user + system : 0;
  });
  return ticks ? std::optional(*ticks * (1'000'000'000 / ticks_per_s)) : std::nullopt;
}

}  // namespace ridgeline::node
