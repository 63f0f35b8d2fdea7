// Jobs as tasks of Slurm's job arrays: submitted once whatever happens, found again, followed and cancelled.
//
// Slurm's ids are not to be relied on: a controller that is killed may lose jobs it has acknowledged, and give their
// ids to others. So an array is known by its name, which is nobody else's; the id is what it was last seen under. Where
// a site or a person has changed the name, it is known by its id, its user and when it was submitted.
//
// A submission that got no clear answer may have been done or not. It is looked up by its name, and is submitted again,
// or said to be missing, only when the controller has answered for longer than it would wait for a message, and neither
// it nor the accounting knows the name. One that is cancelled meanwhile is cancelled when it turns up.
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
  // Throws Failure, and SlurmError where the controller cannot be asked what it allows.
  Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Client> client,
          const plugin::Clock& clock);

  const Client& client() const { return *client_; }
  const Facts& facts() const { return facts_; }

  // One answer a job, in order. Throw SlurmError where Slurm does not answer; Submit says so of each job instead.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs);
  std::vector<plugin::JobState> Poll(const std::vector<std::string>& keys);
  // The same without telling Slurm to end anything, for who only looks.
  std::vector<plugin::JobState> Look(const std::vector<std::string>& keys);
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys);

  // To be called last: where the sweep asks for mail, one comes when what this session has submitted has ended. Throws
  // SlurmError.
  void Leave();

 private:
  using Time = plugin::Clock::Time;
  using Place = Journal::Place;
  using Rows = std::map<int64_t, Row>;  // by task; 0 of a job that is no array

  template <typename Question>
  auto Answered(Question question);
  void Ask();
  // `forgot_none`: whatever has ended since it was asked before is among the rows.
  void Adopt(std::vector<Row> rows, bool forgot_none);
  // Names a job that has no name of ours, where it is an array of ours all the same.
  void NameIfRenamed(Row& row) const;
  void AddCancelledEarlier(const Array& array, const Rows& rows, std::vector<std::string>& to_end);
  void NoteTakenOut(const std::map<std::string, Rows>& before);
  const Row* RowOf(const Array& array, size_t task) const;
  Around AroundOf(const Array& array) const;
  bool MayBeUnasked(const Place& place, const Row& row) const;
  // The end of a task's log; nothing where there is none.
  std::optional<std::string> LogOf(const Array& array, size_t task) const;
  std::map<std::string, Rows> AskAccounting(const std::vector<Place>& places);
  void AddRenamed(const std::vector<Place>& places, int64_t since_unix_s, std::vector<Row>& rows);

  // `recorded`: what the accounting has of it, nullptr where it was not asked or knows nothing yet.
  plugin::JobState StateOf(const Place& place, const Row& row, const Row* recorded);
  plugin::JobState Queued(const Place& place, const Row& row);
  plugin::JobState Ended(const Place& place, const Row& row) const;
  plugin::JobState Absent(const Place& place);
  bool NoneLives();
  bool IsAbsentForLong(const std::string& key);

  // Of an array without an id that neither the controller nor the accounting has just known: whether it is certain by
  // now that Slurm does not have it.
  bool CertainlyNot(const Array& array);
  // Nothing where the array is Slurm's now, or certainly not (and then forgotten); else why that is not known yet.
  std::optional<plugin::Failure> Resolve(Array& array);
  std::optional<plugin::Failure> SubmitArray(BatchJob batch);
  plugin::Failure NotSubmitted(const BatchJob& batch, const SlurmError& error);
  ArrayLimit Limit() const;

  const Options options_;
  const std::unique_ptr<Client> client_;
  const plugin::Clock& clock_;
  Journal journal_;
  Facts facts_;
  int64_t most_tasks_;  // of an array: halved where there was no room for one

  std::map<std::string, Rows> known_;                     // what the controller knows, by array name
  Time answered_ = {};                                    // when it was last asked, and answered
  std::set<std::string> taken_out_;                       // jobs that left an array's queue, while the array is there
  int64_t last_live_id_ = 0;                              // the newest array that has not ended; 0: none
  int64_t live_rows_ = 0;                                 // of the user's jobs, ours or not
  std::unordered_map<int64_t, std::string> seen_ids_;     // of the user's jobs: the array's name; empty: not ours
  std::unordered_map<std::string, Time> absent_since_;    // jobs of which one that must know knows nothing since
  std::unordered_map<std::string, Time> hopeless_since_;  // jobs that wait since for what will not be, as things are
  std::vector<std::string> to_end_;                       // what is to be cancelled: of those, and of what is lost
  std::unordered_set<std::string> told_though_lost_;      // jobs that were
  std::unordered_map<std::string, plugin::JobState> given_up_;  // and how those ended, of which Slurm keeps no record
  std::unordered_map<std::string, Time> answers_since_;         // arrays without an id: the controller answers since
  std::map<std::string, std::set<size_t>> told_to_end_;         // tasks that this session has told so, by array name
  std::vector<int64_t> submitted_;                              // by this session
  std::optional<BatchJob> last_submitted_;
};

}  // namespace ridgeline::slurm
