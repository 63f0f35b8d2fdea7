// What `launch:` says: read from a sweep's file, and worked out for each of its points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/point.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline {

// Reads the section into `sweep.launch` and `sweep.rules`. Appends what is wrong to `faults`, at its place.
void ReadLaunch(const YamlNode& node, Sweep& sweep, std::vector<Fault>& faults);

// Whoever gives a point less memory has left out the unit.
inline constexpr int64_t kLeastMemoryBytes = 1'000'000;

// A launcher's name, a report's: letters, digits, - and _. Such names become file names.
bool IsPlainName(const std::string& name);

// `launch` with what a rule sets, key by key; environments are merged by variable, a launcher's mapping by setting.
Launch WithRule(Launch launch, const LaunchRule& rule);

// What holds for the point: the sweep's settings, with those of the rules that hold of it, in order, and its `nodes`
// worked out: at least 1; those of the launcher's own mapping are meant where it has some. Throws Error(kInvalidInput)
// where so many nodes cannot share the point's ranks, or where our trainer would have fewer ranks than nodes.
Launch LaunchOf(const Sweep& sweep, const Point& point);

// What holds for all jobs of the sweep together, as a launcher is opened with it: the sweep's own settings, but the
// most `nodes` and `cpus` that one of them has. Throws as Expand and LaunchOf.
Json SharedConfig(const Sweep& sweep);

// How the point is measured (run/measurement.h), with what the launcher's own settings ask for in place of that or
// beside it: cores, nodes, GPUs. `trainer`: argv, where the sweep names none.
std::string SetupOf(const Launch& launch, const std::vector<std::string>& trainer = {});

}  // namespace ridgeline
