#include "slurm/judge.h"

#include <sys/wait.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridgeline/job_dir.h"

namespace ridgeline::slurm {
namespace {

using plugin::Evidence;
using plugin::JobState;
using plugin::Phase;

// What Slurm's record says, for people who look at a result.
Evidence EvidenceOf(const Array& array, size_t task, const Row& row) {
  Evidence evidence = {{"slurm_job", IdOf(array, task)}, {"slurm_state", row.state}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0" && value != "None") evidence[name] = value;
  };
  add("slurm_reason", row.reason);
  add("node", fmt::format("{}", fmt::join(HostsOf(row.nodes), " ")));
  add("restarts", std::to_string(row.restarts));
  add("ended_unix_s", std::to_string(row.ended_s));
  plugin::AddQueueWait(row.submitted_s, row.started_s, evidence);
  return evidence;
}

// The same words for all jobs that wait for the same thing.
std::string WaitWords(const Wait& wait, const Row& row) { return fmt::format("{} ({})", wait.message, row.reason); }

void AddEndOf(const End& end, const std::string& message, const std::string& hint, Evidence& evidence) {
  if (end.reason.empty()) {
    plugin::AddEnd(std::string(end.name), message, hint, evidence);
  } else {
    plugin::AddInfrastructure(std::string(end.reason), message, hint, evidence);
  }
}

// Why Slurm itself cancelled a task. Returns nothing if a person cancelled it, or may have.
Cause CauseOfCancel(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log,
                    const Around& around) {
  if (array.cancelled.contains(task) || row.by_its_user) return {};
  const Wait* wait = row.nodes.empty() ? WaitOf(row.reason) : nullptr;
  if (wait != nullptr && IsHopeless(*wait, row.partitions)) {
    return {std::string(wait->end.reason), WaitWords(*wait, row), std::string(wait->hint)};
  }
  // If a person cancels a job, the accounting has no end of its script, but the script was told.
  if ((WasTold(log) && !around.array_was_refused) || !IsUnasked(array, task, row, around)) return {};
  if (Cause cause = CauseOf(row.exit_status, row.reason, log.value_or("")); !cause.reason.empty()) return cause;
  if (!log) {
    return {"start", "its node did not begin the job, and Slurm cancelled it",
            "see slurmd's log on that node; a prolog of the site's that fails is one cause"};
  }
  if (around.array_was_refused) {
    return {"lost", "Slurm cancelled the job's whole array, as a node did not begin the last job of it",
            "see slurmd's log on the node of that job"};
  }
  return {"lost", "Slurm cancelled the job without ending its script",
          "a restarted controller does this if it forgot that the job had begun; see slurmctld's log"};
}

// Returns nothing if Slurm's state says everything, or only `exec` knows whether a trainer is at fault.
Cause CauseOfEnd(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log,
                 const Around& around) {
  if (row.state == "FAILED") return CauseOf(row.exit_status, row.reason, log.value_or(""));
  if (row.state == "CANCELLED") return CauseOfCancel(array, task, row, log, around);
  return {};
}

}  // namespace

bool IsLive(const Row& row) { return MeaningOf(row.state).phase != Phase::kEnded; }

std::string IdOf(const Array& array, size_t task) {
  return array.is_array ? fmt::format("{}_{}", array.id, task) : std::to_string(array.id);
}

JobState JudgeQueued(const Row& row, const Wait* wait) {
  JobState state{Phase::kQueued, 0, {}, {}};
  if (!row.reason.empty() && row.reason != "None") state.evidence["pending"] = row.reason;
  if (row.expected_s > 0) state.evidence["expected_unix_s"] = std::to_string(row.expected_s);
  if (wait == nullptr) return state;
  const std::string words = WaitWords(*wait, row);
  state.evidence["waits"] = words;
  state.evidence["hint"] = wait->hint;
  if (wait->no_node) state.evidence["no_node"] = words;
  return state;
}

JobState JudgeHopeless(const Array& array, size_t task, const Row& row, const Wait& wait) {
  JobState state{Phase::kEnded, 0, EvidenceOf(array, task, row), {}};
  AddEndOf(wait.end, WaitWords(wait, row), std::string(wait.hint), state.evidence);
  return state;
}

bool IsUnasked(const Array& array, size_t task, const Row& row, const Around& around) {
  // A task that is queued again has no node.
  const bool had_node = !row.nodes.empty() || (row.restarts > 0 && !around.may_be_requeued);
  return row.state == "CANCELLED" && !array.cancelled.contains(task) && had_node &&
         (around.array_was_refused || IsOfNoScript(row.exit_status));
}

bool WasTold(const std::optional<std::string>& log) { return log && log->find(" CANCELLED AT ") != std::string::npos; }

JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log,
                    const Around& around) {
  const Meaning& meaning = MeaningOf(row.state);
  JobState state{Phase::kEnded, row.started_s, EvidenceOf(array, task, row), {}};
  plugin::AddLogTail(log.value_or(""), state.evidence);
  const int code = WIFEXITED(row.exit_status) ? WEXITSTATUS(row.exit_status) : 0;
  plugin::AddExit(code, WIFSIGNALED(row.exit_status) ? WTERMSIG(row.exit_status) : 0, state.evidence);
  if (row.state == "FAILED" && code == kExecInterrupted) return state;  // the results say more
  if (const Cause cause = CauseOfEnd(array, task, row, log, around); !cause.reason.empty()) {
    plugin::AddInfrastructure(cause.reason, cause.message, cause.hint, state.evidence);
    if (!cause.node.empty()) state.evidence["node"] = cause.node;
  } else if (row.state == "FAILED") {
    const std::string srun = SrunsWords(log.value_or(""));
    state.evidence["message"] = std::string(meaning.message) + (srun.empty() ? "" : ": " + srun);
    state.evidence["hint"] = meaning.hint;
  } else if (!meaning.end.empty()) {
    AddEndOf(meaning.end, std::string(meaning.message), std::string(meaning.hint), state.evidence);
  }
  return state;
}

}  // namespace ridgeline::slurm
