// Shows what exec would start for a point, before it costs anything.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/job.h"
#include "trainers/definition.h"
#include "trainers/invocation.h"

namespace ridgeline::node {

struct Preview {
  // What starts rank 0 on node 0. Values that only the node knows appear as a Placeholder (trainers/invocation.h).
  trainers::Invoked start;
  std::map<std::string, std::string> files;  // files that are written, by their paths
  std::string definition;            // the definition that starts it, in words; empty if the trainer keeps the contract
  std::string processes;             // which process of how many, in words
  std::string container;             // the container image, as the sweep names it; empty: none
  std::vector<std::string> differs;  // what differs in the other processes: variables, arguments, files
  std::vector<std::string> resume;   // additional arguments if its checkpoint folder has files
  std::vector<std::string> from_here;  // variables whose values are those of this process
  std::vector<std::string> unset;      // variables that it names and that are not set here
  std::vector<std::string> unknown;    // the placeholders in it, sorted
};

// The preview of the job's first point. `definition`: its trainer's; nullptr if it keeps the contract. Throws
// Error(kInvalidInput) if the trainer cannot be started so.
Preview PreviewOf(const Job& job, std::shared_ptr<const trainers::Trainer> definition);

}  // namespace ridgeline::node
