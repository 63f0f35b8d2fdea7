// Text that makes the scheduler of a machine or a cluster run `ridgeline nightly run` every night.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::nightly {

struct NightlySchedule {
  std::vector<std::string> command;  // paths are absolute: schedulers use other folders and variables
  std::string name;                  // the sweep's: letters, digits, dashes
  std::string sweep_text;            // the sweep's YAML
  int hour = 1;                      // in UTC if the scheduler knows it, else in its own time
  int minute = 0;
};

// Parses "1:05" or "23:59". Throws Error(kUsage).
void SetTimeOfDay(const std::string& text, NightlySchedule& schedule);

// Lines for `crontab -e`. Throws Error(kUsage) for a path that a crontab cannot have.
std::string CronText(const NightlySchedule& schedule);

// The same for Slurm's `scrontab -e`.
std::string ScrontabText(const NightlySchedule& schedule);

// A service and its timer, for ~/.config/systemd/user.
struct SystemdUnits {
  std::string service;
  std::string timer;
};
SystemdUnits SystemdText(const NightlySchedule& schedule);

// The shipped CronJob with this sweep. `shipped` is the text of nightly.yaml. Throws Error(kInvalidInput) if that has
// another form.
std::string KubernetesText(const NightlySchedule& schedule, const std::string& shipped);

}  // namespace ridgeline::nightly
