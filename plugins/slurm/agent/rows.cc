#include "slurm/agent/rows.h"

#include <cstdio>
#include <string_view>

namespace ridgeline::slurm_agent {
namespace {

// slurmctld also puts forecasts into times: when a pending job may start, when a running one must end.
void SetTimes(Row& row, uint32_t state, time_t submit, time_t start, time_t end) {
  row.submit_s = submit;
  (state == JOB_PENDING ? row.expected_start_s : row.start_s) = start;
  row.end_s = state > JOB_SUSPENDED ? end : 0;
}

std::string Tasks(const char* task_string, uint32_t task_id) {
  if (task_string != nullptr && *task_string != '\0') return PlainTasks(task_string);
  return task_id == NO_VAL ? std::string() : std::to_string(task_id);
}

}  // namespace

std::string Text(const char* text) { return text == nullptr ? std::string() : std::string(text); }

Json Row::ToJson() const {
  return Json::array({name, array_job_id, tasks, state, reason, exit_status, restarts, submit_s, start_s, end_s, nodes,
                      expected_start_s, by_its_user, partitions});
}

Row RowOf(const slurm_job_info_t& job) {
  Row row;
  row.name = Text(job.name);
  row.array_job_id = job.array_job_id != 0 ? job.array_job_id : JobId(job);
  row.tasks = Tasks(job.array_task_str, job.array_task_id);
  row.state = Text(slurm_job_state_string(job.job_state));
  row.reason = job.state_desc != nullptr ? Text(job.state_desc) : ReasonString(job.state_reason);
  row.exit_status = job.exit_code;
  row.restarts = job.restart_cnt;
  SetTimes(row, job.job_state & JOB_STATE_BASE, job.submit_time, job.start_time, job.end_time);
  row.nodes = Text(job.nodes);
  row.partitions = Text(job.partition);
  return row;
}

Row RowOf(const slurmdb_job_rec_t& job) {
  Row row;
  row.name = Text(job.jobname);
  row.array_job_id = job.array_job_id != 0 ? job.array_job_id : job.jobid;
  row.tasks = Tasks(job.array_task_str, job.array_task_id);
  row.state = Text(slurm_job_state_string(job.state & JOB_STATE_BASE));
  row.reason = ReasonString(job.state_reason_prev);
  row.exit_status = job.exitcode;
  SetTimes(row, job.state & JOB_STATE_BASE, job.submit, job.start, job.end);
  row.nodes = Text(job.nodes);
  if (row.nodes == "None assigned") row.nodes.clear();
  row.by_its_user = (job.state & JOB_STATE_BASE) == JOB_CANCELLED && job.requid == job.uid && job.uid != 0;
  return row;
}

std::string PlainTasks(const std::string& tasks) {
  const std::string_view all = std::string_view(tasks).substr(0, tasks.find('%'));
  std::string plain;
  const auto add = [&](std::string_view word) {
    if (!plain.empty()) plain += ',';
    plain += word;
  };
  for (size_t at = 0; at < all.size();) {
    const std::string word(all.substr(at, all.find(',', at) - at));
    at += word.size() + 1;
    unsigned first = 0;
    unsigned last = 0;
    unsigned step = 0;
    if (std::sscanf(word.c_str(), "%u-%u:%u", &first, &last, &step) == 3 && step != 0) {
      for (uint64_t task = first; task <= last; task += step) add(std::to_string(task));
    } else {
      add(word);
    }
  }
  return plain;
}

}  // namespace ridgeline::slurm_agent
