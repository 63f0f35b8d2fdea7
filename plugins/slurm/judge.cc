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

// What Slurm's record says, for whoever looks at a result.
Evidence EvidenceOf(const Array& array, size_t task, const Row& row) {
  Evidence evidence = {{"slurm_job", IdOf(array, task)}, {"slurm_state", row.state}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0" && value != "None") evidence[name] = value;
  };
  add("slurm_reason", row.reason);
  add("node", fmt::format("{}", fmt::join(HostsOf(row.nodes), " ")));
  add("restarts", std::to_string(row.restarts));
  plugin::AddQueueWait(row.submitted_s, row.started_s, evidence);
  return evidence;
}

// Once for all jobs that wait for the same.
std::string WordsOf(const Wait& wait, const Row& row) { return fmt::format("{} ({})", wait.message, row.reason); }

void AddEndOf(const End& end, const std::string& message, const std::string& hint, Evidence& evidence) {
  if (end.reason.empty()) {
    plugin::AddEnd(std::string(end.name), message, hint, evidence);
  } else {
    plugin::AddInfrastructure(std::string(end.reason), message, hint, evidence);
  }
}

// Nobody but `exec` knows whether a trainer is at fault, so a failure has no end, unless its cause is known.
void AddFailure(const Row& row, const Meaning& meaning, const std::string& log, Evidence& evidence) {
  const Cause cause = CauseOf(row.exit_status, row.reason, log);
  if (cause.reason.empty()) {
    evidence["message"] = meaning.message;
    evidence["hint"] = meaning.hint;
    return;
  }
  plugin::AddInfrastructure(cause.reason, cause.message, cause.hint, evidence);
  if (!cause.node.empty()) evidence["node"] = cause.node;
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
  const std::string words = WordsOf(*wait, row);
  state.evidence["waits"] = words;
  state.evidence["hint"] = wait->hint;
  if (wait->no_node) state.evidence["no_node"] = words;
  return state;
}

JobState JudgeHopeless(const Array& array, size_t task, const Row& row, const Wait& wait) {
  JobState state{Phase::kEnded, 0, EvidenceOf(array, task, row), {}};
  AddEndOf(wait.end, WordsOf(wait, row), std::string(wait.hint), state.evidence);
  return state;
}

JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::string& log) {
  const Meaning& meaning = MeaningOf(row.state);
  JobState state{Phase::kEnded, row.started_s, EvidenceOf(array, task, row), {}};
  plugin::AddLogTail(log, state.evidence);
  const int code = WIFEXITED(row.exit_status) ? WEXITSTATUS(row.exit_status) : 0;
  plugin::AddExit(code, WIFSIGNALED(row.exit_status) ? WTERMSIG(row.exit_status) : 0, state.evidence);
  const bool interrupted = code == kExecInterrupted;  // then the results say more
  if ((row.state == "FAILED" && !interrupted) || (row.state == "CANCELLED" && PrologFailed(log))) {
    AddFailure(row, meaning, log, state.evidence);
  } else if (!meaning.end.empty()) {
    AddEndOf(meaning.end, std::string(meaning.message), std::string(meaning.hint), state.evidence);
  }
  return state;
}

}  // namespace ridgeline::slurm
