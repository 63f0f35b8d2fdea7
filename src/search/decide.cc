#include "search/decide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stats/kriging.h"

namespace ridgeline::search {
namespace {

using Objective = sweep::SweepSearch::Objective;

constexpr double kTwoSided = 1.96;       // 95 of 100 values lie within so many standard deviations
constexpr size_t kMostKnown = 500;       // measured points that the search learns from
constexpr double kRunToRun = 0.015;      // how much runs differ, besides the spread within their steps
constexpr double kBelieved = 0.05;       // noise of a point that is assumed to come out as expected
constexpr double kUnknownLevel = 3;      // standard deviation of ln(error) if nothing is known about the error
constexpr double kShareOfAxis = 0.7;     // share of the predictions' spread by which each axis' values differ
constexpr double kShareOfPoint = 0.5;    // share by which points differ besides their axes
constexpr double kLikeNeighbour = 0.75;  // correlation over a doubling on an axis of numbers

// What the errors of two predictions have in common: their covariance.
class Likeness {
 public:
  explicit Likeness(const SearchSpace& space)
      : space_(space),
        all_(Square(space.knows_level ? space.spread : kUnknownLevel)),
        axis_(Square(kShareOfAxis * space.spread)),
        point_(Square(kShareOfPoint * space.spread)) {}

  double operator()(size_t a, size_t b) const {
    double sum = all_;
    double together = 1;
    for (size_t axis = 0; axis < space_.ordered.size(); ++axis) {
      const double apart = std::abs(space_.points[a].levels[axis] - space_.points[b].levels[axis]);
      const double alike = apart == 0 ? 1 : space_.ordered[axis] ? std::pow(kLikeNeighbour, apart) : 0;
      sum += axis_ * alike;
      together *= alike;
    }
    return sum + point_ * together;
  }

 private:
  static double Square(double value) { return value * value; }

  const SearchSpace& space_;
  double all_, axis_, point_;
};

class Decider {
 public:
  Decider(const SearchSpace& space, const sweep::SweepSearch& search, const Trials& trials)
      : space_(space), search_(search), trials_(trials), is_known_(search.maximize == Objective::kFit) {}

  SearchDecision Go(int64_t at_once) {
    TakeTrials();
    SortOutTheUntried();
    Predict();
    const int64_t runs = std::min({at_once, RunsToLookBy() - looked_, search_.budget - decision_.paid});
    if (decision_.left.empty()) {
      decision_.end = SearchDecision::End::kNothingLeft;
    } else if (decision_.best && decision_.promising == 0) {
      decision_.end = SearchDecision::End::kNothingBetter;
    } else if (runs <= 0) {
      decision_.end = SearchDecision::End::kBudget;
    } else {
      Choose(runs);
    }
    if (decision_.end != SearchDecision::End::kNone) HoldFinals();
    return std::move(decision_);
  }

 private:
  void TakeTrials() {
    for (size_t i = 0; i < space_.points.size(); ++i) {
      const SearchPoint& point = space_.points[i];
      const auto trial = trials_.find(point.point.id);
      if (trial == trials_.end()) continue;
      ++decision_.tried;
      if (trial->second.paid) ++looked_;
      decision_.paid += std::ssize(trial->second.turns);
      if (EndedForMemory(trial->second.status)) too_much_ = std::min(too_much_, point.share);
      if (trial->second.status == RunStatus::kOk) TakeMeasured(i, trial->second);
    }
    decision_.paid += looked_;
    // If more points are known than the search learns from, the best of them tell most.
    std::stable_sort(known_.begin(), known_.end(),
                     [](const Measured& a, const Measured& b) { return a.value > b.value; });
    if (known_.size() > kMostKnown) known_.resize(kMostKnown);
  }

  void TakeMeasured(size_t index, const Trial& trial) {
    const SearchPoint& point = space_.points[index];
    const double value = is_known_ ? point.worth : trial.tokens_per_s * point.worth;
    if (!(value > 0)) return;
    const bool has_failed = std::ranges::count(trial.turns, 0) > 0;
    if (!has_failed && (!decision_.best || value > decision_.best_value)) {
      decision_.best = index;
      decision_.best_value = value;
      decision_.best_interval = is_known_ ? 1 : std::exp(kTwoSided * trial.standard_error);
    }
    if (is_known_) return;
    if (has_failed) {
      ++decision_.failed_again;
      failed_turns_ += std::ssize(trial.turns);
    } else {
      Contender& contender = contenders_.emplace_back(Contender{index, {value}});
      for (const double turn : trial.turns) contender.values.push_back(turn * point.worth);
    }
    known_.push_back(
        {{index, std::log(trial.tokens_per_s / point.tokens_per_s), std::hypot(kRunToRun, trial.standard_error)},
         value});
  }

