// From a submit request to what slurmctld is sent: the same as sbatch would send for the same words.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "slurm/agent/versions.h"

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

// "gpu:8,disk:1" → "gres:gpu:8,gres:disk:1", the spelling that every release takes.
std::string TresPerNode(const std::string& gres);

// Which of this process's resource limits slurm.conf has a job inherit; sbatch hands them over in the environment.
// `only` and `except` are PropagateResourceLimits and …Except, null where not set.
bool Propagates(const std::string& limit, const char* only, const char* except);

// A job as libslurm wants it; owns every string it points at. Throws Failure where the request cannot be one.
class JobDescription {
 public:
  explicit JobDescription(const Json& request);
  JobDescription(const JobDescription&) = delete;
  JobDescription& operator=(const JobDescription&) = delete;

  job_desc_msg_t* get() { return &message_; }

 private:
  // The text of a field of the request; null where it is empty, which libslurm takes for "not said".
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
