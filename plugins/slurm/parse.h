// What Slurm says, read: pure, text in, facts out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers.h"

namespace ridgeline::slurm {

// One record of the queue or of the accounting: a task of an array, several pending ones, or a job that is no array.
struct Row {
  std::string name;
  int64_t job_id = 0;                         // the array's, where it is one
  std::optional<std::vector<int64_t>> tasks;  // nothing: no array
  std::string state;                          // "PENDING", "COMPLETING", …
  std::string reason;
  int exit_status = 0;  // as wait() has it
  int64_t restarts = 0;
  int64_t submitted_s = 0;  // Unix time; 0: not known
  int64_t started_s = 0;
  int64_t ended_s = 0;
  std::string nodes;
};

// "4", "0-3,7", "12-40:2%2", "[1-3]": the tasks' indices. Nothing where it is none of these.
std::optional<std::vector<int64_t>> ParseTasks(std::string_view text);
// The other way round: ascending indices as "0-3,7".
std::string FormatTasks(const std::vector<int64_t>& tasks);

// What `squeue -O` is asked for, and its answer; lines that are not ours are passed over.
extern const char* const kSqueueFormat;
std::vector<Row> ParseSqueue(std::string_view text);

// The same of `sacct --parsable2 -o`.
extern const char* const kSacctFormat;
std::vector<Row> ParseSacct(std::string_view text);

// A row of the agent's answers. Throws Json::exception.
Row RowFromJson(const plugin::Json& row);

// What is known of a Slurm installation.
struct Facts {
  std::string version;  // of the controller
  std::string cluster;
  int64_t max_array_size = 1001;
  int64_t max_job_count = 10'000;
  int64_t message_timeout_s = 10;
  bool accounting = false;
};
Facts ParseConfig(std::string_view scontrol_show_config);

// What a Slurm job state means to us.
struct Meaning {
  std::string_view state;
  plugin::Phase phase;
  std::string_view end;      // of kEnded: one of the contract's ends; empty: the exit code tells
  std::string_view message;  // of a bad end: what happened, for people
  std::string_view hint;
};
// The one table; a state that is not in it is taken as running.
const std::vector<Meaning>& Meanings();
const Meaning& MeaningOf(std::string_view state);

// Why a pending job waits, where that is more than its turn that has not come.
struct Wait {
  std::string_view reason;  // as squeue prints it, without blanks, lower case
  std::string_view message;
  std::string_view hint;
  std::string_view end;  // it will never start: what that is; empty: it may
};
// nullptr where a job just waits its turn.
const Wait* WaitOf(std::string_view reason);

// Why something was not done.
enum class Trouble {
  kRefused,   // for good: asking again is no use
  kBusy,      // for now: no room for more jobs
  kNoAnswer,  // nobody knows whether it was done
};
// `code` is Slurm's error number, 0 where only the words are known.
Trouble TroubleOf(int64_t code, std::string_view words);
// What to do about a refusal; empty where nothing is known.
std::string HintFor(std::string_view words);

}  // namespace ridgeline::slurm
