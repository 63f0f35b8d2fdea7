// Settings of `launch:` as axes: `environment.NCCL_ALGO: [Ring, Tree]`, `slurm.container: [old.sqsh, new.sqsh]`. Such a
// value is part of its points (RunSpec::own), and a rule of `launch:` sets it for them.
#pragma once

#include <memory>
#include <vector>

#include "sweep/sweep.h"
#include "trainers/invocation.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// The settings that the sections of a sweep use like fields: whole numbers if all values are, otherwise texts. Adds a
// fault for a setting that cannot be an axis. A whole number among texts becomes a text in `root`.
std::vector<std::shared_ptr<const trainers::OwnField>> TakeSettingFields(yaml::YamlNode& root,
                                                                         std::vector<yaml::Fault>& faults);

// Adds a rule for each value of such a setting, after the sweep's own rules.
void AddSettingRules(Sweep& sweep, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
