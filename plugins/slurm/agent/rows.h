// One job, one array task, or the tasks of an array that still wait together, as the agent reports it: [name, array job
// id, tasks, state, reason, exit status, restarts, submit, start, end, nodes, expected start, whether the accounting
// says that its own user cancelled it].
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include <nlohmann/json.hpp>

#include "slurm/agent/versions.h"

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

// Returns libslurm's text; "" if it is null.
std::string Text(const char* text);

struct Row {
  std::string name;
  uint32_t array_job_id = 0;  // the job's own id if it is no array
  std::string tasks;          // "", "4" or "4-99,101"
  std::string state;          // as squeue's %T
  std::string reason;         // as squeue's %r
  uint32_t exit_status = 0;   // as wait() returns it
  uint32_t restarts = 0;
  int64_t submit_s = 0;
  int64_t start_s = 0;  // 0: has not started
  int64_t end_s = 0;    // 0: has not ended
  std::string nodes;
  int64_t expected_start_s = 0;  // for a pending job, if slurmctld has computed it
  bool by_its_user = false;      // from slurmdbd; not known for root's jobs, because nodes are root, too
  std::string partitions;        // where a pending job may go, separated by commas

  Json ToJson() const;
};

// Makes a row of slurmctld's record.
Row RowOf(const slurm_job_info_t& job);
// Makes a row of slurmdbd's record, which has no `restarts`.
Row RowOf(const slurmdb_job_rec_t& job);

// Expands array tasks as Slurm writes them: "0-8:2,12%3" → "0,2,4,6,8,12".
std::string PlainTasks(const std::string& tasks);

}  // namespace ridgeline::slurm_agent
