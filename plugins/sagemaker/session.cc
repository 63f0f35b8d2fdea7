#include "sagemaker/session.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ridgeline/job_dir.h"
#include "sagemaker/judge.h"
#include "sagemaker/output.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::Phase;
using std::chrono::seconds;

constexpr int kPageJobs = 100;
constexpr const char* kAnyKey = "rl-00000000000000000000000000000000";  // as long as each key
constexpr int64_t kClocksDifferS = 900;  // a list begins so long before the first of our jobs was created
constexpr int kWaitingPauses = 12;       // a job that waits for machines is described again after so many poll_pauses
constexpr seconds kLogPatience{60};      // lines come so late, if S3 cannot be read
constexpr seconds kStoragePatience{60};  // S3 that does not let us read is asked for so long
constexpr const char* kNoJob = "ridgeline-asks-for-its-rights";  // a name that no training job has
constexpr const char* kOutputHint = "the job's folder under output: has what is left; the driver needs s3:GetObject";

// "; of the newest 100 jobs of Ridgeline's, 3 have not ended and 1 is kept warm"; empty if there are none.
std::string WhatIsBilled(const std::vector<JobRow>& rows) {
  const auto live = std::ranges::count_if(rows, [](const JobRow& row) { return !IsEnd(row.status); });
  const auto warm = std::ranges::count_if(rows, [](const JobRow& row) { return IsKept(row.warm_pool); });
  if (live + warm == 0) return "";
  return fmt::format("; of the newest {} jobs of Ridgeline's, {} have not ended and {} are kept warm", rows.size(),
                     live, warm);
}

}  // namespace

Session::Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Aws> aws,
                 const plugin::Clock& clock)
    : options_(std::move(options)),
      journal_(state_dir),
      aws_(std::move(aws)),
      clock_(clock),
      submitter_(*aws_, journal_, clock_, options_) {}

std::string Session::Description() {
  CheckComplete(options_);
  const std::string who = aws_->WhoAmI();
  std::vector<JobRow> rows;
  const Answer listed = aws_->Call(
      "sagemaker:ListTrainingJobs",
      {{"NameContains", "-rl-"}, {"SortBy", "CreationTime"}, {"SortOrder", "Descending"}, {"MaxResults", kPageJobs}},
      [&](const Json& document) { rows = ParseRows(document).rows; });
  if (!listed.ok()) throw Aws::ToFailure(listed, "list training jobs");
  Place output = PlaceOf(options_.output);
  if (!output.key.empty()) output.key += '/';
  aws_->List(output, 1);
  Describe(*aws_, kNoJob);
  return fmt::format("SageMaker in {}, as {}{}{}", aws_->region(), who, WhatIsBilled(rows), WhatIsRefused(output));
}

// Results come from the log or from S3, so one of them is enough.
std::string Session::WhatIsRefused(const Place& output) {
  SweepLog log(kNoJob, aws_->UnixS());
  log.Read(*aws_, [](const std::string&, const std::string&) {});
  std::string storage;
  // The bucket was listed, so it says that it does not have the key, unless we may not read it.
  const Answer answer = aws_->Get({output.bucket, output.key + kNoJob});
  if (!answer.ok() && answer.code != "NoSuchKey") {
    storage = Aws::ToFailure(answer, "read objects below " + options_.output).message();
  }
  if (!log.problem().empty() && !storage.empty()) {
    throw Failure(Failure::Kind::kInfrastructure, fmt::format("no results can be read: {}; {}", log.problem(), storage),
                  "the rights that are needed are in docs/sagemaker.md", "rights");
  }
  if (!log.problem().empty()) return "; results come from S3 alone: " + log.problem();
  if (!storage.empty()) return "; results come from the log alone: " + storage;
  return "";
}

