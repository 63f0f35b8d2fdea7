// The meaning of Slurm's words and numbers: states, reasons, errors, and the last words of a job. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers.h"

namespace ridgeline::slurm {

// One of the contract's ends that a scheduler can know (run.h), and for infrastructure its reason.
struct End {
  std::string_view name;
  std::string_view reason = {};
  bool operator==(const End&) const = default;
  bool empty() const { return name.empty(); }
};
constexpr End Infrastructure(std::string_view reason) { return {"infrastructure", reason}; }

// The meaning of a Slurm job state.
struct Meaning {
  std::string_view state;
  plugin::Phase phase;
  End end;                   // for kEnded; empty: the job's results say more
  std::string_view message;  // for a bad end: what happened, for people
  std::string_view hint;
};
// The table of all states. A state that is missing here counts as running.
const std::vector<Meaning>& Meanings();
const Meaning& MeaningOf(std::string_view state);

// Why a pending job waits, if not just for its turn.
struct Wait {
  // As squeue prints it, in lower case without blanks; for a family of reasons, their common beginning.
  std::string_view reason;
  std::string_view message;
  std::string_view hint;
  End end = {};          // the end if it will never start as things are; empty: it may start
  bool no_node = false;  // no node exists now that it may go to, busy or not
  // The obstacle is the job's own, whichever partition it goes to. Slurm shows the reason of the partition that it
  // tried last. So a job with several partitions may still start in another one.
  bool in_any_partition = false;
};
// Returns nullptr if a job just waits for its turn.
const Wait* WaitOf(std::string_view reason);

// Returns whether a job that waits for this will never start as things are. `partitions`: where it may go, separated by
// commas.
bool IsHopeless(const Wait& wait, std::string_view partitions);

// Why a job failed, as far as this shows: its exit status from wait(), Slurm's reason, and the end of its log.
struct Cause {
  std::string reason;  // of infrastructure; empty: not known
  std::string message;
  std::string hint = {};
  std::string node = {};  // where it happened; empty: not given
};
Cause CauseOf(int exit_status, std::string_view reason, std::string_view log);

// Returns srun's last words in a job's log about why srun failed, not about how a task ended; empty if there are none.
std::string SrunsWords(std::string_view log);

// Returns whether no script ended with this status: Slurm heard of no end (0), or it is slurmd's own number for why no
// script ran.
bool IsOfNoScript(int exit_status);

// Why something was not done.
enum class Trouble {
  kRefused,   // permanently; asking again is useless
  kBusy,      // for now, because there is no room for more jobs
  kNoAnswer,  // it is not known whether it was done
};
// `code` is Slurm's error number, or 0 if only the words are known, which are lines of its tools or of libslurm. Only a
// clear refusal is kRefused. That includes `Unspecified error` after a sentence, as a site's job_submit plugin produces
// it (log_user).
Trouble TroubleOf(int64_t code, std::string_view words);

// Joins such lines into one for people. Leaves out the tools' names, and lines that add nothing to another sentence.
std::string WordsOf(std::string_view lines);

// Returns a sentence if these words say that this machine lacks what Slurm's calls need: slurm.conf, or munge. Returns
// an empty text otherwise.
std::string_view MissingHere(std::string_view words);

// Returns whether these words refuse a job because of how many jobs its own user may have in the queue.
bool IsLimitOfTheUsersJobs(std::string_view words);

// How to handle a refusal.
struct Refusal {
  std::string_view part;    // part of Slurm's words
  std::string_view reason;  // of infrastructure
  std::string_view hint;
  std::string_view setting = {};  // of `slurm:`, whose value is refused; empty: not a single one's
};
const Refusal& RefusalOf(std::string_view words);

}  // namespace ridgeline::slurm
