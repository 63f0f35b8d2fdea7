#include "driver/driver.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "collect/collect.h"
#include "driver/live_job.h"
#include "driver/pace.h"
#include "driver/pending.h"

namespace ridgeline {
namespace {

constexpr int kSubmitTries = 3;                   // of one job
constexpr int kRefusedJobsInARow = 3;             // then the launcher is taken to be down
constexpr int64_t kPatienceNs = 900'000'000'000;  // with a launcher that does not answer
constexpr int64_t kTryAgainNs = 500'000'000;      // doubled from try to try
constexpr int64_t kMostTryAgainNs = 30'000'000'000;
constexpr int64_t kAskShare = 125;                  // a launcher with jobs for hours is asked for 0.8% of the time
constexpr int64_t kMostPauseNs = 30'000'000'000;    // even where one question took long: the next may not
constexpr size_t kSubmitAtOnce = 1000;              // jobs
constexpr int64_t kRefillShare = 10;                // of the jobs it may have, that are handed over together
constexpr int64_t kMissingNs = 2'000'000'000;       // a scheduler may know a new job late
constexpr int64_t kPartialCollectNs = 500'000'000;  // results of a job that still runs
constexpr size_t kShownJobs = 3;

class Driver {
 public:
  Driver(const Sweep& sweep, const DriverOptions& options, const DriverParts& parts)
      : sweep_(sweep), options_(options), parts_(parts), pace_(parts.clock.MonotonicNs()) {}

  RunSummary Run() {
    RecordSweep();
    AskForTimes();
    Adopt();
    PlanPoints(Unplanned());
    parts_.observer.Started(start_);
    if (!pending_.empty() || !live_.empty()) CheckLauncher();
    while (!pending_.empty() || !live_.empty() || !again_.empty()) {
      if (parts_.interrupts() > 0) {
        Stop();
        break;
      }
      bool changed = OpenJobs();
      changed = SubmitJobs() || changed;
      changed = AskAndCollect() || changed;
      if (!again_.empty() && pending_.empty()) PlanPoints(std::exchange(again_, {}));
      ShowProgress();
      if (changed) {
        pace_.Changed(Now());
      } else {
        parts_.clock.SleepNs(pace_.WaitNs(Now()));
      }
    }
    return Summary();
  }

 private:
  int64_t Now() const { return parts_.clock.MonotonicNs(); }

  const Point* FindPoint(const std::string& id) const {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : &points_[found->second];
  }
  std::string Label(const Point& point) const { return PointLabel(point.spec, varying_); }

  void RecordSweep() {
    Expansion expansion;
    points_ = Expand(sweep_, &expansion);
    for (const std::string& warning : expansion.warnings) parts_.observer.Note(warning);
    for (size_t i = 0; i < points_.size(); ++i) index_.emplace(points_[i].id, i);
    PlaceCheckpointFiles(points_, options_.jobs_dir.parent_path());
    varying_ = VaryingFields(sweep_);
    parts_.store.PutSweep(
        {sweep_.name, sweep_.description, sweep_.file.string(), options_.sweep_text, parts_.clock.UnixNs()}, points_);
    key_name_ = fmt::format("{}@{}", sweep_.name, parts_.store.Progress(sweep_.name).sweep.created_unix_ns);
    if (options_.retry_failed) start_.retried = parts_.store.RetryFailed(sweep_.name);
    start_.points = static_cast<int64_t>(points_.size());
  }

