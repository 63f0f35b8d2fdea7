// Makes of a submit request what slurmctld is sent: the same as sbatch would send for the same options.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "slurm/agent/versions.h"

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

// "gpu:8,disk:1" → "gres:gpu:8,gres:disk:1", the form that every release accepts.
std::string TresPerNode(const std::string& gres);

// Returns whether slurm.conf makes a job inherit this resource limit of our process; sbatch passes such limits in the
// environment. `only` and `except` are PropagateResourceLimits and …Except, null if not set.
bool Propagates(const std::string& limit, const char* only, const char* except);

// A job as libslurm needs it. Owns every string it points at. Throws Failure if the request makes no valid job.
class JobDescription {
 public:
  explicit JobDescription(const Json& request);
  JobDescription(const JobDescription&) = delete;
  JobDescription& operator=(const JobDescription&) = delete;

  job_desc_msg_t* get() { return &message_; }

 private:
  // Returns the text of a field of the request; null if it is empty, which libslurm takes for "not given".
  char* Text(const char* key);
  char* Keep(const std::string& text);
  void FillSize();
  void FillEnvironment();

  const Json& request_;
  job_desc_msg_t message_;
  std::vector<std::vector<char>> texts_;
  std::vector<char*> environment_;
};

}  // namespace ridgeline::slurm_agent
