#include "launch/check_rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "yaml/yaml.h"

namespace ridgeline::launch {
namespace {

using Rules = std::vector<size_t>;

// A job of a point to which these rules apply.
LaunchJob JobOf(const sweep::Sweep& sweep, const Rules& rules, const RunSpec& spec, std::string key) {
  const sweep::Launch launch = sweep::LaunchOf(sweep, {"", spec, rules});
  LaunchJob job;
  job.key = std::move(key);
  job.sweep = sweep.name;
  job.job_dir = "/jobs/" + job.key;
  job.nodes = launch.nodes;
  job.cpus = launch.cpus;
  job.memory_bytes = launch.memory_limit_bytes;
  job.time_limit_s = launch.time_limit_s;
  job.exec = {"ridgeline"};
  job.config = launch.config;
  return job;
}

class Checker {
 public:
  Checker(const sweep::Sweep& sweep, Launcher& launcher) : sweep_(sweep), launcher_(launcher) {}

  // Checks a job of a point to which these rules apply.
  void Check(const Rules& rules, const RunSpec& spec) {
    const LaunchJob job = JobOf(sweep_, rules, spec, "rl-check");
    try {
      launcher_.Render({&job, 1});
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      const sweep::Launch launch = sweep::LaunchOf(sweep_, {"", spec, rules});
      std::ranges::move(RefusedSettings(launch, e, sweep_.rules[rules.back()].place), std::back_inserter(faults_));
      hint_ = e.hint();
      wrong_.insert(rules.back());
    }
  }

  bool IsWrong(size_t rule) const { return wrong_.contains(rule); }

  void ThrowIfAnyIs() {
    if (!faults_.empty()) yaml::ThrowFaults(sweep_.file, std::move(faults_), hint_);
  }

 private:
  const sweep::Sweep& sweep_;
  Launcher& launcher_;
  std::vector<yaml::Fault> faults_;
  std::string hint_;
  std::set<size_t> wrong_;
};

// Returns a point with as many ranks as this rule has nodes.
RunSpec SharedBy(const sweep::Launch& set) {
  RunSpec spec;
  spec.ranks = std::max<int64_t>(set.nodes, 1);
  if (spec.ranks > 1) spec.communicator = "gloo";
  return spec;
}

// Returns where the sweep's file has the setting that begins a message such as "slurm: partition is …". Returns nothing
// if it names none of the file's.
std::optional<yaml::Place> PlaceOfSetting(const sweep::Launch& launch, std::string_view message) {
  std::optional<yaml::Place> place;
  size_t longest = 0;  // prefers a setting to its mapping
  for (const auto& [setting, its_place] : launch.places) {
    const std::string unknown = fmt::format("there is no setting '{}'", setting.substr(setting.find(' ') + 1));
    const bool is_it = message.starts_with(setting + " is ") || message.starts_with(setting + ": ") ||
                       message.find(unknown) != std::string_view::npos;
    if (is_it && setting.size() > longest) {
      longest = setting.size();
      place = its_place;
    }
  }
  return place;
}

}  // namespace

void CheckRules(const sweep::Sweep& sweep, Launcher& launcher) {
  if (sweep.rules.empty() || !launcher.can().render) return;
  Checker checker(sweep, launcher);
  for (size_t rule = 0; rule < sweep.rules.size(); ++rule) checker.Check({rule}, SharedBy(sweep.rules[rule].set));
  std::map<Rules, RunSpec> together;
  for (const Point& point : sweep::Expand(sweep)) {
    if (!point.rules.empty()) together.try_emplace(point.rules, point.spec);
  }
  for (const auto& [rules, spec] : together) {
    // A set with a rule that is already reported needs no report of its own.
    const bool sound = std::none_of(rules.begin(), rules.end(), [&](size_t rule) { return checker.IsWrong(rule); });
    if (sound) checker.Check(rules, spec);
  }
  checker.ThrowIfAnyIs();
}

void CheckWithScheduler(const sweep::Sweep& sweep, Launcher& launcher) {
  constexpr size_t kMostSets = 16;  // each takes a call of the scheduler's tools
  std::map<Rules, RunSpec> sets;
  for (const Point& point : sweep::Expand(sweep)) {
    const auto [set, is_new] = sets.try_emplace(point.rules, point.spec);
    if (!is_new && point.spec.ranks > set->second.ranks) set->second = point.spec;
    if (sets.size() == kMostSets) break;
  }
  std::vector<LaunchJob> jobs;
  for (const auto& [rules, spec] : sets)
    jobs.push_back(JobOf(sweep, rules, spec, fmt::format("rl-check{}", jobs.size())));
  const std::vector<std::optional<Error>> refusals = launcher.WhyRefused(jobs);
  std::vector<yaml::Fault> faults;
  std::string hint;
  size_t i = 0;
  for (const auto& [rules, spec] : sets) {
    const std::optional<Error>& refusal = refusals.at(i++);
    if (!refusal) continue;
    const yaml::Place otherwise = rules.empty() ? sweep.launch.place : sweep.rules[rules.back()].place;
    for (yaml::Fault& refused : RefusedSettings(sweep::LaunchOf(sweep, {"", spec, rules}), *refusal, otherwise)) {
      const auto is_told = [&](const yaml::Fault& fault) {
        return fault.place.line == refused.place.line && fault.message == refused.message;
      };
      if (std::ranges::none_of(faults, is_told)) faults.push_back(std::move(refused));
    }
    hint = refusal->hint();
  }
  if (!faults.empty()) yaml::ThrowFaults(sweep.file, std::move(faults), hint);
}

std::vector<yaml::Fault> RefusedSettings(const sweep::Launch& launch, const Error& error,
                                         const yaml::Place& otherwise) {
  constexpr std::string_view kMark = "launch: ";
  const std::string_view message = error.message();
  const size_t begin = message.find(kMark);
  if (begin == std::string_view::npos) return {{otherwise, error.message()}};
  const std::string_view launcher = message.substr(0, begin);  // "launcher slurm: "
  std::vector<yaml::Fault> faults;
  for (size_t at = begin; at < message.size();) {
    const size_t next = message.find(fmt::format("\n{}", kMark), at);
    const std::string_view line = message.substr(at, next == std::string_view::npos ? next : next - at);
    faults.push_back(
        {PlaceOfSetting(launch, line.substr(kMark.size())).value_or(otherwise), fmt::format("{}{}", launcher, line)});
    at = next == std::string_view::npos ? next : next + 1;
  }
  return faults;
}

}  // namespace ridgeline::launch
