#include "driver/driver.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "collect/collect.h"
#include "driver/adopt.h"
#include "driver/collector.h"
#include "driver/cost.h"
#include "driver/fault_watch.h"
#include "driver/job_table.h"
#include "driver/launcher_retries.h"
#include "driver/live_job.h"
#include "driver/pace.h"
#include "driver/patience.h"
#include "driver/planner.h"
#include "driver/poller.h"
#include "driver/retry_policy.h"
#include "driver/room.h"
#include "driver/submitter.h"
#include "driver/sweep_points.h"
#include "driver/tally.h"
#include "driver/withdraw.h"

namespace ridgeline::driver {
namespace {

// The loop. It moves jobs from part to part and has their results collected.
class Driver {
 public:
  Driver(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts)
      : sweep_(sweep),
        options_(options),
        parts_(parts),
        points_(sweep, options.jobs_dir.parent_path(), options.campaign, options.trainer),
        planner_(sweep, options, parts, points_, tally_),
        retries_(parts, sweep.launch.launcher_timeout_s),
        faults_(sweep.launch.give_up_after, trainer_faults()),
        cost_(sweep, options, parts, points_),
        collector_(sweep, parts, points_, room_, live_, planner_, tally_, faults_),
        submitter_(parts, retries_, faults_, options.program),
        poller_(parts, retries_),
        pace_(parts.clock.MonotonicNs()) {}

  RunSummary Run() {
    try {
      RunJobs();
    } catch (const Interrupted&) {
      interrupted_ = true;
      if (parts_.interrupts() == 1) parts_.clock.SleepNs(kSecondSignalNs);
      parts_.interrupts() > 1 ? Leave() : Stop();
    }
    if (const std::string unread = poller_.UnreadLogs(); !unread.empty()) parts_.observer.Note(unread);
    return Summary();
  }

 private:
  // Throws Interrupted if it is asked to stop.
  void RunJobs() {
    Begin();
    Adopt();
    const Planner::Skipped skipped = planner_.PlanAllBut(Taken());
    start_.predicted_oom = skipped.points;
    start_.predicted_oom_why = skipped.why;
    parts_.observer.Started(start_);
    if (!planner_.empty() || !live_.empty()) room_ = RoomOf(parts_, options_, retries_);
    if (!room_.queues) faults_.HaveOneMachine();
    while (HasWork()) {
      parts_.ThrowIfInterrupted();
      bool changed = !GivenUp() && OpenJobs();
      changed = (!GivenUp() && SubmitJobs()) || changed;
      if (options_.detach && live_.AllSubmitted()) return Leave();
      changed = AskAndCollect() || changed;
      if (!GivenUp()) UseNodesAgain();
      // A round ends with its last job, unless there is room for another.
      if (planner_.HasPointsAgain() && planner_.empty() && live_.size() < room_.jobs) planner_.PlanAgain();
      ShowProgress();
      changed ? pace_.Changed(Now()) : parts_.clock.SleepNs(pace_.WaitNs(Now()));
    }
  }

  int64_t Now() const { return parts_.clock.MonotonicNs(); }
  TrainerFaults& trainer_faults() {
    return parts_.trainer_faults != nullptr ? *parts_.trainer_faults : own_trainer_faults_;
  }
  bool GivenUp() const { return !faults_.given_up().empty() || !cost_.stopped().empty(); }

  // After giving up, the loop only waits for the jobs that the launcher has.
  bool HasWork() {
    if (GivenUp()) return !live_.Submitted().empty();
    return !planner_.empty() || !live_.empty() || planner_.HasPointsAgain();
  }

  void Begin() {
    for (const std::string& warning : points_.warnings()) parts_.observer.Note(warning);
    planner_.Begin();
    if (options_.retry_failed) start_.retried = parts_.store.RetryFailed(sweep_.name);
    start_.points = static_cast<int64_t>(points_.all().size());
    const store::SweepProgress had = parts_.store.Progress(sweep_.name);
    const int64_t judged_anew = planner_.JudgeAnew();
    tally_.Begin(start_.points, had.ok, had.failed - judged_anew, points_.runs());
    start_.finished = had.finished() - judged_anew;
    trainer_faults().has_worked = trainer_faults().has_worked || had.ok > 0;
    for (const store::PointOrigins& origins : parts_.store.OriginsOfFinished(sweep_.name)) {
      if (!AgreeOnOrigin(origins.environment, options_.here)) start_.elsewhere += origins.points;
    }
  }

