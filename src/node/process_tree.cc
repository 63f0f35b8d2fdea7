#include "node/process_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostDescendants = 65'536;  // the most that are counted of a fork bomb

constexpr size_t kMostEnvironment = size_t{128} << 10;  // bytes of a process's environment that are searched
constexpr int64_t kScanPauseNs = 250'000'000;
constexpr int64_t kGoneLookNs = 20'000'000;
constexpr int kGoneLooks = 250;

std::string ProcOf(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Whether the process is ours and has `entry`, "NAME=VALUE", in its environment.
bool Has(pid_t pid, const std::string& entry) {
  struct stat info {};
  const std::string proc = ProcOf(pid);
  if (::stat(proc.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return false;
  const Fd fd(::open((proc + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
  std::string environment(kMostEnvironment, '\0');  // an environment ends with such a byte
  const ssize_t size = fd.get() < 0 ? -1 : ::read(fd.get(), environment.data() + 1, environment.size() - 2);
  return size > 0 && std::string_view(environment).substr(0, static_cast<size_t>(size) + 2).find('\0' + entry + '\0') !=
                         std::string_view::npos;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code ec;
  for (fs::directory_iterator task(ProcOf(pid) + "/task", ec), end; !ec && task != end; task.increment(ec)) {
    std::ifstream in(task->path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> ProcessTree::All() {
  LookForMarked();
  std::vector<pid_t> found = ChildrenOf(::getpid());
  found.insert(found.end(), marked_lately_.begin(), marked_lately_.end());
  std::set<pid_t> seen;
  std::vector<pid_t> all;
  for (size_t i = 0; i < found.size() && all.size() < kMostDescendants; ++i) {
    if (!seen.insert(found[i]).second) continue;
    all.push_back(found[i]);
    const std::vector<pid_t> children = ChildrenOf(found[i]);
    found.insert(found.end(), children.begin(), children.end());
  }
  return all;
}

std::vector<pid_t> ProcessTree::Marked() const {
  std::vector<pid_t> found;
  if (mark_.empty()) return found;
  const std::string entry = std::string(kMarkVariable) + '=' + mark_;
  std::error_code ec;
  for (fs::directory_iterator at("/proc", ec), end; !ec && at != end; at.increment(ec)) {
    const pid_t pid = std::atoi(at->path().filename().c_str());
    if (pid > 0 && pid != ::getpid() && Has(pid, entry)) found.push_back(pid);
  }
  return found;
}

void ProcessTree::LookForMarked() {
  const SystemClock clock;
  if (mark_.empty() || clock.MonotonicNs() < next_scan_ns_) return;
  marked_lately_ = Marked();
  next_scan_ns_ = clock.MonotonicNs() + kScanPauseNs;
}

void ProcessTree::EndMarked() const {
  SystemClock clock;
  for (int look = 0; look < kGoneLooks; ++look) {
    const std::vector<pid_t> left = Marked();
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    clock.SleepNs(kGoneLookNs);
  }
}

void ProcessTree::End() {
  EndMarked();
  const auto own = [] { return ChildrenOf(::getpid()); };
  for (std::vector<pid_t> children = own(); !children.empty(); children = own()) {
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  }
}

Resident ResidentOf(pid_t pid) {
  std::ifstream in(ProcOf(pid) + "/statm");
  int64_t size = 0;  // all in pages
  int64_t resident = 0;
  int64_t shared = 0;
  in >> size >> resident >> shared;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return in ? Resident{resident * page, shared * page} : Resident{};
}

int64_t ProcessTree::HeldBytes() {
  int64_t own = 0;
  int64_t shared = 0;
  for (const pid_t pid : All()) {
    const Resident resident = ResidentOf(pid);
    own += resident.bytes - resident.shared_bytes;
    shared = std::max(shared, resident.shared_bytes);
  }
  return own + shared;
}

int64_t ProcessTree::ProportionalBytes() {
  int64_t kib = 0;
  for (const pid_t pid : All()) {
    std::ifstream in(ProcOf(pid) + "/smaps_rollup");
    std::string word;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // skips the range
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "Pss:") kib += value;
      if (word == "Pss:") break;
      in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
  }
  return kib * 1024;
}

int64_t ProcessTree::WrittenBytes() {
  int64_t bytes = 0;
  for (const pid_t pid : All()) {
    std::ifstream in(ProcOf(pid) + "/io");
    std::string word;
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "wchar:") bytes += value;
    }
  }
  return bytes;
}

int64_t ProcessTree::UsedNs() {
  constexpr int kWordsBefore = 11;  // after the name, which may hold anything: utime is field 14, and stime 15
  const int64_t ticks_per_s = ::sysconf(_SC_CLK_TCK);
  int64_t ticks = 0;
  for (const pid_t pid : All()) {
    std::ifstream in(ProcOf(pid) + "/stat");
    std::string line;
    std::getline(in, line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream words(line.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < kWordsBefore; ++i) words >> skipped;
    int64_t user = 0;
    int64_t system = 0;
    if (words >> user >> system) ticks += user + system;
  }
  return ticks * (1'000'000'000 / ticks_per_s);
}

}  // namespace ridgeline
