// The section `launch:`: reads it from a sweep's file, and computes it for each point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/point.h"
#include "sweep/sweep.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Reads the section into `sweep.launch` and `sweep.rules`. Appends what is wrong to `faults`, at its place.
void ReadLaunch(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults);

// Reads the settings of a rule, `set`.
void ReadSetOfRule(const yaml::YamlNode& set, Sweep& sweep, Launch& to, std::vector<yaml::Fault>& faults);

// The launcher's own settings that change figures, and so are part of a setup (SetupOf).
const yaml::Names& SetupSettings();
bool IsOfSetup(std::string_view setting);

// A smaller memory limit means that the unit was forgotten.
inline constexpr int64_t kLeastMemoryBytes = 1'000'000;

// Returns whether the text can be a launcher's or a report's name: letters, digits, - and _. Such names become file
// names.
bool IsPlainName(const std::string& name);

// Returns `launch` with the rule's settings, key by key. Environments are merged by variable, a launcher's mapping by
// setting.
Launch WithRule(Launch launch, const LaunchRule& rule);

// Returns what applies to the point: the sweep's settings, then those of the point's rules, in order. Computes `nodes`,
// which is at least 1; nodes in the launcher's own mapping take precedence. Throws Error(kInvalidInput) if the nodes
// cannot share the point's ranks evenly, or if our trainer would have fewer ranks than nodes.
Launch LaunchOf(const Sweep& sweep, const Point& point);

// Returns what applies to all jobs of the sweep together, with which a launcher is opened: the sweep's own settings,
// with the most `nodes` and `cpus` of any job. Throws as Expand and LaunchOf do.
Json SharedConfig(const Sweep& sweep);

// Returns how the point is measured (run/measurement.h), including the cores, nodes and GPUs that the launcher's own
// settings ask for. `trainer`: argv if the sweep names no trainer.
std::string SetupOf(const Launch& launch, const std::vector<std::string>& trainer = {});

}  // namespace ridgeline::sweep
