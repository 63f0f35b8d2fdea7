// One job, or one array task, or the tasks of an array that still wait together, as the agent reports it:
// [name, array job id, tasks, state, reason, exit status, restarts, submit, start, end, nodes, expected start, whether
// the accounting says that its own user cancelled it].
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include <nlohmann/json.hpp>

#include "slurm/agent/versions.h"

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

// libslurm's text; "" where it gives none.
std::string Text(const char* text);

struct Row {
  std::string name;
  uint32_t array_job_id = 0;  // the job's own id where it is no array
  std::string tasks;          // "", "4" or "4-99,101"
  std::string state;          // as squeue's %T
  std::string reason;         // as squeue's %r
  uint32_t exit_status = 0;   // as wait() gives it
  uint32_t restarts = 0;
  int64_t submit_s = 0;
  int64_t start_s = 0;  // 0: has not started
  int64_t end_s = 0;    // 0: has not ended
  std::string nodes;
  int64_t expected_start_s = 0;  // of a pending one, where slurmctld has worked it out
  bool by_its_user = false;      // of slurmdbd's; of root's jobs not known, as nodes are root, too
  std::string partitions;        // that a pending one may go to, separated by commas

  Json ToJson() const;
};

// slurmctld's record.
Row RowOf(const slurm_job_info_t& job);
// slurmdbd's; `restarts` is not in it.
Row RowOf(const slurmdb_job_rec_t& job);

// Array tasks as Slurm writes them ("0-8:2,12%3") → ("0,2,4,6,8,12").
std::string PlainTasks(const std::string& tasks);

}  // namespace ridgeline::slurm_agent
