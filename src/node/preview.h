// What exec would start for a point, before it costs anything.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/job.h"
#include "trainers/definition.h"
#include "trainers/invocation.h"

namespace ridgeline {

struct Preview {
  // Of rank 0, on node 0. What only the node knows stands as a Placeholder (trainers/invocation.h).
  Invoked start;
  std::map<std::string, std::string> files;  // that are written, by their paths
  std::string definition;              // by which it is started, in words; empty where the trainer keeps the contract
  std::string processes;               // which process it is, of how many, in words
  std::string container;               // the image it runs in, as the sweep names it; empty: none
  std::vector<std::string> differs;    // of that, in the other processes: variables, arguments, files
  std::vector<std::string> resume;     // arguments more, where its checkpoint folder holds something
  std::vector<std::string> from_here;  // variables whose values are those of this process
  std::vector<std::string> unset;      // variables that it names and that are not set here
  std::vector<std::string> unknown;    // the placeholders in it, sorted
};

// Of the job's first point. `definition`: of its trainer; nullptr: it keeps the contract. Throws Error(kInvalidInput)
// where the trainer cannot be started so.
Preview PreviewOf(const Job& job, std::shared_ptr<const Trainer> definition);

}  // namespace ridgeline
