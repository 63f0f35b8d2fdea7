#include "rounds/rounds.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "driver/counting_line.h"
#include "plan/largest.h"
#include "report/intervals.h"
#include "search/show.h"
#include "session/session.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::rounds {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kUsuallyAtOnce = 8;  // for a launcher with a queue, if nobody says how many

// Leaves out, after the first round, the announcement of a run's start and the launcher's notes that were printed
// before.
class RoundObserver final : public driver::RunObserver {
 public:
  explicit RoundObserver(driver::RunObserver& inner) : inner_(inner) {}

  void Started(const driver::RunStart& start) override {
    if (start.adopted_jobs == 0) return;
    inner_.Note(fmt::format("{} of an earlier run adopted", CountOf(start.adopted_jobs, "job")));
  }
  void PointEnded(const std::string& label, const std::string& outcome, const driver::RunProgress& progress) override {
    inner_.PointEnded(label, outcome, progress);
  }
  void Note(const std::string& text) override {
    if (told_.insert(text).second) inner_.Note(text);
  }
  bool WantsProgress(int64_t monotonic_ns) override { return inner_.WantsProgress(monotonic_ns); }
  void Progress(const driver::RunProgress& progress) override { inner_.Progress(progress); }
  void Working(const std::string& line) override { inner_.Working(line); }

 private:
  driver::RunObserver& inner_;
  std::set<std::string> told_;
};

std::string NameOfTurns(const std::string& sweep) { return sweep + " (in turns)"; }

std::string CampaignOfTurn(const std::string& campaign, int64_t turn) {
  return fmt::format("{}+{}", campaign, turn + 1);
}

bool Stopped(const driver::RunSummary& summary) {
  return summary.interrupted || summary.left || !summary.given_up.empty() || summary.no_result > 0;
}

// Adds the repeated measurements in turns of points that have a first result.
void ReadTurns(store::Store& store, const sweep::Sweep& sweep, const std::map<std::string, const Point*>& points,
               const std::string& campaign, const std::vector<std::string>& trainer, search::Trials& trials) {
  std::vector<std::string> ids;
  for (const auto& [id, trial] : trials) ids.push_back(id);
  for (int64_t turn = 1; turn <= search::kMostTurns; ++turn) {
    for (const store::StandingResult& result : store.StandingResults(CampaignOfTurn(campaign, turn), ids)) {
      if (result.setup != SetupOf(sweep::LaunchOf(sweep, *points.at(result.point_id)), trainer)) continue;
      search::Trial& trial = trials.at(result.point_id);
      trial.turns.push_back(result.status == RunStatus::kOk ? result.steady_tokens_per_s : 0);
    }
  }
}

class Rounds {
 public:
  Rounds(sweep::Sweep sweep, driver::DriverOptions driver, const driver::DriverParts& parts, int64_t at_once)
      : sweep_(std::move(sweep)),
        driver_(std::move(driver)),
        parts_(parts),
        at_once_(at_once),
        observer_(parts.observer),
        maker_(driver_.node, Counted(), session::DeviceFoldersFor(sweep_), session::FrameworksFor(sweep_)) {
    driver_.costs_of = CostsAreOf(sweep_, driver_.campaign);
    batches_ = plan::UseLargestBatches(sweep_, {}, Counted(),
                                       EndedForMemoryIn(parts_.store, driver_.campaign, driver_.trainer));
  }

  driver::RunSummary RunAll() {
    if (!sweep::HasLargestBatch(sweep_)) return driver::RunSweep(sweep_, driver_, parts_);
    std::set<std::string> points = Ids();
    TellOfLargest();
    driver::DriverParts parts = parts_;
    parts.trainer_faults = &trainer_faults_;
    driver::RunSummary summary = driver::RunSweep(sweep_, driver_, parts);
    while (!Stopped(summary)) {
      std::set<std::string> learnt = Ids();
      if (learnt == points) break;
      points = std::move(learnt);
      TellOfLargest();
      summary = RunRound();
    }
    return summary;
  }

  RoundsResult Search() {
    RoundsResult result;
    bool stopped = false;
    bool has_run = false;
    for (bool is_first = true; !stopped; is_first = false) {
      Look();
      if (is_first) observer_.Note(search::SearchWords(sweep_, spaces_));
      TellOfLargest();
      Choice next;
      if (is_first) next.points = LeftToDo();
      if (next.points.empty()) next = Choose();
      if (next.points.empty() && next.turns.empty()) break;
      if (!next.points.empty()) {
        result.summary = RunPoints(std::move(next.points));
        has_run = true;
        if (Stopped(result.summary)) break;
      }
      for (auto turn = next.turns.begin(); turn != next.turns.end() && !stopped; ++turn) {
        driver::RunSummary summary = RunTurn(turn->first, std::move(turn->second));
        stopped = Stopped(summary);
        if (stopped) result.summary = std::move(summary);
      }
    }
    // Runs so that the store has the sweep as it is now.
    if (!has_run && !stopped) result.summary = RunPoints(trials_.empty() ? Smallest() : std::set<std::string>());
    Look();
    for (size_t i = 0; i < spaces_.size(); ++i) {
      for (std::string& line : search::AnswerLines(spaces_[i], *sweep_.search, decisions_[i])) {
        result.answer.push_back(std::move(line));
      }
    }
    return result;
  }