std::vector<std::string> Session::StillBilled(const std::string& sweep) {
  const std::string prefix = PrefixOf(sweep, kAnyKey);
  std::vector<std::string> lines;
  ForEachRow({{"NameContains", prefix}, {"SortOrder", "Descending"}}, [&](const JobRow& row) {
    if (!row.name.starts_with(prefix)) return;
    if (!IsEnd(row.status)) {
      lines.push_back(fmt::format("training job {}: {}", row.name, row.status));
    } else if (IsKept(row.warm_pool)) {
      lines.push_back(fmt::format("instances that training job {} left: kept warm", row.name));
    }
  });
  return lines;
}

void Session::ForEachRow(Json request, const std::function<void(const JobRow&)>& take) {
  request["SortBy"] = "CreationTime";
  request["MaxResults"] = kPageJobs;
  for (;;) {
    JobRows page;
    const Answer answer =
        aws_->Call("sagemaker:ListTrainingJobs", request, [&](const Json& document) { page = ParseRows(document); });
    if (!answer.ok()) throw Aws::ToFailure(answer, "list training jobs");
    for (const JobRow& row : page.rows) take(row);
    if (page.next_token.empty()) return;
    request["NextToken"] = page.next_token;
  }
}

// One list for each sweep has the states of all its jobs.
std::map<std::string, JobRow> Session::ListAll(const std::vector<Record*>& records) {
  std::map<std::string, int64_t> since;  // by prefix
  for (const Record* record : records) {
    const auto [first, is_new] = since.emplace(record->prefix, record->created_unix_s);
    if (!is_new) first->second = std::min(first->second, record->created_unix_s);
  }
  std::map<std::string, JobRow> rows;
  for (const auto& [prefix, created_unix_s] : since) {
    ForEachRow({{"NameContains", prefix},
                {"CreationTimeAfter", std::max<int64_t>(0, created_unix_s - kClocksDifferS)},
                {"SortOrder", "Ascending"}},
               [&](const JobRow& row) { rows.insert_or_assign(row.name, row); });
  }
  return rows;
}

// Describes a job that changed, and one that no list has. A job that waits for machines is described again now and
// then, because nobody knows whether its list says that the reason has changed.
void Session::Observe(Record& record, const std::map<std::string, JobRow>& rows) {
  Live& live = live_[record.key];
  const auto row = rows.find(record.name);
  const plugin::Clock::Time now = clock_.Now();
  const bool waits = live.job && live.job->started_unix_s == 0;
  const bool is_due = waits && now - *live.described_at >= kWaitingPauses * seconds(options_.poll_pause_s);
  if (row != rows.end() && live.row == row->second && !is_due) return;
  live.described_at = now;
  if (row != rows.end() && !live.job && !record.arn.empty() && row->second.secondary == "Starting") {
    // It has just been created, and has nothing to say yet.
    live.row = row->second;
    JobView& job = live.job.emplace();
    job.name = record.name;
    job.arn = record.arn;
    job.hash = record.hash;
    job.status = row->second.status;
    job.secondary = row->second.secondary;
    return;
  }
  std::optional<JobView> job = Describe(*aws_, record.name);
  if (job && job->hash != record.hash) job.reset();  // somebody made another job of that name
  if (!job) {
    live.deleted = !record.arn.empty();
    live.job.reset();
    return;
  }
  live.row = row != rows.end() ? std::optional(row->second) : std::nullopt;
  live.deleted = false;
  if (record.arn.empty()) {  // its submitter was killed, or got no answer
    record.arn = job->arn;
    record.created_unix_s = job->created_unix_s;
    journal_.Write(Record(record));
  }
  live.job = std::move(job);
}

plugin::JobOutput& Session::OutputOf(const Record& record) {
  Live& live = live_[record.key];
  if (!live.output) live.output = std::make_unique<plugin::JobOutput>(record.job_dir, record.points);
  return *live.output;
}

