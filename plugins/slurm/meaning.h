// What Slurm's words and numbers mean to us: states, reasons, errors, and the last words of a job. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers.h"

namespace ridgeline::slurm {

// One of the contract's ends that a scheduler can know (run.h), and of the infrastructure's the reason.
struct End {
  std::string_view name;
  std::string_view reason = {};
  bool operator==(const End&) const = default;
  bool empty() const { return name.empty(); }
};
constexpr End Infrastructure(std::string_view reason) { return {"infrastructure", reason}; }

// What a Slurm job state means to us.
struct Meaning {
  std::string_view state;
  plugin::Phase phase;
  End end;                   // of kEnded; empty: what the job left says more
  std::string_view message;  // of a bad end: what happened, for people
  std::string_view hint;
};
// The one table; a state that is not in it is taken as running.
const std::vector<Meaning>& Meanings();
const Meaning& MeaningOf(std::string_view state);

// Why a pending job waits, where that is more than its turn that has not come.
struct Wait {
  std::string_view reason;  // as squeue prints it, without blanks, lower case; of a family, what they begin with
  std::string_view message;
  std::string_view hint;
  End end = {};          // as things are it will never start: what that is; empty: it may
  bool no_node = false;  // there is no node now that it may go to, busy or not
  // The obstacle is the job's own, whichever partition it goes to. Slurm shows the reason of the partition that it
  // looked at last, so that a job of several partitions may still start in another one.
  bool in_any_partition = false;
};
// nullptr where a job just waits its turn.
const Wait* WaitOf(std::string_view reason);

// Whether a job that waits for this will never start as things are. `partitions`: those that it may go to, separated
// by commas.
bool IsHopeless(const Wait& wait, std::string_view partitions);

// Why a job failed, as far as this tells: its exit status as wait() has it, Slurm's reason, and its log's end.
struct Cause {
  std::string reason;  // of the infrastructure's; empty: nothing is known
  std::string message;
  std::string hint = {};
  std::string node = {};  // where that was; empty: not said
};
Cause CauseOf(int exit_status, std::string_view reason, std::string_view log);

// What srun said last in a job's log of why it failed, and not of how a task ended; empty: nothing.
std::string SrunsWords(std::string_view log);

// Whether no script ended so: Slurm heard of none's end (0), or it is slurmd's own number for why there was none.
bool IsOfNoScript(int exit_status);

// Why something was not done.
enum class Trouble {
  kRefused,   // for good: asking again is no use
  kBusy,      // for now: no room for more jobs
  kNoAnswer,  // nobody knows whether it was done
};
// `code` is Slurm's error number, 0 where only the words are known, which are lines as its tools or libslurm print
// them. A refusal is what clearly is one: also `Unspecified error` with a sentence before it, as a site's job_submit
// plugin has it (log_user).
Trouble TroubleOf(int64_t code, std::string_view words);

// Such lines as one for people: without the names of the tools, and without what says nothing beside another sentence.
std::string WordsOf(std::string_view lines);

// A sentence where these words say that this machine lacks what Slurm's calls need: slurm.conf, or munge. Empty: they
// do not.
std::string_view MissingHere(std::string_view words);

// Whether these words refuse a job for how many jobs its own user may have in the queue.
bool IsLimitOfTheUsersJobs(std::string_view words);

// What to make of a refusal.
struct Refusal {
  std::string_view part;    // of Slurm's words
  std::string_view reason;  // of the infrastructure's
  std::string_view hint;
};
const Refusal& RefusalOf(std::string_view words);

}  // namespace ridgeline::slurm
