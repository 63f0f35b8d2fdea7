// What a job asks its launcher for, as the launcher itself reads its settings. Nothing in src/ knows these settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {

struct JobDescription {
  // The GPUs of a node.
  struct Gpus {
    std::string setting;  // the setting that asks, or, if none does, the one that would: "slurm: gpus"
    std::string asked;    // in words, "gpus asks for 8 GPUs"; empty: nothing asks
    std::string kind;     // "h100"; empty: any
    int64_t count = 0;    // 0: not known, or none
  };

  bool here = false;          // it runs on this machine
  bool has_srun = false;      // srun can start its processes
  std::optional<Gpus> gpus;   // nothing: it has whatever GPUs are there, without asking
  int64_t memory_bytes = 0;   // of a node; 0: the settings do not say
  int64_t billed_nodes = 0;   // machines for which a job is billed; 0: it is not said
  int64_t most_billed_s = 0;  // the most seconds for which each of them is billed; 0: it is not said
  std::string secrets;        // how a job gets a secret, in words; empty: in no way of the launcher's own
  std::vector<std::string> warnings;
  std::optional<Json> pin;  // merged into the launcher's own mapping, it keeps jobs on the node; nothing: it cannot
};

// Asks the launcher that `launch` names. `node`: the node to keep the job on; empty: none. Throws Error if there is no
// such launcher.
using DescribeJob = std::function<JobDescription(const Launch& launch, const std::string& node)>;

// `launch` is what applies to a point. Without a `describe`, nothing is known.
JobDescription DescriptionOf(const Launch& launch, const std::string& node = {});

}  // namespace ridgeline::sweep