  // Jobs of an earlier run become ours: those the launcher may not have heard of are submitted again under their key.
  void Adopt() {
    for (JobRecord& record : parts_.store.LiveJobs(sweep_.name)) {
      if (record.launcher != parts_.launcher.name()) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("job {} of an earlier run is still on the launcher {}", record.key, record.launcher),
                    fmt::format("go on with --launcher {0}, or end it with `ridgeline cancel`", record.launcher));
      }
      LiveJob job;
      if (record.state == JobRecord::State::kIntent) {
        job.to_submit = JobOfIntent(record, sweep_.launch, Trainer(), [&](const std::string& id) -> const RunSpec* {
          const Point* point = FindPoint(id);
          return point == nullptr ? nullptr : &point->spec;
        });
        if (job.to_submit) WriteJob(*job.to_submit);
      }
      job.record = std::move(record);
      for (const JobRecord::Point& point : job.record.points) {
        if (const Point* known = FindPoint(point.id); known != nullptr && !point.has_result) {
          ++progress_.total;
          left_cost_ += RelativeCost(known->spec);
        }
      }
      if (job.record.state == JobRecord::State::kIntent && !job.to_submit) {
        CollectJobs({{job.record, JobRecord::State::kLost, {{"reason", "it was never submitted"}}}}, {&job});
        continue;
      }
      live_.push_back(std::move(job));
    }
    start_.adopted_jobs = static_cast<int64_t>(live_.size());
    if (live_.empty()) return;
    // What they wrote while nobody looked.
    std::vector<JobToCollect> to_collect;
    std::vector<LiveJob*> jobs;
    for (LiveJob& job : live_) {
      to_collect.push_back({job.record, job.record.state, {}});
      jobs.push_back(&job);
    }
    CollectJobs(to_collect, jobs);
  }

  std::vector<Point> Unplanned() {
    const std::vector<std::string> finished = parts_.store.FinishedPoints(sweep_.name);
    start_.finished = static_cast<int64_t>(finished.size());
    std::set<std::string> taken(finished.begin(), finished.end());
    for (const LiveJob& job : live_) {
      for (const JobRecord::Point& point : job.record.points) taken.insert(point.id);
    }
    for (const Point& point : again_) taken.insert(point.id);
    std::vector<Point> todo;
    std::copy_if(points_.begin(), points_.end(), std::back_inserter(todo),
                 [&](const Point& point) { return !taken.contains(point.id); });
    return todo;
  }

  void PlanPoints(const std::vector<Point>& todo) {
    if (todo.empty()) return;
    attempts_ = parts_.store.Attempts(sweep_.name);
    PlanOptions plan_options;
    plan_options.available_bytes = options_.available_bytes;
    plan_options.runs_here = options_.runs_here;
    plan_options.jobs_dir = options_.jobs_dir;
    plan_options.trainer = options_.trainer;
    plan_options.attempts = attempts_;
    plan_options.times = times_;
    Plan plan = MakePlan(sweep_, todo, plan_options, parts_.forecaster);
    if (!plan.skipped.empty()) {
      std::vector<NewResult> skipped;
      for (RunResult& result : plan.skipped) skipped.push_back({std::move(result), "", 0});
      parts_.store.AddResults(skipped);
      start_.predicted_oom += static_cast<int64_t>(skipped.size());
    }
    for (Job& job : plan.jobs) {
      for (const JobPoint& point : job.points) {
        if (!retries_.contains(point.id)) ++progress_.total;
        left_cost_ += RelativeCost(point.spec);
      }
      pending_.Add(std::move(job));
    }
  }

  // What its points took before, in whichever run.
  void AskForTimes() {
    constexpr auto kMost = static_cast<int64_t>(TimeModel::kRemembered);
    for (const MeasuredPoint& point : parts_.store.MeasuredPoints(parts_.launcher.name(), kMost)) {
      times_.Took(RelativeCost(point.spec), static_cast<double>(point.duration_ns) / 1e9);
    }
  }

  const std::vector<std::string>& Trainer() const {
    return sweep_.launch.trainer.empty() ? options_.trainer : sweep_.launch.trainer;
  }