  void Adopt() {
    for (LiveJob& job : AdoptJobs(sweep_, parts_, points_, planner_, tally_, live_)) {
      CollectPatiently({{job.record, store::JobRecord::State::kLost, {{"message", "it was never submitted"}}}}, {&job});
    }
    start_.adopted_jobs = live_.size();
    if (live_.empty()) return;
    WithdrawAdopted(live_, parts_);
    // Collects what they wrote while no driver ran.
    std::vector<collect::JobToCollect> to_collect;
    std::vector<LiveJob*> jobs;
    for (LiveJob& job : live_) {
      to_collect.push_back({job.record, job.record.state, {}, &job.results});
      jobs.push_back(&job);
    }
    CollectPatiently(to_collect, jobs);
  }

  // The points that have a result or are in a live job.
  std::set<std::string> Taken() {
    const std::vector<std::string> finished = parts_.store.FinishedPoints(sweep_.name);
    std::set<std::string> taken = live_.PointIds();
    taken.insert(finished.begin(), finished.end());
    return taken;
  }

  // Commits intents for as many jobs as the window has room for, then writes their files. Fills a large window in large
  // parts, so that a launcher can submit each part as one.
  bool OpenJobs() {
    std::vector<store::JobRecord> intents;
    const int64_t first_new = live_.size();
    const int64_t room = room_.jobs - live_.size();
    if (!live_.empty() && room < std::min<int64_t>(room_.jobs / kRefillShare, planner_.size())) return false;
    while (!planner_.empty() && live_.size() < room_.jobs) {
      if (!cost_.HasRoomFor(planner_.Next(), live_)) break;
      live_.Add(planner_.Open());
      intents.push_back((live_.end() - 1)->record);
    }
    if (intents.empty()) return false;
    parts_.store.RecordIntents(intents);
    for (auto job = live_.begin() + first_new; job != live_.end(); ++job) WriteJob(*job->to_submit);
    return true;
  }

  bool SubmitJobs() {
    const Submitter::Outcome outcome = submitter_.Submit(live_);
    if (!outcome.refused.empty()) {
      if (!CollectPatiently(outcome.ends, outcome.refused, Collector::Why::kRefused)) return false;
      Forget(outcome.refused);
      submitter_.ThrowIfDown();
    }
    return outcome.asked;
  }

  bool AskAndCollect() {
    std::optional<Poller::Outcome> outcome = poller_.Poll(live_);
    if (!outcome) return false;
    cost_.AddTo(outcome->to_collect);
    const std::optional<int64_t> new_results = CollectPatiently(outcome->to_collect, outcome->looked_at);
    if (!new_results) return false;
    std::vector<LiveJob*> ended = std::move(outcome->ended);
    std::erase_if(ended, [](const LiveJob* job) { return job->results.lacks_lines; });
    for (const LiveJob* job : ended) {
      if (job->submitted_ns > 0 && !room_.queues) planner_.JobEnded(static_cast<int64_t>(job->record.points.size()));
    }
    Forget(ended);
    poller_.Pause();
    return *new_results > 0 || !ended.empty();
  }

  // Returns how many points ended, or nothing if the run is asked to stop before that is known. Reads a file again that
  // cannot be read now, because handles are stale for a moment when a file server restarts. Throws if that lasts for
  // launcher_timeout.
  std::optional<int64_t> CollectPatiently(const std::vector<collect::JobToCollect>& to_collect,
                                          const std::vector<LiveJob*>& of, Collector::Why why = Collector::Why::kRan) {
    if (to_collect.empty()) return 0;
    const int64_t begin_ns = Now();
    for (int failed = 0; failed == 0 || parts_.interrupts() == 0;) {
      try {
        return collector_.CollectJobs(to_collect, of, why);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kInfrastructure) throw;
        if (failed == 0) parts_.observer.Note("results are read again later: " + PrintableLine(e.message()));
        if (Now() - begin_ns >= sweep_.launch.launcher_timeout_s * 1'000'000'000) throw;
        parts_.clock.SleepNs(TryAgainNs(++failed));
      }
    }
    return std::nullopt;
  }

