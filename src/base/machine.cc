#include "base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/text.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// The value of the first "key : value" line of a file.
std::string ValueIn(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

std::string MathFlags(const fs::path& cpuinfo) {
  static const std::set<std::string> kWanted = {"avx",      "avx2",     "fma",         "f16c",        "avx512f",
                                                "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16", "avx512_vnni",
                                                "amx_bf16", "amx_tile", "amx_int8",    "avx_vnni",    "asimd",
                                                "asimdhp",  "bf16",     "sve",         "i8mm"};
  std::istringstream flags(ValueIn(cpuinfo, "flags") + " " + ValueIn(cpuinfo, "Features"));
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (kWanted.contains(flag)) found.push_back(flag);
  }
  std::sort(found.begin(), found.end());  // sorted, because kernels list them in different orders
  return Join(found, " ");
}

// Rounded, because the part that a kernel keeps for itself differs from boot to boot. Empty if it cannot be read.
std::string MemoryText(const fs::path& meminfo) {
  const std::string text = ValueIn(meminfo, "MemTotal");
  int64_t kilobytes = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), kilobytes).ec != std::errc() || kilobytes <= 0) return {};
  return fmt::format("{} GiB", (kilobytes + (1 << 19)) >> 20);
}

}  // namespace

std::map<std::string, std::string> MachineFacts(const fs::path& root) {
  const fs::path cpuinfo = root / "proc/cpuinfo";
  return {{"cpu", ValueIn(cpuinfo, "model name")},
          {"cpu_flags", MathFlags(cpuinfo)},
          {"cores", std::to_string(std::max<int64_t>(1, CoresAllowed(root).count()))},
          {"memory", MemoryText(root / "proc/meminfo")}};
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::string CpuName(const std::map<std::string, std::string>& facts) {
  const std::string& name = facts.at("cpu");
  const std::string& cores = facts.at("cores");
  return fmt::format("{} ({} core{})", name.empty() ? "CPU" : name, cores, cores == "1" ? "" : "s");
}

}  // namespace ridgeline