  void CheckLauncher() {
    const LauncherStatus status = parts_.launcher.Probe();
    queues_ = status.max_jobs > 0;
    window_ = queues_ ? status.max_jobs : options_.max_parallel;
    if (status.available) {
      if (queues_) parts_.observer.Note("jobs go to " + PrintableLine(status.description));
      return;
    }
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the launcher {} cannot run jobs here: {}", parts_.launcher.name(), status.why),
                "`ridgeline doctor` says more");
  }

  Job TakeJob() {
    Job job = pending_.Take();
    std::vector<std::string> ids;
    for (const JobPoint& point : job.points) ids.push_back(point.id);
    job.key = JobKey(key_name_, ids, attempts_);
    job.job_dir = options_.jobs_dir / job.key;
    return job;
  }

  // Commits intents for as many jobs as the window has room for, then writes their files. A large window is filled in
  // large parts, which a launcher may submit as one.
  bool OpenJobs() {
    std::vector<JobRecord> intents;
    const auto first_new = static_cast<std::ptrdiff_t>(live_.size());
    const int64_t room = window_ - static_cast<int64_t>(live_.size());
    if (!live_.empty() && room < std::min<int64_t>(window_ / kRefillShare, pending_.size())) return false;
    while (!pending_.empty() && static_cast<int64_t>(live_.size()) < window_) {
      LiveJob job;
      job.to_submit = TakeJob();
      job.record = ToRecord(*job.to_submit, parts_.launcher.name(), parts_.clock.UnixNs());
      for (JobRecord::Point& point : job.record.points) point.attempt = attempts_[point.id] + 1;
      intents.push_back(job.record);
      live_.push_back(std::move(job));
    }
    if (intents.empty()) return false;
    parts_.store.RecordIntents(intents);
    for (auto job = live_.begin() + first_new; job != live_.end(); ++job) WriteJob(*job->to_submit);
    return true;
  }

  bool SubmitJobs() {
    std::vector<LiveJob*> due;
    std::vector<LaunchJob> asked;
    for (LiveJob& job : live_) {
      if (!job.to_submit || job.next_submit_ns > Now()) continue;
      asked.push_back(ToLaunchJob(*job.to_submit, options_.program));
      due.push_back(&job);
      if (due.size() == kSubmitAtOnce) break;
    }
    if (due.empty()) return false;
    std::vector<Submission> answers;
    try {
      answers = parts_.launcher.Submit(asked);
    } catch (const Error& e) {
      answers.clear();
      for (const LaunchJob& job : asked) answers.push_back({job.key, "", e});
    }
    std::vector<JobToCollect> refused;
    std::vector<LiveJob*> refused_jobs;
    parts_.store.Transact([&] {
      for (size_t i = 0; i < due.size(); ++i) {
        LiveJob& job = *due[i];
        if (!answers[i].error) {
          job.record.native_id = answers[i].native_id;
          job.record.state = JobRecord::State::kSubmitted;
          job.submitted_ns = job.collected_ns = Now();
          job.to_submit.reset();
          parts_.store.MarkSubmitted(job.record.key, job.record.native_id, parts_.clock.UnixNs());
          refused_in_a_row_ = 0;
          unanswered_since_ns_ = 0;
          continue;
        }
        const Error& error = *answers[i].error;
        ++job.submit_tries;
        if (answers[i].retry || (error.kind() == ErrorKind::kInfrastructure && job.submit_tries < kSubmitTries)) {
          job.next_submit_ns = Now() + TryAgainNs(job.submit_tries);
          if (answers[i].retry) Waits(error);
          continue;
        }
        last_refusal_ = error;
        refused.push_back(
            {job.record, JobRecord::State::kLost, {{"reason", "it could not be submitted: " + error.message()}}});
        refused_jobs.push_back(&job);
      }
    });
    if (!refused.empty()) {
      refused_in_a_row_ += static_cast<int>(refused.size());
      parts_.observer.Note(fmt::format("not submitted: {}", PrintableLine(last_refusal_->message())));
      CollectJobs(refused, refused_jobs);
      Forget(refused_jobs);
      if (refused_in_a_row_ >= kRefusedJobsInARow || last_refusal_->kind() != ErrorKind::kInfrastructure) {
        throw Error(last_refusal_->kind(),
                    fmt::format("the launcher {} takes no jobs: {}", parts_.launcher.name(), last_refusal_->message()),
                    last_refusal_->hint());
      }
    }
    return true;
  }

  static int64_t TryAgainNs(int tries) {
    constexpr int kMostDoublings = 10;
    return std::min(kTryAgainNs << std::min(tries, kMostDoublings), kMostTryAgainNs);
  }

  // Throws where that has gone on for too long. What is submitted by then goes on, and the next run finds it.
  void Waits(const Error& error) {
    Note(fmt::format("asking again: {}", PrintableLine(error.message())));
    if (unanswered_since_ns_ == 0) unanswered_since_ns_ = Now();
    if (Now() - unanswered_since_ns_ >= kPatienceNs) throw error;
  }

  void Note(const std::string& text) {
    if (text != last_note_) parts_.observer.Note(text);
    last_note_ = text;
  }

  std::vector<JobState> Ask(const std::vector<JobRef>& refs) {
    try {
      std::vector<JobState> states = parts_.launcher.PollMany(refs);
      failed_questions_ = 0;
      unanswered_since_ns_ = 0;
      return states;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInfrastructure) throw;
      Waits(e);
      next_ask_ns_ = Now() + TryAgainNs(++failed_questions_);
      return {};
    }
  }

  // As often as the launcher wishes, and never for more than a small share of the time.
  bool AskAndCollect() {
    const int64_t begin_ns = Now();
    if (begin_ns < next_ask_ns_) return false;
    const bool changed = AskAndCollectNow();
    const int64_t pause_ns = parts_.launcher.PollPauseNs();
    if (pause_ns > 0 && failed_questions_ == 0) {
      next_ask_ns_ = Now() + std::max(pause_ns, std::min((Now() - begin_ns) * kAskShare, kMostPauseNs));
    }
    return changed;
  }

  bool AskAndCollectNow() {
    std::vector<LiveJob*> asked;
    std::vector<JobRef> refs;
    for (LiveJob& job : live_) {
      if (job.to_submit) continue;
      asked.push_back(&job);
      refs.push_back(job.ref());
    }
    if (refs.empty()) return false;
    const std::vector<JobState> states = Ask(refs);
    std::vector<JobToCollect> to_collect;
    std::vector<LiveJob*> looked_at;
    std::vector<LiveJob*> ended;
    for (size_t i = 0; i < states.size(); ++i) {
      LiveJob& job = *asked[i];
      const std::optional<JobRecord::State> state = NewState(job, states[i]);
      if (!state) continue;
      to_collect.push_back({job.record, *state, states[i].evidence});
      looked_at.push_back(&job);
      if (!IsLive(*state)) ended.push_back(&job);
    }
    if (to_collect.empty()) return false;
    const int64_t new_results = CollectJobs(to_collect, looked_at);
    for (const LiveJob* job : ended) {
      if (job->submitted_ns > 0 && !queues_) pending_.JobEnded(static_cast<int64_t>(job->record.points.size()));
    }
    Forget(ended);
    return new_results > 0 || !ended.empty();
  }

  // What an answer makes of a job; nothing where there is nothing to collect now.
  std::optional<JobRecord::State> NewState(LiveJob& job, const JobState& answer) {
    if (answer.phase != JobPhase::kMissing) job.missing_since_ns = 0;
    // What it waited in the queue is no time of its points.
    if (job.phase == JobPhase::kQueued && answer.phase == JobPhase::kRunning && job.collected_ns != 0) {
      job.collected_ns = Now();
    }
    job.phase = answer.phase;
    if (!answer.native_id.empty() && answer.native_id != job.record.native_id) {
      job.record.native_id = answer.native_id;
      parts_.store.MarkSubmitted(job.record.key, answer.native_id, parts_.clock.UnixNs());
    }
    if (answer.started_unix_ns > 0 && answer.started_unix_ns != job.record.started_unix_ns) {
      job.record.started_unix_ns = answer.started_unix_ns;
      parts_.store.MarkStarted(job.record.key, answer.started_unix_ns);
    }
    switch (answer.phase) {
      case JobPhase::kQueued:
        NoteWaiting(answer);
        return std::nullopt;
      case JobPhase::kEnded:
        return JobRecord::State::kEnded;
      case JobPhase::kMissing:
        if (job.missing_since_ns == 0) job.missing_since_ns = Now();
        if (Now() - job.missing_since_ns < kMissingNs) return std::nullopt;
        return JobRecord::State::kLost;
      case JobPhase::kRunning:
        if (job.record.state != JobRecord::State::kRunning) {
          job.record.state = JobRecord::State::kRunning;
          parts_.store.SetJobState(job.record.key, JobRecord::State::kRunning, {}, parts_.clock.UnixNs());
        }
        if (job.record.points.size() < 2 || Now() - job.collected_ns < kPartialCollectNs) return std::nullopt;
        return JobRecord::State::kRunning;
    }
    return std::nullopt;
  }

  // Once, for all jobs that wait for the same thing.
  void NoteWaiting(const JobState& answer) {
    const auto waits = answer.evidence.find("waits");
    if (waits == answer.evidence.end() || !noted_waits_.insert(waits->second).second) return;
    const auto hint = answer.evidence.find("hint");
    parts_.observer.Note(
        fmt::format("waits: {}{}", PrintableLine(waits->second),
                    hint == answer.evidence.end() || hint->second.empty() ? "" : "; " + PrintableLine(hint->second)));
  }

  int64_t CollectJobs(const std::vector<JobToCollect>& to_collect, const std::vector<LiveJob*>& jobs) {
    const std::vector<Collected> collected = Collect(parts_.store, to_collect, parts_.clock.UnixNs());
    std::unordered_map<std::string, LiveJob*> job_of;
    for (LiveJob* job : jobs) {
      for (const JobRecord::Point& point : job->record.points) job_of.emplace(point.id, job);
    }
    std::unordered_map<LiveJob*, int64_t> counts;
    for (const Collected& result : collected) ++counts[job_of.at(result.point_id)];
    for (const Collected& result : collected) {
      LiveJob& job = *job_of.at(result.point_id);
      // 0: submitted in an earlier run. 1: so short that the clock did not move.
      const int64_t spent_ns =
          job.collected_ns == 0 ? 0 : std::max<int64_t>(1, (Now() - job.collected_ns) / counts[&job]);
      for (JobRecord::Point& point : job.record.points) {
        point.has_result = point.has_result || point.id == result.point_id;
      }
      PointEnded(result, spent_ns);
    }
    for (const auto& entry : counts) {
      if (entry.first->collected_ns != 0) entry.first->collected_ns = Now();
    }
    return static_cast<int64_t>(collected.size());
  }

  void PointEnded(const Collected& result, int64_t spent_ns) {
    const Point* point = FindPoint(result.point_id);
    if (point == nullptr) return;  // of another sweep, in a job that holds one of ours too
    const double cost = RelativeCost(point->spec);
    left_cost_ -= cost;
    if (result.status == RunStatus::kOk) {
      times_.Took(cost, static_cast<double>(result.duration_ns > 0 ? result.duration_ns : spent_ns) / 1e9);
    }
    std::string outcome = OutcomeText(result.status, result.message, result.steady_tokens_per_s);
    if (IsRunAgain(result)) {
      again_.push_back(*point);
      parts_.observer.Note(fmt::format("{}: {}; it is run again", Label(*point), outcome));
      return;
    }
    ++(result.status == RunStatus::kOk ? progress_.done : progress_.failed);
    parts_.observer.PointEnded(Label(*point), outcome, progress_);
  }

  // A point that never had its turn is owed one. Another of its job had, so this comes to an end.
  bool IsRunAgain(const Collected& result) {
    const auto limit = sweep_.launch.retries.find(result.status);
    if (limit == sweep_.launch.retries.end()) return false;
    int64_t& retries = retries_[result.point_id][result.status];
    if (result.began && retries >= limit->second) return false;
    if (result.began) ++retries;
    return true;
  }

  void Forget(const std::vector<LiveJob*>& jobs) {
    std::set<std::string> keys;
    for (const LiveJob* job : jobs) keys.insert(job->record.key);
    std::erase_if(live_, [&](const LiveJob& job) { return keys.contains(job.record.key); });
  }

  void ShowProgress() {
    if (!parts_.observer.WantsProgress(Now())) return;
    progress_.live.clear();
    progress_.queued_jobs = 0;
    int64_t running_ns = 0;
    int64_t running_jobs = 0;
    for (LiveJob& job : live_) {
      if (job.phase != JobPhase::kRunning) {
        ++progress_.queued_jobs;
        continue;
      }
      ++running_jobs;
      if (job.collected_ns > 0) running_ns += Now() - job.collected_ns;
      if (progress_.live.size() == kShownJobs) continue;
      const std::string text = CurrentProgress(job);
      if (job.current == job.record.points.size()) continue;
      if (const Point* point = FindPoint(job.record.points[job.current].id)) {
        progress_.live.push_back({Label(*point), ParseProgress(text)});
      }
    }
    progress_.left_ns = times_.LeftNs(left_cost_, running_ns, queues_ ? std::max<int64_t>(running_jobs, 1) : window_);
    parts_.observer.Progress(progress_);
  }

  void Stop() {
    parts_.observer.Note(fmt::format("stopping: {} job{} told to end", live_.size(), live_.size() == 1 ? "" : "s"));
    std::vector<JobRecord> jobs;
    for (const LiveJob& job : live_) jobs.push_back(job.record);
    live_left_ = CancelJobs(std::move(jobs), parts_.store, parts_.launcher, parts_.clock,
                            [&] { return parts_.interrupts() > 1; });
    interrupted_ = true;
  }

  RunSummary Summary() const {
    const SweepProgress progress = parts_.store.Progress(sweep_.name);
    RunSummary summary;
    summary.ok = progress.ok;
    summary.failed = progress.failed;
    summary.no_result = progress.points - progress.finished();
    summary.live_jobs = live_left_;
    summary.interrupted = interrupted_;
    return summary;
  }

  const Sweep& sweep_;
  const DriverOptions& options_;
  const DriverParts& parts_;
  std::vector<Point> points_;
  std::unordered_map<std::string, size_t> index_;  // point id -> place in points_
  std::vector<const Field*> varying_;
  std::string key_name_;  // goes into jobs' keys: the sweep in this store, so that no other store has the same jobs
  std::map<std::string, int64_t> attempts_;                                // a point has had, when it was planned
  std::unordered_map<std::string, std::map<RunStatus, int64_t>> retries_;  // of a point after such an end, in this run
  TimeModel times_;                                                        // on this launcher
  PendingJobs pending_{times_};
  std::vector<LiveJob> live_;
  std::vector<Point> again_;  // to be planned once more
  RunStart start_;
  RunProgress progress_;
  double left_cost_ = 0;  // of the points this run has still to do
  PollPace pace_;
  bool queues_ = false;      // the launcher runs jobs in its own time
  int64_t window_ = 1;       // jobs it has at once
  int64_t next_ask_ns_ = 0;  // not before
  int64_t unanswered_since_ns_ = 0;
  std::string last_note_;
  std::set<std::string> noted_waits_;
  std::optional<Error> last_refusal_;
  int refused_in_a_row_ = 0;
  int failed_questions_ = 0;
  int64_t live_left_ = 0;
  bool interrupted_ = false;
};

}  // namespace

RunSummary RunSweep(const Sweep& sweep, const DriverOptions& options, const DriverParts& parts) {
  return Driver(sweep, options, parts).Run();
}

}  // namespace ridgeline
