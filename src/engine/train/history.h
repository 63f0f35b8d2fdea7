// A run's measurements so far, over all the processes that carried it. They travel in its checkpoint files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

struct History {
  // One value an optimizer step.
  std::vector<double> loss;
  std::vector<double> grad_norm;  // empty if it is not computed
  std::vector<int64_t> step_ns;   // saving excluded

  // A process that carried the run for a while.
  struct Process {
    int64_t first_step = 1;
    std::string machine;  // equal texts: step times may be compared
  };
  std::vector<Process> processes;

  int64_t steps() const { return static_cast<int64_t>(loss.size()); }
};

// Returns the times for steady figures: steps past the run's warm-up and past the same number of steps of their process
// (whose first steps are cold again), on the machine that ran last. If that leaves none: all steps past the run's
// warm-up.
std::vector<int64_t> SteadySteps(const RunSpec& spec, const History& history);

Json EncodeHistory(const History& history);
// Throws Json::exception if the document is no history.
History DecodeHistory(const Json& document);

}  // namespace ridgeline::engine
