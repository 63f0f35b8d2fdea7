// Identifies measurements. A point is what is measured. Before anything runs, a measurement of it is identified by its
// campaign and by the setup that a sweep requests. Its result says on which machine and with which build it was taken.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ridgeline {

// The campaign if you name none.
inline constexpr const char* kDefaultCampaign = "default";

// The parts of a sweep that change a point's figures but are no fields of it: the trainer's program (its name, wherever
// it lies) with its arguments, the cores of a node that it may use (0: all), the nodes, and the environment. One line
// of JSON. `trainer` empty: ridgeline-train.
std::string SetupOf(const std::vector<std::string>& trainer, int64_t cpus, int64_t nodes = 1,
                    const std::map<std::string, std::string>& environment = {});
const std::string& DefaultSetup();  // the setup of a sweep that sets none of this

struct MeasurementKey {
  std::string campaign = kDefaultCampaign;  // groups measurements taken for one purpose: a night, a commit
  std::string setup = DefaultSetup();
  bool operator==(const MeasurementKey&) const = default;
};

// What is wrong with a campaign's name; empty if it is valid. A name is short, and consists of letters, digits and . _
// - + : /.
std::string CampaignProblem(const std::string& name);

using Facts = std::map<std::string, std::string>;  // a result's `environment`

// The machine's fingerprint in words: what makes machines comparable. "Intel(R) Xeon(R) Processor; avx2 fma; 2 cores;
// 24 GiB". Empty if the result does not describe its machine.
std::string MachineOf(const Facts& environment);

// The trainer's version: "0.1.0 (0123abc)". Together with the setup's trainer it identifies the build. Empty if
// unknown.
std::string VersionOf(const Facts& environment);

// Whether two agree on the machine and the version, as far as both state them. Ignores the given cores, because they
// follow from the point and its setup.
bool AgreeOnOrigin(const Facts& a, const Facts& b);

}  // namespace ridgeline