void Session::ReadLogs(const std::vector<Record*>& records) {
  std::map<std::string, std::map<std::string, Record*>> by_prefix;  // and by name
  std::set<std::string> spoken;  // prefixes of which a job has begun. Others may begin while the log is read
  for (Record* record : records) {
    if (record->points.empty()) continue;
    by_prefix[record->prefix][record->name] = record;
    const auto live = live_.find(record->key);
    if (live != live_.end() && live->second.job && live->second.job->started_unix_s > 0) spoken.insert(record->prefix);
  }
  for (const auto& [prefix, by_name] : by_prefix) {
    if (!spoken.contains(prefix)) continue;
    int64_t since_unix_s = INT64_MAX;
    for (const auto& [name, record] : by_name) since_unix_s = std::min(since_unix_s, record->created_unix_s);
    SweepLog& log = logs_.try_emplace(prefix, prefix, since_unix_s).first->second;
    log.Read(*aws_, [this, &by_name = by_name](const std::string& job, const std::string& line) {
      const auto record = by_name.find(job);
      if (record != by_name.end()) OutputOf(*record->second).TakeLine(line);
    });
  }
}

void Session::Refresh(const std::vector<std::string>& keys) {
  std::vector<Record*> records;
  for (const std::string& key : keys) {
    Record* record = journal_.Find(key);
    if (record != nullptr && !record->ended) records.push_back(record);
  }
  if (records.empty()) return;
  const std::map<std::string, JobRow> rows = ListAll(records);
  for (Record* record : records) Observe(*record, rows);
}

plugin::JobState Session::StateOf(const Record& record) {
  if (record.ended) return {Phase::kEnded, record.started_unix_s, record.evidence, record.arn};
  const Live& live = live_[record.key];
  if (live.deleted) return JudgeDeleted(record);
  if (!live.job) return {};
  return Judge(record, *live.job);
}

bool Session::TakeRest(const Record& record, Live& live, std::string& problem) {
  plugin::JobOutput& output = OutputOf(record);
  const plugin::Clock::Time now = clock_.Now();
  if (!live.ended_at) live.ended_at = now;
  // Parts of other nodes may be missing although each point has a line, so several nodes' copies are always read.
  // An interrupted attempt's line may not be the point's last.
  const bool alone = live.job && live.job->instances == 1 && live.job->Interruptions() == 0;
  if (output.HasAll() && alone && live.job->status == "Completed") return true;
  const auto log = logs_.find(record.prefix);
  problem = log == logs_.end() ? "" : log->second.problem();
  try {
    TakeCopies(record, *aws_, output);
    if (!output.HasAll()) TakeArchive(record, *aws_, output);
    return true;
  } catch (const Error& e) {
    const Failure failure = Failure::Of(e);
    problem += (problem.empty() ? "" : "; ") + failure.message();
    if (!live.unread_since) live.unread_since = now;
    const bool log_may_come = !output.HasAll() && now - *live.ended_at < kLogPatience;
    const bool storage_may_come =
        failure.kind() == Failure::Kind::kNotNow && now - *live.unread_since < kStoragePatience;
    return !log_may_come && !storage_may_come;
  }
}

plugin::JobState Session::Follow(Record& record) {
  plugin::JobState state = StateOf(record);
  if (record.ended || state.phase == Phase::kMissing) return state;
  Live& live = live_[record.key];
  if (state.phase != Phase::kEnded) {
    const auto log = logs_.find(record.prefix);
    if (log != logs_.end() && !log->second.problem().empty()) state.evidence["log_problem"] = log->second.problem();
    return state;
  }
  std::string problem;
  if (!record.points.empty() && !TakeRest(record, live, problem)) {
    return {Phase::kRunning, state.started_unix_s, {}, record.arn};
  }
  plugin::JobOutput& output = OutputOf(record);
  const bool began = live.job && live.job->started_unix_s > 0;
  if (began && !output.HasAll() && !record.points.empty()) {
    plugin::AddLogTail(SweepLog::Tail(*aws_, record.name, record.created_unix_s), state.evidence);
  }
  if (!record.points.empty()) output.CompleteEnd(problem, kOutputHint, state.evidence);
  Record ended = record;
  ended.ended = true;
  ended.evidence = state.evidence;
  ended.started_unix_s = state.started_unix_s;
  journal_.Write(std::move(ended));
  live_.erase(record.key);
  return state;
}

