#include "engine/train/environment.h"

#include <omp.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <dnnl.hpp>

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "engine/device/cpu/cpu_class.h"

namespace ridgeline {
namespace {

// The value of a "key : value" line of /proc/cpuinfo.
std::string CpuInfo(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

// Those of the CPU's flags that decide how fast it multiplies.
std::string MathFlags() {
  static const std::set<std::string> kWanted = {"avx",      "avx2",     "fma",         "f16c",        "avx512f",
                                                "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16", "avx512_vnni",
                                                "amx_bf16", "amx_tile", "amx_int8",    "avx_vnni",    "asimd",
                                                "asimdhp",  "bf16",     "sve",         "i8mm"};
  std::istringstream flags(CpuInfo("flags") + " " + CpuInfo("Features"));
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (kWanted.contains(flag)) found.push_back(flag);
  }
  return Join(found, " ");
}

int AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

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

}  // namespace

std::map<std::string, std::string> DescribeEnvironment(const std::vector<std::string>& command_line) {
  utsname system{};
  ::uname(&system);
  const dnnl_version_t* dnnl = dnnl_version();
  return {
      {"cpu", CpuInfo("model name")},
      {"cpu_class", std::string(CpuClassName(ThisCpuClass()))},
      {"cores", std::to_string(AllowedCores())},
      {"threads", std::to_string(omp_get_max_threads())},
      {"cpu_flags", MathFlags()},
      {"kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"hostname", system.nodename},
      {"os", OsName()},
      {"compiler", "GCC " __VERSION__},
      {"libraries", fmt::format("oneDNN {}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
      {"git_commit", std::string(GitCommit())},
      {"version", std::string(kVersion)},
      {"command", Join(command_line, " ")},
  };
}

std::string CpuName() {
  const std::string name = CpuInfo("model name");
  const int cores = AllowedCores();
  return fmt::format("{} ({} core{})", name.empty() ? "CPU" : name, cores, cores == 1 ? "" : "s");
}

int64_t PeakRssBytes() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace ridgeline
