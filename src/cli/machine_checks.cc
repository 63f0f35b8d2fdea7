#include "cli/machine_checks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/cgroup.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kLittleMemoryBytes = 4'000'000'000;
constexpr int64_t kLittleDiskBytes = 1'000'000'000;

std::string ReadOrEmpty(const fs::path& path) {
  try {
    return ReadFile(path);
  } catch (const Error&) {
    return {};
  }
}

// The value after "key :" in a file of such lines.
std::string ValueOf(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The tightest value of a limit file from our cgroup up to the root. Limits of the cgroups above ours bind us, too.
std::optional<int64_t> TightestLimit(const fs::path& root, const std::string& file) {
  std::optional<int64_t> tightest;
  for (const fs::path& folder : CgroupsOf("memory", root).v2) {
    const auto value = Number(ReadOrEmpty(folder / file));
    if (value && (!tightest || *value < *tightest)) tightest = value;
  }
  return tightest;
}

Check Processor(const fs::path& root) {
  const std::string info = ReadOrEmpty(root / "proc/cpuinfo");
  std::string model = ValueOf(info, "model name");
  if (model.empty()) model = "unknown model";
  std::string flags = ' ' + ValueOf(info, "flags") + ValueOf(info, "Features") + ' ';
  static constexpr std::array<std::string_view, 8> kTold = {"avx2",     "fma",      "avx512f", "avx512_bf16",
                                                            "amx_bf16", "amx_tile", "bf16",    "sve"};
  std::vector<std::string> has;
  for (const std::string_view flag : kTold) {
    if (flags.find(fmt::format(" {} ", flag)) != std::string::npos) has.emplace_back(flag);
  }
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(has.begin(), has.end(), [&](const std::string& flag) {
      return std::find(names.begin(), names.end(), flag) != names.end();
    });
  };
  Check check{CheckState::kOk, "processor", fmt::format("{}: {}", model, has.empty() ? "-" : Join(has, " ")), ""};
  if (!any({"amx_bf16", "avx512_bf16", "bf16"})) {
    check.state = CheckState::kWarn;
    check.advice = "no bf16 instructions: bf16 points are computed correctly, but no faster than fp32";
  }
  return check;
}

Check Cores(const fs::path& root) {
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const AllowedCores allowed = CoresAllowed(root);
  const size_t usable = allowed.ids.empty() ? static_cast<size_t>(online) : allowed.ids.size();
  Check check{CheckState::kOk, "cores", fmt::format("{} usable of {}", usable, online), ""};
  if (allowed.quota > 0) check.detail += fmt::format(", a cgroup allows {:.3g}", allowed.quota);
  if (allowed.quota > 0 && allowed.quota < static_cast<double>(usable)) {
    check.state = CheckState::kWarn;
    check.advice = fmt::format("points get {}: more would be throttled", CountOf(allowed.count(), "thread"));
  }
  return check;
}

Check Memory(const fs::path& root) {
  const std::string info = ReadOrEmpty(root / "proc/meminfo");
  const int64_t total = Number(ValueOf(info, "MemTotal")).value_or(0) * 1024;
  const int64_t available = Number(ValueOf(info, "MemAvailable")).value_or(0) * 1024;
  if (total == 0) return {CheckState::kFail, "memory", "cannot read /proc/meminfo", "is /proc mounted?"};
  Check check{CheckState::kOk, "memory", fmt::format("{} available of {}", FormatBytes(available), FormatBytes(total)),
              ""};
  int64_t usable = available;
  if (const auto limit = TightestLimit(root, "memory.max"); limit && *limit < total) {
    check.detail += fmt::format(", a cgroup allows {}", FormatBytes(*limit));
    usable = std::min(usable, *limit);
  }
  rlimit data{};
  if (::getrlimit(RLIMIT_AS, &data) == 0 && data.rlim_cur != RLIM_INFINITY) {
    check.detail += fmt::format(", ulimit -v allows {}", FormatBytes(static_cast<int64_t>(data.rlim_cur)));
    usable = std::min(usable, static_cast<int64_t>(data.rlim_cur));
  }
  if (usable < kLittleMemoryBytes) {
    check.state = CheckState::kWarn;
    check.advice = "only small models fit; `ridgeline plan SWEEP` says which";
  }
  return check;
}

std::optional<Check> Governor(const fs::path& root) {
  std::string governor = ReadOrEmpty(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  governor.erase(std::find(governor.begin(), governor.end(), '\n'), governor.end());
  if (governor.empty()) return std::nullopt;
  if (governor == "performance") return Check{CheckState::kOk, "frequency", governor, ""};
  return Check{CheckState::kWarn, "frequency", governor,
               "for steadier times: cpupower frequency-set --governor performance"};
}

}  // namespace

std::vector<Check> MachineChecks(const fs::path& root) {
  std::vector<Check> checks = {Processor(root), Cores(root), Memory(root)};
  if (auto governor = Governor(root)) checks.push_back(std::move(*governor));
  return checks;
}

Check DiskCheck(const fs::path& folder) {
  std::error_code ec;
  const fs::space_info space = fs::space(folder, ec);
  if (ec) return {CheckState::kFail, "disk", folder.string() + ": " + ec.message(), "work in a folder that exists"};
  const auto available = static_cast<int64_t>(space.available);
  Check check{CheckState::kOk, "disk", fmt::format("{} free in {}", FormatBytes(available), folder.string()), ""};
  if (::access(folder.c_str(), W_OK) != 0) {
    check.state = CheckState::kWarn;
    check.detail += fmt::format(", which cannot be written: {}", std::strerror(errno));
    check.advice = "name folders that can be, with --db and --to";
  } else if (available < kLittleDiskBytes) {
    check.state = CheckState::kWarn;
    check.advice = "free some space";
  }
  return check;
}

}  // namespace ridgeline::cli
