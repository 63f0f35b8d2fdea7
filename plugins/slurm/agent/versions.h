// What differs between releases of libslurm (22.05 to 26.05), in one place: the rest of the agent knows none of it. It
// looks for the names themselves and not at the release, since backports move them.
#pragma once

#include <string>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <slurm/slurmdb.h>

// Exported by every libslurm, but declared in no public header. A weak one may be missing: it has been renamed.
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

// A member of its own, later one of the step that the job is addressed by.
template <typename Record>
uint32_t JobId(const Record& record) {
  if constexpr (requires { record.job_id; }) {
    return record.job_id;
  } else {
    return record.step_id.job_id;
  }
}

// `auto`, since one of the two names is not declared.
void FreeControllerConf(auto* conf) {
  if constexpr (requires { slurm_free_conf(conf); }) {
    slurm_free_conf(conf);
  } else {
    slurm_free_ctl_conf(conf);
  }
}

}  // namespace ridgeline::slurm_agent
