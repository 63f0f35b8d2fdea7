#include "slurm/session.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "common/process.h"
#include "ridgeline/limits.h"
#include "slurm/judge.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::JobState;
using plugin::Json;
using plugin::Phase;

constexpr int64_t kArrayShare = 10;  // an array may take a tenth of the controller's job table
// A controller may know a new job late, the accounting an old one.
constexpr auto kAbsentGrace = std::chrono::seconds(10);
constexpr auto kMessageMargin = std::chrono::seconds(2);
constexpr int64_t kClockSkewS = 600;                      // between this machine's clock and the controller's
constexpr auto kHopelessGrace = std::chrono::minutes(1);  // time for an administrator to remove the obstacle

Failure NotNow(const std::string& message, const std::string& hint = {}) {
  return {Failure::Kind::kNotNow, message, hint};
}

std::map<std::string, std::map<int64_t, Row>> ByTask(const std::vector<Row>& rows) {
  std::map<std::string, std::map<int64_t, Row>> by_name;
  for (const Row& row : rows) {
    Row of_one_task = row;  // without the list of all tasks
    of_one_task.tasks.reset();
    for (const int64_t task : row.tasks.value_or(std::vector<int64_t>{0})) by_name[row.name][task] = of_one_task;
  }
  return by_name;
}

// Returns whether a job with the array's id is the array.
bool IsOfItsTime(const Array& array, const Row& row) {
  const bool was_requeued = row.restarts > 0;  // Slurm submits it anew
  if (array.submitted_unix_s > 0 && !was_requeued) return row.submitted_s == array.submitted_unix_s;
  return row.submitted_s >= array.recorded_unix_s - kClockSkewS &&
         (was_requeued || row.submitted_s <= array.recorded_unix_s + kClockSkewS);
}

}  // namespace

Session::Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Client> client,
                 const plugin::Clock& clock)
    : options_(std::move(options)),
      client_(std::move(client)),
      clock_(clock),
      journal_(state_dir),
      facts_(client_->GetFacts()),
      most_tasks_(facts_.max_job_count) {}

ArrayLimit Session::Limit() const {
  return {std::min({most_tasks_, facts_.max_array_size, std::max<int64_t>(1, facts_.max_job_count / kArrayShare)}),
          facts_.max_array_size > 1};
}

// After a failed question, the time for which Slurm has been answering starts again.
template <typename Question>
auto Session::Answered(Question question) {
  try {
    return question();
  } catch (const SlurmError&) {
    answers_since_.clear();
    throw;
  }
}

void Session::Ask() {
  const std::optional<std::vector<Row>> rows = Answered([&] { return client_->Jobs(); });
  const Time now = clock_.Now();
  const auto not_asked_for = now - std::exchange(answered_, now);
  const bool forgot_none = facts_.min_job_age_s == 0 || not_asked_for < std::chrono::seconds(facts_.min_job_age_s);
  if (rows) Adopt(*rows, forgot_none);
}

void Session::NameIfRenamed(Row& row) const {
  if (!row.name.empty()) return;
  const Array* array = journal_.FindIf([&](const Array& each) {
    return each.id == row.job_id && each.is_array == row.tasks.has_value() && IsOfItsTime(each, row);
  });
  if (array != nullptr) row.name = array->name;
}

void Session::Adopt(std::vector<Row> rows, bool forgot_none) {
  last_live_id_ = 0;
  live_rows_ = std::ranges::count_if(rows, IsLive);
  seen_ids_.clear();
  for (Row& row : rows) {
    NameIfRenamed(row);
    seen_ids_[row.job_id] = row.name;
    Array* array = journal_.FindArray(row.name);
    if (array != nullptr && array->id == row.job_id && array->submitted_unix_s == 0 && row.restarts == 0) {
      journal_.SetSubmitted(*array, row.submitted_s);
    }
  }
  std::vector<Row> ours;
  using Id = std::pair<bool, int64_t>;  // whether the job has ended, so that it may be a refused submission's; its id
  std::map<std::string, std::set<Id>> ids;  // the ids under each name
  for (const Row& row : rows) {
    const Array* array = journal_.FindArray(row.name);
    if (array == nullptr || array->is_array != row.tasks.has_value()) continue;
    if (!array->twins.contains(row.job_id)) ids[row.name].insert({!IsLive(row), row.job_id});
  }
  for (const auto& [name, found] : ids) {
    Array& array = *journal_.FindArray(name);
    const bool is_there = std::any_of(found.begin(), found.end(), [&](const Id& id) { return id.second == array.id; });
    if (!is_there) journal_.SetId(array, found.begin()->second);
  }
  std::vector<std::string> to_end;  // so that an array that was submitted twice runs once
  for (const Row& row : rows) {
    Array* array = journal_.FindArray(row.name);
    if (array == nullptr || (!ids.contains(row.name) && !array->twins.contains(row.job_id))) continue;
    if (row.job_id == array->id) {
      ours.push_back(row);
      if (IsLive(row)) last_live_id_ = std::max(last_live_id_, row.job_id);
    } else if (IsLive(row)) {
      journal_.AddTwin(*array, row.job_id);
      to_end.push_back(std::to_string(row.job_id));
    }
  }
  const std::map<std::string, Rows> before = std::exchange(known_, ByTask(ours));
  if (forgot_none) NoteTakenOut(before);
  for (const auto& [name, tasks] : known_) AddCancelledEarlier(*journal_.FindArray(name), tasks, to_end);
  if (!to_end.empty()) client_->Cancel(to_end);
}

