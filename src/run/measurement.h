// Which measurement a result is. A point is what is measured. A measurement of it is known by the campaign it was taken
// for and the setup a sweep asks for, before anything runs; on which machine and by which build it came about, its
// result says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ridgeline {

// The campaign of who names none.
inline constexpr const char* kDefaultCampaign = "default";

// What a sweep says of how a point runs that changes its figures and is no field of it: the trainer's program (its
// name, wherever it lies) with its arguments, the cores of a node it may use (0: all), the nodes, and what the
// environment is given. One line of JSON. `trainer` empty: ridgeline-train.
std::string SetupOf(const std::vector<std::string>& trainer, int64_t cpus, int64_t nodes = 1,
                    const std::map<std::string, std::string>& environment = {});
const std::string& DefaultSetup();  // of a sweep that says nothing of it

struct MeasurementKey {
  std::string campaign = kDefaultCampaign;  // measurements taken for one purpose: a night, a commit
  std::string setup = DefaultSetup();
  bool operator==(const MeasurementKey&) const = default;
};

// What is wrong with a name for a campaign; empty: nothing. One is short, and of letters, digits and . _ - + : /.
std::string CampaignProblem(const std::string& name);

using Facts = std::map<std::string, std::string>;  // a result's `environment`

// The fingerprint of the machine: what makes two of them comparable, in words. "Intel(R) Xeon(R) Processor; avx2 fma;
// 2 cores; 24 GiB". Empty where the result says nothing of it.
std::string MachineOf(const Facts& environment);

// The trainer's version: "0.1.0 (0123abc)". With the setup's trainer it is the build. Empty where nothing says it.
std::string VersionOf(const Facts& environment);

// Whether two say the same of the machine and the version, as far as both say anything. The cores given follow from the
// point and its setup, so they are not asked.
bool AgreeOnOrigin(const Facts& a, const Facts& b);

}  // namespace ridgeline
