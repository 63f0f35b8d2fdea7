#include "launch/check_rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sweep/launch.h"
#include "yaml/yaml.h"

namespace ridgeline {

void CheckRules(const Sweep& sweep, Launcher& launcher) {
  if (!launcher.can().render) return;
  std::vector<Fault> faults;
  std::string hint;
  for (const LaunchRule& rule : sweep.rules) {
    const Launch launch = WithRule(sweep.launch, rule);
    LaunchJob job;
    job.key = "rl-rule";
    job.sweep = sweep.name;
    job.job_dir = "/jobs/" + job.key;
    job.nodes = std::max<int64_t>(1, launch.nodes);
    job.cpus = launch.cpus;
    job.memory_bytes = launch.memory_limit_bytes;
    job.time_limit_s = launch.time_limit_s;
    job.exec = {"ridgeline"};
    job.config = launch.config;
    try {
      launcher.Render({&job, 1});
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      faults.push_back({rule.place, e.message()});
      hint = e.hint();
    }
  }
  if (!faults.empty()) ThrowFaults(sweep.file, std::move(faults), hint);
}

}  // namespace ridgeline