// Tells tasks to end that were cancelled before Slurm was seen to have them.
void Session::AddCancelledEarlier(const Array& array, const Rows& rows, std::vector<std::string>& to_end) {
  if (array.cancelled.empty()) return;
  std::set<size_t>& told = told_to_end_[array.name];
  for (const size_t task : array.cancelled) {
    const auto row = rows.find(static_cast<int64_t>(task));
    if (row != rows.end() && IsLive(row->second) && told.insert(task).second) to_end.push_back(IdOf(array, task));
  }
}

// Slurm keeps no record of a task that is cancelled before it begins.
void Session::NoteTakenOut(const std::map<std::string, Rows>& before) {
  for (const auto& [name, rows] : before) {
    const auto found = known_.find(name);
    if (found == known_.end()) continue;
    const Array& array = *journal_.FindArray(name);
    for (const auto& [task, row] : rows) {
      const bool queued = row.job_id == array.id && MeaningOf(row.state).phase == Phase::kQueued;
      if (!queued || found->second.contains(task)) continue;
      taken_out_.insert(array.keys.at(static_cast<size_t>(task)));
    }
  }
}

const Row* Session::RowOf(const Array& array, size_t task) const {
  const auto rows = known_.find(array.name);
  if (rows == known_.end()) return nullptr;
  const auto row = rows->second.find(static_cast<int64_t>(task));
  return row == rows->second.end() ? nullptr : &row->second;
}

Around Session::AroundOf(const Array& array) const {
  Around around;
  around.may_be_requeued = options_.requeue;
  const size_t last = array.keys.size() - 1;
  const Row* row = array.is_array ? RowOf(array, last) : nullptr;
  around.array_was_refused = row != nullptr && IsUnasked(array, last, *row, around) && !WasTold(LogOf(array, last));
  return around;
}

// Looks at a task's surroundings only if it is cancelled, which few are.
bool Session::MayBeUnasked(const Place& place, const Row& row) const {
  return row.state == "CANCELLED" && IsUnasked(*place.array, place.task, row, AroundOf(*place.array));
}

std::optional<std::string> Session::LogOf(const Array& array, size_t task) const {
  const std::string file = LogFile(journal_.dir(), array.name, task);
  std::error_code ec;
  return std::filesystem::exists(file, ec) ? std::optional(ReadLogTail(file, kLogTailBytes)) : std::nullopt;
}

std::map<std::string, Session::Rows> Session::AskAccounting(const std::vector<Place>& places) {
  if (!facts_.accounting || places.empty()) return {};
  std::set<std::string> names;
  int64_t since_unix_s = places.front().array->recorded_unix_s;
  for (const Place& place : places) {
    names.insert(place.array->job_name);
    since_unix_s = std::min(since_unix_s, place.array->recorded_unix_s);
  }
  std::vector<Row> ended;
  std::vector<Row> rests;  // the tasks of an array that never began have one record, without their indices
  std::vector<Row> rows = Answered([&] {
    std::vector<Row> found = client_->Accounted({names.begin(), names.end()}, since_unix_s - kClockSkewS);
    AddRenamed(places, since_unix_s - kClockSkewS, found);
    return found;
  });
  for (Row& row : rows) {
    // A job is dead if the accounting calls it alive but the controller does not know it.
    if (IsLive(row)) continue;
    const Array* array = journal_.FindArray(row.name);
    // A submission that was refused, or was ended because the array existed twice.
    if (array != nullptr && array->id > 0 && array->id != row.job_id) continue;
    if (array != nullptr && array->twins.contains(row.job_id)) continue;
    const bool rest = array != nullptr && array->is_array && !row.tasks;
    (rest ? rests : ended).push_back(std::move(row));
  }
  std::map<std::string, Rows> by_name = ByTask(ended);
  for (const Row& row : rests) {
    const size_t tasks = journal_.FindArray(row.name)->keys.size();
    for (size_t task = 0; task < tasks; ++task) by_name[row.name].try_emplace(static_cast<int64_t>(task), row);
  }
  return by_name;
}

