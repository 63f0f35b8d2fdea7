#include "run/measurement.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr size_t kLongestCampaign = 80;
constexpr size_t kShownCommit = 12;

std::string Said(const Facts& environment, const char* key) {
  const auto it = environment.find(key);
  return it == environment.end() ? "" : it->second;
}

}  // namespace

std::string SetupOf(const std::vector<std::string>& trainer, int64_t cpus, int64_t nodes,
                    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> argv = trainer;
  if (argv.empty()) argv = {"ridgeline-train"};
  argv.front() = std::filesystem::path(argv.front()).filename().string();
  Json setup = {{"trainer", argv}, {"cpus", cpus}};
  // Left out if it is not set, which keeps usual setups short.
  if (nodes > 1) setup["nodes"] = nodes;
  if (!environment.empty()) setup["environment"] = environment;
  return DumpJson(setup);
}

const std::string& DefaultSetup() {
  static const std::string setup = SetupOf({}, 0);
  return setup;
}

std::string CampaignProblem(const std::string& name) {
  if (name.empty()) return "a campaign's name is not empty";
  if (name.size() > kLongestCampaign) return fmt::format("a campaign's name has at most {} letters", kLongestCampaign);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) ||
           std::string_view("._-+:/").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? "" : "a campaign's name is of letters, digits and . _ - + : /";
}

std::string MachineOf(const Facts& environment) {
  std::vector<std::string> parts;
  for (const char* key : {"cpu", "cpu_flags", "cores", "memory", "gpus"}) {
    std::string said = Said(environment, key);
    if (said.empty()) continue;
    if (key == std::string_view("cores")) said += said == "1" ? " core" : " cores";
    parts.push_back(std::move(said));
  }
  return Join(parts, "; ");
}

std::string VersionOf(const Facts& environment) {
  const std::string version = Said(environment, "version");
  std::string commit = Said(environment, "git_commit");
  // Shortens the commit for people. A suffix behind a dash means changed sources, and stays.
  if (const size_t end = std::min(commit.find('-'), commit.size()); end > kShownCommit) {
    commit.erase(kShownCommit, end - kShownCommit);
  }
  if (version.empty() || commit.empty()) return version + commit;
  return fmt::format("{} ({})", version, commit);
}

bool AgreeOnOrigin(const Facts& a, const Facts& b) {
  static constexpr std::array<const char*, 6> kOrigin = {"cpu", "cpu_flags", "memory", "gpus", "version", "git_commit"};
  return std::all_of(kOrigin.begin(), kOrigin.end(), [&](const char* key) {
    const std::string there = Said(a, key);
    const std::string here = Said(b, key);
    return there.empty() || here.empty() || there == here;
  });
}

}  // namespace ridgeline
