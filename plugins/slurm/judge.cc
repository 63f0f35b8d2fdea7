#include "slurm/judge.h"

#include <sys/wait.h>

#include <regex>

#include <fmt/format.h>

#include "ridgeline/job_dir.h"

namespace ridgeline::slurm {
namespace {

using plugin::Evidence;
using plugin::JobState;
using plugin::Phase;

// What Slurm's record says, for whoever looks at a result.
Evidence EvidenceOf(const Array& array, size_t task, const Row& row) {
  Evidence evidence = {{"slurm_job", IdOf(array, task)}, {"slurm_state", row.state}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0" && value != "None") evidence[name] = value;
  };
  add("slurm_reason", row.reason);
  add("nodes", row.nodes);
  add("restarts", std::to_string(row.restarts));
  plugin::AddQueueWait(row.submitted_s, row.started_s, evidence);
  return evidence;
}

// Of a script that its node could not start Slurm says FAILED too; what is in the log then is slurmstepd's.
bool CouldNotStart(const Row& row, const std::string& log) {
  static const std::regex kWords(R"(slurmstepd[^\n]*: error: execve\(\): [^\n]*/slurm_script: )");
  return row.state == "FAILED" && std::regex_search(log, kWords);
}

}  // namespace

bool IsLive(const Row& row) { return MeaningOf(row.state).phase != Phase::kEnded; }

std::string IdOf(const Array& array, size_t task) {
  return array.is_array ? fmt::format("{}_{}", array.id, task) : std::to_string(array.id);
}

JobState JudgeQueued(const Array& array, size_t task, const Row& row) {
  const Wait* wait = WaitOf(row.reason);
  if (wait == nullptr) return {Phase::kQueued, 0, {}, {}};
  const std::string message = fmt::format("Slurm job {}: {} ({})", array.id, wait->message, row.reason);
  if (wait->end.empty()) return {Phase::kQueued, 0, {{"waits", message}, {"hint", std::string(wait->hint)}}, {}};
  JobState state{Phase::kEnded, 0, EvidenceOf(array, task, row), {}};
  plugin::AddEnd(std::string(wait->end), message, std::string(wait->hint), state.evidence);
  return state;
}

JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::string& log) {
  const Meaning& meaning = MeaningOf(CouldNotStart(row, log) ? "LAUNCH_FAILED" : row.state);
  JobState state{Phase::kEnded, row.started_s, EvidenceOf(array, task, row), {}};
  plugin::AddLogTail(log, state.evidence);
  const int code = WIFEXITED(row.exit_status) ? WEXITSTATUS(row.exit_status) : 0;
  plugin::AddExit(code, WIFSIGNALED(row.exit_status) ? WTERMSIG(row.exit_status) : 0, state.evidence);
  // Of a failure that was an interruption, the results say more.
  if (!meaning.end.empty() && !(row.state == "FAILED" && code == kExecInterrupted)) {
    plugin::AddEnd(std::string(meaning.end), std::string(meaning.message), std::string(meaning.hint), state.evidence);
  }
  return state;
}

}  // namespace ridgeline::slurm
