#include "slurm/session.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/files.h"
#include "common/process.h"
#include "slurm/judge.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::JobState;
using plugin::Json;
using plugin::Phase;

constexpr int64_t kArrayShare = 10;                      // of the controller's job table, that one array may take
constexpr auto kAbsentGrace = std::chrono::seconds(10);  // a controller may know a new job late, the accounting an old
constexpr auto kMessageMargin = std::chrono::seconds(2);

Failure NotNow(const std::string& message, const std::string& hint = {}) {
  return {Failure::Kind::kNotNow, message, hint};
}

std::map<std::string, std::map<int64_t, Row>> ByTask(const std::vector<Row>& rows) {
  std::map<std::string, std::map<int64_t, Row>> by_name;
  for (const Row& row : rows) {
    Row of_one_task = row;  // not with the list of them all
    of_one_task.tasks.reset();
    for (const int64_t task : row.tasks.value_or(std::vector<int64_t>{0})) by_name[row.name][task] = of_one_task;
  }
  return by_name;
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

void Session::Ask() {
  if (const std::optional<std::vector<Row>> rows = client_->Jobs()) Adopt(*rows);
}

void Session::Adopt(const std::vector<Row>& rows) {
  last_live_id_ = 0;
  std::vector<Row> ours;
  std::map<std::string, std::set<int64_t>> ids;  // that go by a name
  for (const Row& row : rows) {
    const Array* array = journal_.FindArray(row.name);
    if (array == nullptr || array->is_array != row.tasks.has_value()) continue;
    ids[row.name].insert(row.job_id);
  }
  for (const auto& [name, found] : ids) {
    Array& array = *journal_.FindArray(name);
    if (!found.contains(array.id)) journal_.SetId(array, *found.begin());
  }
  std::vector<std::string> doubles;  // an array that was submitted twice runs once
  for (const Row& row : rows) {
    const Array* array = ids.contains(row.name) ? journal_.FindArray(row.name) : nullptr;
    if (array == nullptr) continue;
    if (row.job_id == array->id) {
      ours.push_back(row);
      if (IsLive(row)) last_live_id_ = std::max(last_live_id_, row.job_id);
    } else if (IsLive(row)) {
      doubles.push_back(std::to_string(row.job_id));
    }
  }
  NoteTakenOut(std::exchange(known_, ByTask(ours)));
  if (!doubles.empty()) client_->Cancel(doubles);
}

// Of a task that somebody cancels before it begins Slurm keeps no record.
void Session::NoteTakenOut(const std::map<std::string, Rows>& before) {
  for (const auto& [name, rows] : before) {
    const auto now = known_.find(name);
    if (now == known_.end()) continue;
    const Array& array = *journal_.FindArray(name);
    for (const auto& [task, row] : rows) {
      if (MeaningOf(row.state).phase != Phase::kQueued || now->second.contains(task)) continue;
      taken_out_.insert(array.keys.at(static_cast<size_t>(task)));
    }
  }
}

const Row* Session::RowOf(const Place& place) const {
  const auto rows = known_.find(place.array->name);
  if (rows == known_.end()) return nullptr;
  const auto row = rows->second.find(static_cast<int64_t>(place.task));
  return row == rows->second.end() ? nullptr : &row->second;
}

std::map<std::string, Session::Rows> Session::AskAccounting(const std::vector<Place>& places) {
  if (!facts_.accounting || places.empty()) return {};
  std::set<std::string> names;
  int64_t since_unix_s = places.front().array->recorded_unix_s;
  for (const Place& place : places) {
    names.insert(place.array->name);
    since_unix_s = std::min(since_unix_s, place.array->recorded_unix_s);
  }
  constexpr int64_t kClockSkewS = 600;
  std::vector<Row> ended;
  std::vector<Row> rests;  // the tasks of an array that never began are one record, without their indices
  for (Row& row : client_->Accounted({names.begin(), names.end()}, since_unix_s - kClockSkewS)) {
    // What the accounting takes for alive, and the controller does not know, is not.
    if (IsLive(row)) continue;
    const Array* array = journal_.FindArray(row.name);
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

std::vector<JobState> Session::Poll(const std::vector<std::string>& keys) {
  Ask();
  std::vector<Place> places;
  std::vector<Place> unknown;
  for (const std::string& key : keys) {
    places.push_back(journal_.Find(key));
    const Place& place = places.back();
    if (place.array != nullptr && RowOf(place) == nullptr) unknown.push_back(place);
  }
  const std::map<std::string, Rows> accounted = AskAccounting(unknown);
  std::vector<JobState> states;
  for (const Place& place : places) {
    if (place.array == nullptr) {
      states.emplace_back();
      continue;
    }
    const Row* row = RowOf(place);
    if (const auto rows = accounted.find(place.array->name); row == nullptr && rows != accounted.end()) {
      const auto found = rows->second.find(static_cast<int64_t>(place.task));
      if (found != rows->second.end()) row = &found->second;
    }
    states.push_back(row == nullptr ? Absent(place) : StateOf(place, *row));
    if (place.array->id > 0) states.back().native_id = IdOf(*place.array, place.task);
  }
  return states;
}

JobState Session::StateOf(const Place& place, const Row& row) {
  absent_since_.erase(place.array->keys[place.task]);
  switch (MeaningOf(row.state).phase) {
    case Phase::kQueued:
      return Queued(place, row);
    case Phase::kRunning:
      return {Phase::kRunning, row.started_s, {}, {}};
    case Phase::kEnded:
      return Ended(place, row);
    case Phase::kMissing:
      break;
  }
  return {};
}

JobState Session::Queued(const Place& place, const Row& row) {
  JobState state = JudgeQueued(*place.array, place.task, row);
  if (state.phase == Phase::kEnded) client_->Cancel({IdOf(*place.array, place.task)});
  return state;
}

JobState Session::Ended(const Place& place, const Row& row) const {
  const std::string log =
      row.state == "COMPLETED" ? "" : plugin::ReadTextTail(LogFile(journal_.dir(), place.array->name, place.task));
  return JudgeEnded(*place.array, place.task, row, log);
}

JobState Session::Absent(const Place& place) {
  if (place.array->cancelled.contains(place.task) || taken_out_.contains(place.array->keys[place.task])) {
    return {Phase::kEnded, 0, {{"end", "cancelled"}, {"message", "the job was cancelled"}}, {}};
  }
  const Time now = clock_.Now();
  const Time since = absent_since_.try_emplace(place.array->keys[place.task], now).first->second;
  return {now - since < kAbsentGrace ? Phase::kQueued : Phase::kMissing, 0, {}, {}};
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
    answers_since_.erase(array.name);
    return NotNow(fmt::format("Slurm does not answer: {}", e.what()));
  }
  const Time now = clock_.Now();
  const Time since = answers_since_.try_emplace(array.name, now).first->second;
  if (now - since < std::chrono::seconds(facts_.message_timeout_s) + kMessageMargin) {
    return NotNow(fmt::format("waiting to see whether Slurm has the job array {}", array.name));
  }
  answers_since_.erase(array.name);
  journal_.Forget(array.name);
  return std::nullopt;
}

std::optional<Failure> Session::SubmitArray(BatchJob batch) {
  // So that a throttle holds for all arrays together.
  if (options_.throttle > 0 && last_live_id_ > 0) batch.dependency = fmt::format("afterany:{}", last_live_id_);
  Array& array = journal_.Record({batch.name, batch.keys, batch.is_array, 0, clock_.UnixS()});
  try {
    journal_.SetId(array, client_->Submit(batch));
    last_live_id_ = array.id;
    most_tasks_ = facts_.max_job_count;
    return std::nullopt;
  } catch (const SlurmError& e) {
    switch (e.trouble()) {
      case Trouble::kNoAnswer:
        return NotNow(fmt::format("no answer to a submission, which may have been done: {}", e.what()),
                      "it is looked for before it is submitted again");
      case Trouble::kBusy:
        journal_.Forget(batch.name);
        most_tasks_ = std::max<int64_t>(1, static_cast<int64_t>(batch.keys.size()) / 2);
        return NotNow(fmt::format("Slurm takes no more jobs now: {}", e.what()), "it is asked again");
      case Trouble::kRefused:
        break;
    }
    journal_.Forget(batch.name);
    return Failure(Failure::Kind::kInvalidInput, fmt::format("Slurm refuses the job: {}", e.what()), HintFor(e.what()));
  }
}

std::vector<plugin::Submission> Session::Submit(const Json& jobs) {
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
  std::optional<Failure> not_now;  // the next ones would meet the same
  for (BatchJob& batch : Bundle(fresh, options_, Limit(), std::filesystem::current_path().string(), journal_.dir())) {
    const std::vector<std::string> keys = batch.keys;
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
    answers.push_back(failure != failures.end() ? plugin::Submission{"", failure->second}
                                                : plugin::Submission{IdOf(*place.array, place.task), {}});
  }
  return answers;
}

std::vector<plugin::Cancellation> Session::Cancel(const std::vector<std::string>& keys) {
  Ask();
  std::map<Array*, std::vector<int64_t>> told;
  std::vector<plugin::Cancellation> answers;
  for (const std::string& key : keys) {
    const Place place = journal_.Find(key);
    const Row* row = place.array == nullptr ? nullptr : RowOf(place);
    const bool live = row != nullptr && IsLive(*row);
    if (live) told[place.array].push_back(static_cast<int64_t>(place.task));
    answers.push_back({live});
  }
  std::vector<std::string> ids;
  for (auto& [array, tasks] : told) {
    std::sort(tasks.begin(), tasks.end());
    ids.push_back(array->is_array ? fmt::format("{}_[{}]", array->id, FormatTasks(tasks)) : std::to_string(array->id));
  }
  if (!ids.empty()) client_->Cancel(ids);
  for (const auto& [array, tasks] : told) journal_.AddCancelled(*array, tasks);
  return answers;
}

}  // namespace ridgeline::slurm