// Adds jobs that have another name in the accounting, too.
void Session::AddRenamed(const std::vector<Place>& places, int64_t since_unix_s, std::vector<Row>& rows) {
  std::set<int64_t> ids;
  for (const Place& place : places) ids.insert(place.array->id);
  ids.erase(0);
  for (const Row& row : rows) ids.erase(row.job_id);
  if (ids.empty()) return;
  for (Row& row : client_->AccountedById({ids.begin(), ids.end()}, since_unix_s)) {
    const bool has_our_name = !row.name.empty();
    NameIfRenamed(row);
    if (!has_our_name && !row.name.empty()) rows.push_back(std::move(row));
  }
}

std::vector<JobState> Session::Poll(const std::vector<std::string>& keys) {
  std::vector<JobState> states = Look(keys);
  if (const std::vector<std::string> ids = std::exchange(to_end_, {}); !ids.empty()) client_->Cancel(ids);
  return states;
}

std::vector<JobState> Session::Look(const std::vector<std::string>& keys) {
  to_end_.clear();
  Ask();
  std::vector<Place> places;
  std::vector<Place> unknown;
  for (const std::string& key : keys) {
    places.push_back(journal_.Find(key));
    const Place& place = places.back();
    if (place.array == nullptr) continue;
    const Row* row = RowOf(*place.array, place.task);
    // Only the accounting knows who cancelled a job.
    if (row == nullptr || MayBeUnasked(place, *row)) unknown.push_back(place);
  }
  const std::map<std::string, Rows> accounted = AskAccounting(unknown);
  std::vector<JobState> states;
  for (const Place& place : places) {
    if (place.array == nullptr) {
      states.emplace_back();
      continue;
    }
    const Row* row = RowOf(*place.array, place.task);
    const Row* recorded = nullptr;
    if (const auto rows = accounted.find(place.array->name); rows != accounted.end()) {
      const auto found = rows->second.find(static_cast<int64_t>(place.task));
      if (found != rows->second.end()) recorded = &found->second;
    }
    if (row == nullptr) row = recorded;
    states.push_back(row == nullptr ? Absent(place) : StateOf(place, *row, recorded));
    if (place.array->id > 0) states.back().native_id = IdOf(*place.array, place.task);
  }
  return states;
}

JobState Session::StateOf(const Place& place, const Row& row, const Row* recorded) {
  const std::string& key = place.array->keys[place.task];
  if (MayBeUnasked(place, row) && facts_.accounting && recorded == nullptr && !IsAbsentForLong(key)) {
    return {Phase::kRunning, row.started_s, {}, {}};
  }
  absent_since_.erase(key);
  if (place.array->id == 0) journal_.SetId(*place.array, row.job_id);  // until now only the accounting knew the array
  Row known = row;
  known.by_its_user = recorded != nullptr && recorded->by_its_user;
  switch (MeaningOf(row.state).phase) {
    case Phase::kQueued:
      return Queued(place, row);
    case Phase::kRunning:
      return {Phase::kRunning, row.started_s, {}, {}};
    case Phase::kEnded:
      return Ended(place, known);
    case Phase::kMissing:
      break;
  }
  return {};
}

JobState Session::Queued(const Place& place, const Row& row) {
  const std::string& key = place.array->keys[place.task];
  const Wait* wait = WaitOf(row.reason);
  if (wait == nullptr || !IsHopeless(*wait, row.partitions)) {
    hopeless_since_.erase(key);
    given_up_.erase(key);
    return JudgeQueued(row, wait);
  }
  const Time now = clock_.Now();
  if (now - hopeless_since_.try_emplace(key, now).first->second < kHopelessGrace) return JudgeQueued(row, wait);
  to_end_.push_back(IdOf(*place.array, place.task));
  return given_up_[key] = JudgeHopeless(*place.array, place.task, row, *wait);
}