  void SortOutTheUntried() {
    for (size_t i = 0; i < space_.points.size(); ++i) {
      const SearchPoint& point = space_.points[i];
      if (trials_.contains(point.point.id)) continue;
      if (!point.fits) {
        ++decision_.too_large;
      } else if (point.share >= too_much_) {
        ++decision_.as_large;
      } else {
        decision_.left.push_back({i});
      }
    }
  }

  std::vector<stats::Kriging::Known> Known() const {
    std::vector<stats::Kriging::Known> known;
    for (const Measured& measured : known_) known.push_back(measured.known);
    return known;
  }

  void Guess(const stats::Kriging& errors, std::vector<Expected>& points) const {
    for (Expected& each : points) {
      const SearchPoint& point = space_.points[each.point];
      if (is_known_) {
        each.value = each.low = each.high = point.worth;
        continue;
      }
      const stats::Kriging::Guess guess = errors.At(each.point);
      each.value = point.tokens_per_s * point.worth * std::exp(guess.mean);
      each.low = each.value * std::exp(-kTwoSided * guess.deviation);
      each.high = each.value * std::exp(kTwoSided * guess.deviation);
    }
    // If all else is equal, points that need less memory go first.
    std::stable_sort(points.begin(), points.end(), [&](const Expected& a, const Expected& b) {
      return a.high != b.high ? a.high > b.high : space_.points[a.point].share < space_.points[b.point].share;
    });
  }

  void Predict() {
    Guess(stats::Kriging(Known(), known_.size(), Likeness(space_)), decision_.left);
    const double enough = decision_.best_value * (is_known_ ? 1 : kWorthLooking);
    decision_.promising = std::count_if(decision_.left.begin(), decision_.left.end(),
                                        [&](const Expected& each) { return each.high > enough; });
  }

  void Choose(int64_t runs) {
    std::vector<stats::Kriging::Known> known = Known();
    std::vector<Expected> left = decision_.left;
    const double enough = decision_.best_value * (is_known_ ? 1 : kWorthLooking);
    while (runs-- > 0 && !left.empty() && (left.front().high > enough || !decision_.best)) {
      const Expected chosen = left.front();
      decision_.run.push_back(chosen);
      left.erase(left.begin());
      // If only fitting is unknown, the largest point answers for all others, so another run at once would be useless.
      if (is_known_ || runs == 0) break;
      const SearchPoint& point = space_.points[chosen.point];
      known.push_back({chosen.point, std::log(chosen.value / (point.tokens_per_s * point.worth)), kBelieved});
      Guess(stats::Kriging(known, known_.size(), Likeness(space_)), left);
    }
  }

  // The budget without the runs kept for the finals, if finals are needed.
  int64_t RunsToLookBy() const { return search_.budget - (HasFinals(contenders_) ? RunsForFinals(search_.budget) : 0); }

  void HoldFinals() {
    decision_.finals = JudgeFinals(contenders_, search_.budget - looked_ - failed_turns_);
    if (!decision_.finals.finalists.empty()) {
      const Finalist& first = decision_.finals.finalists.front();
      decision_.best = first.point;
      decision_.best_value = first.value;
      if (decision_.finals.turns > 0) decision_.best_interval = decision_.finals.interval;
    }
    for (const size_t point : decision_.finals.run) {
      const auto is_it = [&](const Finalist& each) { return each.point == point; };
      const double value = std::ranges::find_if(decision_.finals.finalists, is_it)->value;
      decision_.run.push_back({point, value, value, value});
    }
  }

  struct Measured {
    stats::Kriging::Known known;
    double value;
  };

  const SearchSpace& space_;
  const sweep::SweepSearch& search_;
  const Trials& trials_;
  const bool is_known_;  // each point's value is known; only whether it fits is not
  std::vector<Measured> known_;
  std::vector<Contender> contenders_;
  int64_t looked_ = 0;        // runs of this search that tried a new point
  int64_t failed_turns_ = 0;  // runs of points that failed when they were measured again
  double too_much_ = std::numeric_limits<double>::infinity();  // smallest share that ran out of memory
  SearchDecision decision_;
};

}  // namespace

bool EndedForMemory(RunStatus status) {
  return status == RunStatus::kOomDevice || status == RunStatus::kOomHost || status == RunStatus::kSkippedPredictedOom;
}

SearchDecision Decide(const SearchSpace& space, const sweep::SweepSearch& search, const Trials& trials,
                      int64_t at_once) {
  return Decider(space, search, trials).Go(at_once);
}

}  // namespace ridgeline::search
