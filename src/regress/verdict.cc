#include "regress/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/student.h"

namespace ridgeline::regress {
namespace {

constexpr double kTail = 0.025;    // above a 95 % interval
constexpr double kMissed = 0.2;    // the share of detectable changes that is missed
constexpr int64_t kTurns = 2;      // pairs of base, head, head, base
constexpr int64_t kConfirmed = 2;  // rounds

struct Difference {
  int64_t pairs = 0;
  double mean = 0;
  double deviation = 0;  // standard deviation of a pair

  double error() const { return deviation / std::sqrt(static_cast<double>(pairs)); }
  double half() const { return HalfWith(pairs); }
  // Half of the interval, if there were this many pairs.
  double HalfWith(int64_t count) const {
    if (count < 2) return std::numeric_limits<double>::infinity();
    return stats::StudentQuantile(kTail, count - 1) * deviation / std::sqrt(static_cast<double>(count));
  }
  bool Slower(double limit) const { return mean > limit && mean > half(); }
};

Difference DifferenceOf(std::span<const RunPair> pairs) {
  Difference difference;
  difference.pairs = std::ssize(pairs);
  if (pairs.empty()) return difference;
  const auto count = static_cast<double>(pairs.size());
  for (const RunPair& pair : pairs) difference.mean += (pair.head - pair.base) / count;
  double squares = 0;
  for (const RunPair& pair : pairs) squares += std::pow(pair.head - pair.base - difference.mean, 2);
  difference.deviation = pairs.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return difference;
}

// The fewest pairs, in whole turns and at least `least`, with which the interval's half is below `wanted`. If even
// kMostRuns runs are too few, their pairs.
int64_t PairsFor(const Difference& all, double wanted, int64_t least) {
  int64_t pairs = std::max(least, kTurns);
  pairs += pairs % kTurns;
  while (pairs < kMostRuns / 2 && all.HalfWith(pairs) >= wanted) pairs += kTurns;
  return pairs;
}

int64_t FurtherRuns(const Difference& all, int64_t confirmed, double limit) {
  constexpr auto kRound = static_cast<int64_t>(kPairsOfRound);
  if (all.pairs < 2) return 2 * kRound;
  const bool slower = all.mean > limit;
  const int64_t pairs = slower ? PairsFor(all, all.mean, kRound) : PairsFor(all, limit - all.mean, all.pairs + 1);
  if (2 * pairs >= kMostRuns) return kMostRuns;
  const int64_t rounds = std::max<int64_t>(1, kConfirmed - confirmed);
  return std::min(2 * (slower ? rounds * pairs : pairs - all.pairs), kMostRuns);
}

}  // namespace

std::string_view DecisionName(Decision decision) {
  switch (decision) {
    case Decision::kPass:
      return "PASS";
    case Decision::kRegressed:
      return "REGRESSED";
    case Decision::kInconclusive:
      return "INCONCLUSIVE";
  }
  return "";
}

Judgement Judge(std::span<const std::vector<RunPair>> rounds, double tolerance) {
  const double limit = std::log1p(tolerance);
  std::vector<RunPair> pairs;
  int64_t confirmed = 0;
  for (const std::vector<RunPair>& round : rounds) {
    pairs.insert(pairs.end(), round.begin(), round.end());
    if (DifferenceOf(round).Slower(limit)) ++confirmed;
  }
  const Difference all = DifferenceOf(pairs);
  Judgement judgement;
  judgement.change = all.mean;
  judgement.low = all.mean - all.half();
  judgement.high = all.mean + all.half();
  judgement.detectable = std::numeric_limits<double>::infinity();
  if (all.pairs > 1) {
    judgement.detectable = all.half() + stats::StudentQuantile(kMissed, all.pairs - 1) * all.error();
    judgement.chance = all.error() > 0 ? stats::StudentTail(all.mean / all.error(), all.pairs - 1)
                       : all.mean > 0  ? 0
                                       : 1;
  }
  if (judgement.high < limit) {
    judgement.decision = Decision::kPass;
  } else if (confirmed >= kConfirmed && all.Slower(limit)) {
    judgement.decision = Decision::kRegressed;
  } else {
    judgement.further_runs = FurtherRuns(all, confirmed, limit);
  }
  return judgement;
}

bool MeasuresOn(const Judgement& judgement, bool is_faint, double tolerance) {
  if (judgement.decision != Decision::kInconclusive) return false;
  return !is_faint || !std::isfinite(judgement.low) || judgement.change > std::log1p(tolerance);
}

std::vector<bool> Discoveries(std::span<const double> chances, double rate) {
  std::vector<double> sorted(chances.begin(), chances.end());
  std::sort(sorted.begin(), sorted.end());
  double largest = -1;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] <= rate * static_cast<double>(i + 1) / static_cast<double>(sorted.size())) largest = sorted[i];
  }
  std::vector<bool> discovered(chances.size());
  for (size_t i = 0; i < chances.size(); ++i) discovered[i] = chances[i] <= largest;
  return discovered;
}

}  // namespace ridgeline::regress