 private:
  // The forecaster, which counts in the line and throws Interrupted if it is asked to stop.
  plan::Forecaster Counted() {
    return [this](const RunSpec& spec) {
      parts_.ThrowIfInterrupted();
      if (predicting_) predicting_->At(++predicted_);
      return parts_.forecaster(spec);
    };
  }

  void ShowPredicting() {
    predicting_.emplace("predicting what fits", parts_.clock,
                        [this](const std::string& line) { parts_.observer.Working(line); });
  }

  std::set<std::string> Ids() {
    std::set<std::string> ids;
    ShowPredicting();
    sweep::ForEachPoint(sweep_, [&](const sweep::PointView& point) { ids.emplace(point.id); });
    predicting_.reset();
    return ids;
  }

  void TellOfLargest() {
    for (const std::string& line : plan::LargestBatchLines(sweep_, *batches_)) observer_.Note(line);
  }

  // Reads the choices and what is known of them, and decides what follows.
  void Look() {
    sweep_.only.clear();
    ShowPredicting();
    spaces_ = maker_.Make(sweep_);
    predicting_.reset();
    trials_ = ReadTrials(parts_.store, sweep_, spaces_, driver_.campaign, driver_.trainer);
    decisions_.clear();
    for (const search::SearchSpace& space : spaces_)
      decisions_.push_back(search::Decide(space, *sweep_.search, trials_, at_once_));
  }

  // Points that an earlier run submitted, and points that the user wants to be run again. They come first, as they
  // would have without the interruption.
  std::set<std::string> LeftToDo() {
    std::set<std::string> handed_over;
    for (const store::JobRecord& job : parts_.store.LiveJobs(sweep_.name)) {
      for (const store::JobRecord::Point& point : job.points) handed_over.insert(point.id);
    }
    std::set<std::string> left;
    for (const search::SearchSpace& space : spaces_) {
      for (const search::SearchPoint& point : space.points) {
        const std::string& id = point.point.id;
        const auto trial = trials_.find(id);
        if (handed_over.contains(id)) left.insert(id);
        if (driver_.retry_failed && trial != trials_.end() && trial->second.status != RunStatus::kOk) left.insert(id);
      }
    }
    return left;
  }

  // What is measured next, by ids: for the first time, or again, and then in which turn.
  struct Choice {
    std::set<std::string> points;
    std::map<int64_t, std::set<std::string>> turns;
  };

  Choice Choose() {
    Choice next;
    for (size_t i = 0; i < spaces_.size(); ++i) {
      const int64_t turn = decisions_[i].finals.next_turn;
      int64_t run = decisions_[i].paid;
      for (const search::Expected& chosen : decisions_[i].run) {
        observer_.Note(search::ChoiceWords(spaces_[i], *sweep_.search, decisions_[i], chosen, ++run));
        (turn > 0 ? next.turns[turn] : next.points).insert(spaces_[i].points[chosen.point].point.id);
      }
    }
    return next;
  }

  // The point of each space that needs the least memory. If not even that one fits, it is the sweep's answer.
  std::set<std::string> Smallest() const {
    std::set<std::string> smallest;
    for (const search::SearchSpace& space : spaces_) {
      const auto least = std::min_element(space.points.begin(), space.points.end(),
                                          [](const auto& a, const auto& b) { return a.share < b.share; });
      smallest.insert(least->point.id);
    }
    return smallest;
  }

  // Runs these points. The sweep then has them and the points of which something is known.
  driver::RunSummary RunPoints(std::set<std::string> next) {
    sweep_.only = std::move(next);
    for (const auto& [id, trial] : trials_) sweep_.only.insert(id);
    return RunRound();
  }

  driver::RunSummary RunTurn(int64_t turn, std::set<std::string> points) {
    sweep::Sweep sweep = SweepOfTurns(sweep_);
    sweep.only = std::move(points);
    driver::DriverOptions driver = driver_;
    driver.campaign = CampaignOfTurn(driver_.campaign, turn);
    return Drive(sweep, driver);
  }

  driver::RunSummary RunRound() {
    driver::RunSummary summary = Drive(sweep_, driver_);
    driver_.retry_failed = false;
    return summary;
  }

