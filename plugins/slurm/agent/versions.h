// All differences between releases of libslurm (22.05 to 26.05), so that the rest of the agent needs none of them.
// Tests for the names themselves, not for the release, because backports move them.
#pragma once

#include <string>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <slurm/slurmdb.h>

// Every libslurm exports these, but no public header declares them. A weak one may be missing, because it was renamed.
extern "C" {
slurm_conf_t* slurm_conf_lock(void);
void slurm_conf_unlock(void);
char* slurm_job_state_string(uint32_t state);
__attribute__((weak)) const char* slurm_job_state_reason_string(uint32_t reason);
__attribute__((weak)) const char* slurm_job_reason_string(uint32_t reason);
}

namespace ridgeline::slurm_agent {

using SlurmList = decltype(slurm_list_create(nullptr));

inline std::string ReasonString(uint32_t reason) {
  if (slurm_job_state_reason_string != nullptr) return slurm_job_state_reason_string(reason);
  if (slurm_job_reason_string != nullptr) return slurm_job_reason_string(reason);
  return "reason " + std::to_string(reason);
}

// The job's id is a member of the record, or in later releases a member of its step id.
template <typename Record>
uint32_t JobId(const Record& record) {
  if constexpr (requires { record.job_id; }) {
    return record.job_id;
  } else {
    return record.step_id.job_id;
  }
}

// `auto`, because one of the two names is not declared.
void FreeControllerConf(auto* conf) {
  if constexpr (requires { slurm_free_conf(conf); }) {
    slurm_free_conf(conf);
  } else {
    slurm_free_ctl_conf(conf);
  }
}

}  // namespace ridgeline::slurm_agent
