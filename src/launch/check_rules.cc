#include "launch/check_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "yaml/yaml.h"

namespace ridgeline {
namespace {

using Rules = std::vector<size_t>;

class Checker {
 public:
  Checker(const Sweep& sweep, Launcher& launcher) : sweep_(sweep), launcher_(launcher) {}

  // Checks a job of a point to which these rules apply.
  void Check(const Rules& rules, const RunSpec& spec) {
    const Launch launch = LaunchOf(sweep_, {"", spec, rules});
    LaunchJob job;
    job.key = "rl-check";
    job.sweep = sweep_.name;
    job.job_dir = "/jobs/" + job.key;
    job.nodes = launch.nodes;
    job.cpus = launch.cpus;
    job.memory_bytes = launch.memory_limit_bytes;
    job.time_limit_s = launch.time_limit_s;
    job.exec = {"ridgeline"};
    job.config = launch.config;
    try {
      launcher_.Render({&job, 1});
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      faults_.push_back({sweep_.rules[rules.back()].place, e.message()});
      hint_ = e.hint();
      wrong_.insert(rules.back());
    }
  }

  bool IsWrong(size_t rule) const { return wrong_.contains(rule); }

  void ThrowIfAnyIs() {
    if (!faults_.empty()) ThrowFaults(sweep_.file, std::move(faults_), hint_);
  }

 private:
  const Sweep& sweep_;
  Launcher& launcher_;
  std::vector<Fault> faults_;
  std::string hint_;
  std::set<size_t> wrong_;
};

// Returns a point with as many ranks as this rule has nodes.
RunSpec SharedBy(const Launch& set) {
  RunSpec spec;
  spec.ranks = std::max<int64_t>(set.nodes, 1);
  if (spec.ranks > 1) spec.communicator = "gloo";
  return spec;
}

}  // namespace

void CheckRules(const Sweep& sweep, Launcher& launcher) {
  if (sweep.rules.empty() || !launcher.can().render) return;
  Checker checker(sweep, launcher);
  for (size_t rule = 0; rule < sweep.rules.size(); ++rule) checker.Check({rule}, SharedBy(sweep.rules[rule].set));
  std::map<Rules, RunSpec> together;
  for (const Point& point : Expand(sweep)) {
    if (!point.rules.empty()) together.try_emplace(point.rules, point.spec);
  }
  for (const auto& [rules, spec] : together) {
    // A set with a rule that is already reported needs no report of its own.
    const bool sound = std::none_of(rules.begin(), rules.end(), [&](size_t rule) { return checker.IsWrong(rule); });
    if (sound) checker.Check(rules, spec);
  }
  checker.ThrowIfAnyIs();
}

}  // namespace ridgeline