JobState Session::Ended(const Place& place, const Row& row) const {
  const Array& array = *place.array;
  const std::optional<std::string> log = row.state == "COMPLETED" ? std::nullopt : LogOf(array, place.task);
  return JudgeEnded(array, place.task, row, log, AroundOf(array));
}

JobState Session::Absent(const Place& place) {
  const Array& array = *place.array;
  const std::string& key = array.keys[place.task];
  if (array.id == 0 && !CertainlyNot(array)) return {Phase::kQueued, 0, {}, {}};
  const auto given_up = given_up_.find(key);
  if (given_up != given_up_.end() && !array.cancelled.contains(place.task)) return given_up->second;
  if (array.cancelled.contains(place.task) || taken_out_.contains(key)) {
    return {Phase::kEnded, 0, {{"end", "cancelled"}, {"message", "the job was cancelled"}}, {}};
  }
  if (array.id == 0) return {};
  if (!IsAbsentForLong(key)) return {Phase::kQueued, 0, {}, {}};
  // The job is run again. If it is alive after all, unseen, it would run twice, so it is cancelled.
  const auto seen = seen_ids_.find(array.id);
  const bool is_anothers = seen != seen_ids_.end() && seen->second != array.name;
  if (!is_anothers && told_though_lost_.insert(key).second) to_end_.push_back(IdOf(array, place.task));
  return {Phase::kMissing, 0, {}, {}};
}

bool Session::NoneLives() {
  try {
    Ask();
  } catch (const SlurmError&) {
    return false;
  }
  return live_rows_ == 0;
}

bool Session::IsAbsentForLong(const std::string& key) {
  const Time now = clock_.Now();
  return now - absent_since_.try_emplace(key, now).first->second >= kAbsentGrace;
}

bool Session::CertainlyNot(const Array& array) {
  const Time now = clock_.Now();
  const Time since = answers_since_.try_emplace(array.name, now).first->second;
  return now - since >= std::chrono::seconds(facts_.message_timeout_s) + kMessageMargin;
}

std::optional<Failure> Session::Resolve(Array& array) {
  try {
    Ask();
    if (array.id > 0) return std::nullopt;
    const std::map<std::string, Rows> accounted = AskAccounting({{&array, 0}});
    if (const auto found = accounted.find(array.name); found != accounted.end()) {
      journal_.SetId(array, found->second.begin()->second.job_id);
      return std::nullopt;
    }
  } catch (const SlurmError& e) {
    return NotNow(fmt::format("Slurm does not answer: {}", e.what()));
  }
  if (!CertainlyNot(array)) {
    return NotNow(fmt::format("waiting to see whether Slurm has the job array {}", array.job_name));
  }
  answers_since_.erase(array.name);
  journal_.Forget(array.name);
  return std::nullopt;
}

std::optional<Failure> Session::SubmitArray(BatchJob batch, bool none_lived) {
  Array& array = journal_.Record({.name = batch.name,
                                  .keys = batch.keys,
                                  .is_array = batch.is_array,
                                  .recorded_unix_s = clock_.UnixS(),
                                  .job_name = batch.job_name});
  try {
    journal_.SetId(array, client_->Submit(batch));
  } catch (const SlurmError& e) {
    if (e.trouble() == Trouble::kRefused && !batch.avoid.empty()) {
      // Perhaps too few nodes are left without those to avoid.
      journal_.Forget(batch.name);
      batch.avoid.clear();
      return SubmitArray(std::move(batch), none_lived);
    }
    // The jobs that the limit counted may have ended since that answer.
    if (!none_lived && e.trouble() == Trouble::kBusy && IsLimitOfTheUsersJobs(e.what()) && NoneLives()) {
      journal_.Forget(batch.name);
      return SubmitArray(std::move(batch), true);
    }
    return NotSubmitted(batch, e, none_lived);
  }
  last_live_id_ = array.id;
  submitted_.push_back(array.id);
  most_tasks_ = facts_.max_job_count;
  last_submitted_ = std::move(batch);
  return std::nullopt;
}

