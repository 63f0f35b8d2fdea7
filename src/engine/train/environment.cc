#include "engine/train/environment.h"

#include <omp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <dnnl.hpp>

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "engine/device/cpu/cpu_class.h"

namespace ridgeline::engine {
namespace {

std::string OsName() {
  std::ifstream in("/etc/os-release");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("PRETTY_NAME=")) {
      std::string name = line.substr(12);
      std::erase(name, '"');
      return name;
    }
  }
  return "unknown";
}

// Returns facts about the machine. A parent that did not pin this process may have counted fewer cores for it than it
// sees.
std::map<std::string, std::string> Facts() {
  std::map<std::string, std::string> facts = MachineFacts();
  const char* counted = std::getenv("RIDGELINE_CORES");
  if (counted != nullptr && std::atoi(counted) > 0) facts["cores"] = std::to_string(std::atoi(counted));
  return facts;
}

}  // namespace

std::map<std::string, std::string> DescribeEnvironment(const std::vector<std::string>& command_line) {
  utsname system{};
  ::uname(&system);
  const dnnl_version_t* dnnl = dnnl_version();
  std::map<std::string, std::string> environment = Facts();
  environment.insert({
      {"cpu_class", std::string(CpuClassName(ThisCpuClass()))},
      {"threads", std::to_string(omp_get_max_threads())},
      {"kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"hostname", system.nodename},
      {"os", OsName()},
      {"compiler", "GCC " __VERSION__},
      {"libraries", fmt::format("oneDNN {}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
      {"git_commit", std::string(GitCommit())},
      {"version", std::string(kVersion)},
      {"command", Join(command_line, " ")},
  });
  return environment;
}

std::string CpuName() { return ridgeline::CpuName(Facts()); }

int64_t PeakRssBytes() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace ridgeline::engine