// Nothing if it is time to ask again.
std::optional<std::vector<plugin::JobState>> Session::LastSaid(const std::vector<std::string>& keys) {
  if (!asked_at_ || clock_.Now() - *asked_at_ >= seconds(options_.poll_pause_s)) return std::nullopt;
  std::vector<plugin::JobState> states;
  for (const std::string& key : keys) {
    const Record* record = journal_.Find(key);
    const auto said = said_.find(key);
    if (record != nullptr && !record->ended && said == said_.end() && record->arn.empty()) return std::nullopt;
    if (record == nullptr) {
      states.emplace_back();
    } else if (record->ended || said != said_.end()) {
      states.push_back(record->ended ? StateOf(*record) : said->second);
    } else {
      states.push_back({Phase::kQueued, 0, {}, record->arn});  // it was created since
    }
  }
  return states;
}

std::vector<plugin::JobState> Session::Poll(const std::vector<std::string>& keys) {
  if (auto states = LastSaid(keys)) return *std::move(states);
  std::vector<plugin::JobState> states = Ask(keys);
  said_.clear();
  for (size_t i = 0; i < keys.size(); ++i) said_[keys[i]] = states[i];
  asked_at_ = clock_.Now();
  return states;
}

int64_t Session::PauseMs() const {
  if (!asked_at_) return 1;
  const auto left = seconds(options_.poll_pause_s) - (clock_.Now() - *asked_at_);
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

std::vector<plugin::JobState> Session::Ask(const std::vector<std::string>& keys) {
  Refresh(keys);
  std::vector<Record*> live;
  for (const std::string& key : keys) {
    Record* record = journal_.Find(key);
    if (record != nullptr && !record->ended) live.push_back(record);
  }
  ReadLogs(live);
  std::vector<plugin::JobState> states;
  for (const std::string& key : keys) {
    Record* record = journal_.Find(key);
    states.push_back(record == nullptr ? plugin::JobState() : Follow(*record));
  }
  // A job that was cancelled before it was known to be created is stopped when it is found.
  for (Record* record : live) {
    const auto seen = live_.find(record->key);
    const bool runs = seen != live_.end() && seen->second.job && seen->second.job->status == "InProgress";
    if (record->cancelled && runs) aws_->Call("sagemaker:StopTrainingJob", {{"TrainingJobName", record->name}});
  }
  return states;
}

std::vector<plugin::JobState> Session::Look(const std::vector<std::string>& keys) {
  Refresh(keys);
  std::vector<plugin::JobState> states;
  for (const std::string& key : keys) {
    const Record* record = journal_.Find(key);
    states.push_back(record == nullptr ? plugin::JobState() : StateOf(*record));
  }
  return states;
}

std::vector<plugin::Cancellation> Session::Cancel(const std::vector<std::string>& keys) {
  Refresh(keys);
  asked_at_.reset();
  std::vector<plugin::Cancellation> answers;
  for (const std::string& key : keys) {
    plugin::Cancellation& answer = answers.emplace_back();
    Record* record = journal_.Find(key);
    if (record == nullptr || record->ended) continue;
    const auto live = live_.find(key);
    const bool known = live != live_.end() && live->second.job;
    // One that was cancelled before may run on, since the service did not answer or refused to stop it.
    if (record->cancelled && !(known && live->second.job->status == "InProgress")) continue;
    if (known && live->second.job->HasEnded()) continue;
    if (!known && !record->arn.empty()) continue;  // somebody deleted it
    Record told = *record;
    told.cancelled = true;
    journal_.Write(std::move(told));
    answer.cancelled = true;
    if (!known) continue;
    const Answer stopped = aws_->Call("sagemaker:StopTrainingJob", {{"TrainingJobName", record->name}});
    // It may have ended meanwhile, which is a ValidationException.
    if (!stopped.ok() && stopped.code != "ValidationException") {
      throw Aws::ToFailure(stopped, "stop training job " + record->name);
    }
  }
  return answers;
}

}  // namespace ridgeline::sagemaker
