// The conformance suite for the Slurm launcher on a real Slurm.
#include "tests/plugins/conformance.h"
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline::testing {
namespace {

Candidate SlurmThrough(const std::string& label, const std::string& client) {
  Candidate candidate;
  candidate.label = label;
  candidate.launcher = "slurm";
  candidate.plugin_dir = RIDGELINE_PLUGIN_DIR;
  candidate.config = {{"slurm", {{"client", client}}}};
  candidate.world = [] { return std::make_shared<Slurm>(std::vector<std::string>{"--nodes=2"}); };
  return candidate;
}

std::vector<Candidate> Candidates() {
  std::vector<Candidate> candidates = {SlurmThrough("Tools", "tools")};
  if (std::filesystem::exists(SlurmAgent())) candidates.push_back(SlurmThrough("Agent", "agent"));
  return candidates;
}

INSTANTIATE_TEST_SUITE_P(Slurm, Conformance, ::testing::ValuesIn(Candidates()), Label);

}  // namespace
}  // namespace ridgeline::testing