  driver::RunSummary Drive(const sweep::Sweep& sweep, const driver::DriverOptions& driver) {
    return driver::RunSweep(sweep, driver,
                            {parts_.store, parts_.launcher, parts_.clock, parts_.forecaster, observer_,
                             parts_.interrupts, parts_.before_jobs, &trainer_faults_});
  }

  sweep::Sweep sweep_;
  driver::DriverOptions driver_;
  const driver::DriverParts& parts_;
  const int64_t at_once_;
  RoundObserver observer_;
  std::optional<driver::CountingLine> predicting_;
  size_t predicted_ = 0;
  driver::TrainerFaults trainer_faults_;
  search::SpaceMaker maker_;
  std::shared_ptr<const plan::BatchesThatFit> batches_;
  std::vector<search::SearchSpace> spaces_;
  search::Trials trials_;
  std::vector<search::SearchDecision> decisions_;
};

}  // namespace

RoundsResult RunInRounds(sweep::Sweep sweep, driver::DriverOptions driver, const driver::DriverParts& parts,
                         int64_t at_once) {
  const bool is_search = sweep.search.has_value();
  if (is_search && driver.detach) {
    throw Error(ErrorKind::kUsage, "a search depends on its measurements, and cannot be detached",
                "leave --detach out; `nohup ridgeline run SWEEP &` runs on without a terminal");
  }
  Rounds rounds(std::move(sweep), std::move(driver), parts, at_once);
  if (is_search) return rounds.Search();
  return {rounds.RunAll(), {}};
}

sweep::Sweep SweepOfTurns(sweep::Sweep sweep) {
  sweep.name = NameOfTurns(sweep.name);
  return sweep;
}

std::vector<driver::SweepCampaign> CostsAreOf(const sweep::Sweep& sweep, const std::string& campaign) {
  std::vector<driver::SweepCampaign> of = {{sweep.name, campaign}};
  for (int64_t turn = 1; sweep.search && turn <= search::kMostTurns; ++turn) {
    of.push_back({NameOfTurns(sweep.name), CampaignOfTurn(campaign, turn)});
  }
  return of;
}

std::vector<std::string> StillBilled(const sweep::Sweep& sweep, launch::Launcher& launcher) {
  std::vector<std::string> billed = launcher.StillBilled(sweep.name);
  if (!sweep.search) return billed;
  // A launcher that shortens names may have found the same.
  for (std::string& line : launcher.StillBilled(NameOfTurns(sweep.name))) {
    if (std::ranges::find(billed, line) == billed.end()) billed.push_back(std::move(line));
  }
  return billed;
}

int64_t SearchedAtOnce(const launch::Launcher& launcher, int64_t max_parallel) {
  return max_parallel > 0 ? max_parallel : launcher.can().queue ? kUsuallyAtOnce : 1;
}

std::function<bool(const sweep::Sweep& sweep, const Point& point)> EndedForMemoryIn(
    store::Store& store, const std::string& campaign, const std::vector<std::string>& trainer) {
  return [&store, campaign, trainer](const sweep::Sweep& sweep, const Point& point) {
    const std::vector<store::StandingResult> results = store.StandingResults(campaign, {&point.id, 1});
    return std::any_of(results.begin(), results.end(), [&](const store::StandingResult& result) {
      return search::EndedForMemory(result.status) && result.setup == SetupOf(sweep::LaunchOf(sweep, point), trainer);
    });
  };
}

search::Trials ReadTrials(store::Store& store, const sweep::Sweep& sweep,
                          const std::vector<search::SearchSpace>& spaces, const std::string& campaign,
                          const std::vector<std::string>& trainer) {
  std::vector<std::string> ids;
  std::map<std::string, const Point*> points;
  for (const search::SearchSpace& space : spaces) {
    for (const search::SearchPoint& point : space.points) {
      ids.push_back(point.point.id);
      points.emplace(point.point.id, &point.point);
    }
  }
  search::Trials trials;
  for (const store::StandingResult& result : store.StandingResults(campaign, ids)) {
    const Point& point = *points.at(result.point_id);
    if (result.setup != SetupOf(sweep::LaunchOf(sweep, point), trainer)) continue;
    search::Trial& trial = trials[result.point_id];
    trial = {result.status, result.steady_tokens_per_s, 0, result.sweep == sweep.name};
    if (result.status != RunStatus::kOk) continue;
    const std::optional<stats::Estimate> step =
        report::MedianOfSteps(result.all_steps_ns, point.spec.warmup_steps, point.spec.steps);
    if (step) trial.standard_error = step->standard_error;
  }
  ReadTurns(store, sweep, points, campaign, trainer, trials);
  return trials;
}

}  // namespace ridgeline::rounds