Failure Session::NotSubmitted(const BatchJob& batch, const SlurmError& error, bool none_lived) {
  const auto tasks = static_cast<int64_t>(batch.keys.size());
  bool refused = error.trouble() == Trouble::kRefused;
  // An array of this size may find room.
  if (!refused) most_tasks_ = std::max<int64_t>(1, tasks / 2);
  // A user without jobs in the queue who may not submit one waits for nothing.
  if (none_lived && error.trouble() == Trouble::kBusy && IsLimitOfTheUsersJobs(error.what())) {
    refused = tasks == 1;
    most_tasks_ = 1;
  }
  if (error.trouble() == Trouble::kNoAnswer) {
    return NotNow(fmt::format("no answer to a submission, which may have been done: {}", error.what()),
                  "it is looked for before it is submitted again");
  }
  journal_.Forget(batch.name);
  if (!refused) return NotNow(fmt::format("Slurm takes no more jobs now: {}", error.what()), "it is asked again");
  const Refusal& refusal = RefusalOf(error.what());
  return Failure(Failure::Kind::kInvalidInput, fmt::format("Slurm refuses the job: {}", error.what()),
                 std::string(refusal.hint), std::string(refusal.reason));
}

std::vector<plugin::Submission> Session::Submit(const Json& jobs, plugin::Clock::Duration within) {
  const Time begin = clock_.Now();
  bool began = false;
  std::map<std::string, Failure> failures;  // by key
  std::set<std::string> unresolved;
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    try {
      plugin::CheckProgram(job.at("exec"));
    } catch (const Failure& e) {
      failures.emplace(key, e);
      continue;
    }
    const Place place = journal_.Find(key);
    if (place.array != nullptr && place.array->id == 0) unresolved.insert(place.array->name);
  }
  for (const std::string& name : unresolved) {
    Array& array = *journal_.FindArray(name);
    const std::vector<std::string> keys = array.keys;
    if (const std::optional<Failure> failure = Resolve(array)) {
      for (const std::string& key : keys) failures.emplace(key, *failure);
    }
  }
  Json fresh = Json::array();
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    if (!failures.contains(key) && journal_.Find(key).array == nullptr) fresh.push_back(job);
  }
  std::optional<Failure> not_now;  // the next submissions would meet the same failure
  for (BatchJob& batch :
       Bundle(fresh, options_, Limit(), std::filesystem::current_path().string(), journal_.dir(), journal_.size())) {
    const std::vector<std::string> keys = batch.keys;
    if (began && clock_.Now() - begin >= within) break;
    began = true;
    // Makes a throttle hold for all arrays together.
    if (options_.throttle > 0 && last_live_id_ > 0) {
      batch.dependency += fmt::format("{}afterany:{}", batch.dependency.empty() ? "" : ",", last_live_id_);
    }
    const std::optional<Failure> failure = not_now ? not_now : SubmitArray(std::move(batch));
    if (!failure) continue;
    for (const std::string& key : keys) failures.emplace(key, *failure);
    if (failure->kind() == Failure::Kind::kNotNow) not_now = failure;
  }
  std::vector<plugin::Submission> answers;
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    const auto failure = failures.find(key);
    const Place place = journal_.Find(key);
    if (failure != failures.end()) {
      answers.push_back({"", failure->second});
    } else if (place.array == nullptr) {
      answers.push_back({.native_id = "", .later = true});
    } else {
      answers.push_back({IdOf(*place.array, place.task)});
    }
  }
  return answers;
}

std::vector<plugin::Cancellation> Session::Cancel(const std::vector<std::string>& keys) {
  Ask();
  std::map<Array*, std::set<size_t>> to_end;  // tasks that Slurm has, or may have
  std::map<Array*, std::vector<int64_t>> live;
  std::vector<plugin::Cancellation> answers;
  for (const std::string& key : keys) {
    const Place place = journal_.Find(key);
    const Row* row = place.array == nullptr ? nullptr : RowOf(*place.array, place.task);
    const bool lives = row != nullptr && IsLive(*row);
    const bool may_come = place.array != nullptr && place.array->id == 0;
    if (lives) live[place.array].push_back(static_cast<int64_t>(place.task));
    if (lives || may_come) to_end[place.array].insert(place.task);
    answers.push_back({lives || may_come});
  }
  std::vector<std::string> ids;
  for (auto& [array, tasks] : live) {
    std::sort(tasks.begin(), tasks.end());
    ids.push_back(array->is_array ? fmt::format("{}_[{}]", array->id, FormatTasks(tasks)) : std::to_string(array->id));
  }
  for (const auto& [array, tasks] : to_end) journal_.AddCancelled(*array, tasks);
  if (!ids.empty()) client_->Cancel(ids);
  for (const auto& [array, tasks] : live) told_to_end_[array->name].insert(tasks.begin(), tasks.end());
  return answers;
}

void Session::Leave() {
  if (options_.mail.empty() || !last_submitted_) return;
  client_->Submit(MailJob(*last_submitted_, std::exchange(submitted_, {})));
  last_submitted_.reset();
}

}  // namespace ridgeline::slurm
