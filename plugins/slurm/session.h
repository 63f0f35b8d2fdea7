// Jobs as tasks of Slurm's job arrays. Each is submitted exactly once whatever happens, found again, followed and
// cancelled.
//
// Slurm's ids are not reliable: a controller that is killed may lose jobs that it has acknowledged, and give their ids
// to others. So an array is identified by its unique name, and the id is the last one seen under that name. If a site
// or a person has changed the name, the array is identified by its id, its user and its submit time.
//
// A submission without a clear answer may have succeeded or not. It is looked up by its name. It is submitted again, or
// reported missing, only after two conditions: the controller has answered for longer than it would wait for a message,
// and neither it nor the accounting knows the name. A job that is cancelled meanwhile is cancelled when it turns up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/answers.h"
#include "common/clock.h"
#include "slurm/client.h"
#include "slurm/config.h"
#include "slurm/journal.h"
#include "slurm/judge.h"
#include "slurm/render.h"

namespace ridgeline::slurm {

class Session {
 public:
  // Throws Failure, and SlurmError if the controller cannot be asked for its limits.
  Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Client> client,
          const plugin::Clock& clock);

  const Client& client() const { return *client_; }
  const Facts& facts() const { return facts_; }

  // These return one answer for each job, in order. They throw SlurmError if Slurm does not answer; Submit reports that
  // for each job instead.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs,
                                         plugin::Clock::Duration within = plugin::Clock::Duration::max());
  std::vector<plugin::JobState> Poll(const std::vector<std::string>& keys);
  // The same for callers that only look. Does not tell Slurm to end anything.
  std::vector<plugin::JobState> Look(const std::vector<std::string>& keys);
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys);

  // Must be called last. If the sweep asks for mail, one comes when everything that this session has submitted has
  // ended. Throws SlurmError.
  void Leave();

 private:
  using Time = plugin::Clock::Time;
  using Place = Journal::Place;
  using Rows = std::map<int64_t, Row>;  // by task; 0 for a job that is no array

  template <typename Question>
  auto Answered(Question question);
  void Ask();
  // `forgot_none`: the rows include everything that has ended since the previous question.
  void Adopt(std::vector<Row> rows, bool forgot_none);
  // Gives our name to a job without one, if it is one of our arrays.
  void NameIfRenamed(Row& row) const;
  void AddCancelledEarlier(const Array& array, const Rows& rows, std::vector<std::string>& to_end);
  void NoteTakenOut(const std::map<std::string, Rows>& before);
  const Row* RowOf(const Array& array, size_t task) const;
  Around AroundOf(const Array& array) const;
  bool MayBeUnasked(const Place& place, const Row& row) const;
  // Returns the end of a task's log; nothing if there is none.
  std::optional<std::string> LogOf(const Array& array, size_t task) const;
  std::map<std::string, Rows> AskAccounting(const std::vector<Place>& places);
  void AddRenamed(const std::vector<Place>& places, int64_t since_unix_s, std::vector<Row>& rows);

  // `recorded`: the accounting's row; nullptr if the accounting was not asked or knows nothing yet.
  plugin::JobState StateOf(const Place& place, const Row& row, const Row* recorded);
  plugin::JobState Queued(const Place& place, const Row& row);
  plugin::JobState Ended(const Place& place, const Row& row) const;
  plugin::JobState Absent(const Place& place);
  bool NoneLives();
  bool IsAbsentForLong(const std::string& key);

  // For an array without an id that neither the controller nor the accounting just knew: returns whether it is certain
  // by now that Slurm does not have it.
  bool CertainlyNot(const Array& array);
  // Finds out whether Slurm has the array. If it certainly does not, forgets the array. Returns nothing in both cases.
  // Otherwise returns why this is not known yet.
  std::optional<plugin::Failure> Resolve(Array& array);
  // `none_lived`: the user had no job in the queue before this.
  std::optional<plugin::Failure> SubmitArray(BatchJob batch, bool none_lived = false);
  plugin::Failure NotSubmitted(const BatchJob& batch, const SlurmError& error, bool none_lived);
  ArrayLimit Limit() const;

  const Options options_;
  const std::unique_ptr<Client> client_;
  const plugin::Clock& clock_;
  Journal journal_;
  Facts facts_;
  int64_t most_tasks_;  // of one array; halved if there was no room for one

  std::map<std::string, Rows> known_;                  // what the controller knows, by array name
  Time answered_ = {};                                 // when it last answered
  std::set<std::string> taken_out_;                    // jobs that left the queue while their array stayed
  int64_t last_live_id_ = 0;                           // the newest array that has not ended; 0: none
  int64_t live_rows_ = 0;                              // number of the user's live jobs, ours or not
  std::unordered_map<int64_t, std::string> seen_ids_;  // the user's jobs: id -> name of the array; empty: not ours
  // Jobs: since when the source that must know a job has not known it.
  std::unordered_map<std::string, Time> absent_since_;
  // Jobs: since when they wait for something that will not come as things are.
  std::unordered_map<std::string, Time> hopeless_since_;
  std::vector<std::string> to_end_;                   // jobs to cancel: hopeless ones and lost ones
  std::unordered_set<std::string> told_though_lost_;  // lost jobs that were told to end
  // How hopeless jobs ended, of which Slurm keeps no record.
  std::unordered_map<std::string, plugin::JobState> given_up_;
  std::unordered_map<std::string, Time> answers_since_;  // arrays without an id: since when the controller answers
  std::map<std::string, std::set<size_t>> told_to_end_;  // tasks that this session has told to end, by array name
  std::vector<int64_t> submitted_;                       // ids submitted by this session
  std::optional<BatchJob> last_submitted_;
};

}  // namespace ridgeline::slurm
