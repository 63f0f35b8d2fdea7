#include "node/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostDescendants = 65'536;  // of a fork bomb no more are counted

std::string ProcOf(pid_t pid) { return "/proc/" + std::to_string(pid); }

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

std::vector<pid_t> Descendants() {
  std::vector<pid_t> found = ChildrenOf(::getpid());
  for (size_t i = 0; i < found.size() && found.size() < kMostDescendants; ++i) {
    const std::vector<pid_t> children = ChildrenOf(found[i]);
    found.insert(found.end(), children.begin(), children.end());
  }
  return found;
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

int64_t HeldByTree() {
  int64_t own = 0;
  int64_t shared = 0;
  for (const pid_t pid : Descendants()) {
    const Resident resident = ResidentOf(pid);
    own += resident.bytes - resident.shared_bytes;
    shared = std::max(shared, resident.shared_bytes);
  }
  return own + shared;
}

int64_t ProportionalOfTree() {
  int64_t kib = 0;
  for (const pid_t pid : Descendants()) {
    std::ifstream in(ProcOf(pid) + "/smaps_rollup");
    std::string word;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // the range that it is of
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "Pss:") kib += value;
      if (word == "Pss:") break;
      in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
  }
  return kib * 1024;
}

int64_t WrittenByTree() {
  int64_t bytes = 0;
  for (const pid_t pid : Descendants()) {
    std::ifstream in(ProcOf(pid) + "/io");
    std::string word;
    int64_t value = 0;
    while (in >> word >> value) {
      if (word == "wchar:") bytes += value;
    }
  }
  return bytes;
}

}  // namespace ridgeline