  // If a job has found no node for launcher_timeout, uses a node again that was set aside: one at a time, the next
  // after the same wait. Jobs that an earlier run kept off nodes need not wait if this run set no nodes aside. Other
  // jobs keep their place in the queue.
  void UseNodesAgain() {
    for (const LiveJob& job : live_) {
      if (job.no_node_since_ns == 0 || !job.withdrawn.empty() || job.kept_off.empty()) continue;
      const bool is_of_an_earlier_run = job.submitted_ns == 0;
      const int64_t waited_ns = Now() - job.no_node_since_ns;
      const bool is_due = faults_.avoid().empty() ? is_of_an_earlier_run
                                                  : waited_ns >= sweep_.launch.launcher_timeout_s * 1'000'000'000;
      if (!is_due) continue;
      const FaultWatch::Finding found = faults_.UseAgain(job.no_node);
      parts_.observer.Note(found.note);
      WithdrawQueued(live_, parts_, found.withdrawn, Queued::kKeptOffNodes);
      for (LiveJob& each : live_) each.no_node_since_ns = 0;
      return;
    }
  }

  // A point is in one live job at a time. If that job was for another campaign or setup, this run's turn comes now.
  void Forget(const std::vector<LiveJob*>& ended) {
    std::set<std::string> free;
    for (const LiveJob* job : ended) {
      for (const store::JobRecord::Point& point : job->record.points) {
        const Point* known = points_.Find(point.id);
        if (known != nullptr && job->record.measured_as != points_.KeyOf(*known)) free.insert(point.id);
      }
    }
    live_.Forget(ended);
    if (free.empty()) return;
    for (const std::string& id : parts_.store.FinishedPoints(sweep_.name)) free.erase(id);
    for (const std::string& id : free) planner_.RunAgain(*points_.Find(id), /*counted=*/false);
  }

  void ShowProgress() {
    if (!parts_.observer.WantsProgress(Now())) return;
    parts_.observer.Progress(tally_.Now(live_, points_, Now(), room_.queues ? 0 : room_.jobs));
  }

  void Stop() {
    EndUnsubmitted(live_, parts_);
    if (live_.empty()) return;
    parts_.observer.Note(fmt::format("stopping: {} told to end", CountOf(live_.size(), "job")));
    cancelled_ = CancelJobs(live_.Records(), parts_.store, parts_.launcher, parts_.clock, sweep_.price,
                            options_.predicted_usd, [&] { return parts_.interrupts() > 1; });
  }

  void Leave() {
    left_ = true;
    cancelled_.live = live_.size();
  }

  RunSummary Summary() const {
    const store::SweepProgress progress = parts_.store.Progress(sweep_.name);
    return {.ok = progress.ok,
            .failed = progress.failed,
            .out_of_memory = progress.out_of_memory,
            .no_result = progress.points - progress.finished(),
            .infrastructure = progress.infrastructure,
            .live_jobs = cancelled_.live,
            .interrupted = interrupted_,
            .left = left_,
            .given_up = faults_.given_up().empty() ? cost_.stopped() : faults_.given_up(),
            .trainers_fault = faults_.is_trainers_fault(),
            .set_aside = faults_.SetAside()};
  }

  const sweep::Sweep& sweep_;
  const DriverOptions& options_;
  const DriverParts& parts_;
  SweepPoints points_;
  Tally tally_;
  JobTable live_;
  Planner planner_;
  LauncherRetries retries_;
  TrainerFaults own_trainer_faults_;
  FaultWatch faults_;
  CostLimit cost_;
  LauncherRoom room_;
  Collector collector_;
  Submitter submitter_;
  Poller poller_;
  PollPace pace_;
  RunStart start_;
  Cancelled cancelled_;
  bool interrupted_ = false;
  bool left_ = false;
};

}  // namespace

RunSummary RunSweep(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts) {
  return Driver(sweep, options, parts).Run();
}

}  // namespace ridgeline::driver
