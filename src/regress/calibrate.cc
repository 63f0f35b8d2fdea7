#include "regress/calibrate.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "regress/nightly.h"
#include "regress/point_names.h"
#include "regress/verdict.h"
#include "stats/median.h"

namespace ridgeline {
namespace {

// The pairs of the gate's two rounds.
constexpr size_t kPairsOfVerdict = 2 * kPairsOfRound;

// The chance of at most this many alarms, if each trial has one with chance `rate`.
double ChanceOfAtMost(int64_t alarms, int64_t trials, double rate) {
  double chance = 0;
  for (int64_t k = 0; k <= alarms; ++k) {
    const auto n = static_cast<double>(trials);
    const auto i = static_cast<double>(k);
    chance += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) + i * std::log(rate) +
                       (n - i) * std::log1p(-rate));
  }
  return chance;
}

// Runs in the order base, head, head, base.
std::vector<std::vector<RunPair>> RoundsInTurns(std::span<const double> runs) {
  std::vector<std::vector<RunPair>> rounds(2);
  for (size_t pair = 0; pair < kPairsOfVerdict; ++pair) {
    const double first = runs[2 * pair];
    const double second = runs[2 * pair + 1];
    rounds[pair / kPairsOfRound].push_back(pair % 2 == 0 ? RunPair{first, second} : RunPair{second, first});
  }
  return rounds;
}

std::string SomeOf(int64_t some, int64_t all) { return all == 0 ? "" : fmt::format("{} of {}", some, all); }

std::string RateWords(int64_t alarms, int64_t trials, const char* what) {
  if (trials == 0) return "";
  return fmt::format("{} of {} {}: {:.1f} %, at most {:.1f} % (95 %)\n", alarms, trials, what,
                     100 * static_cast<double>(alarms) / static_cast<double>(trials),
                     100 * MostFalseAlarms(alarms, trials));
}

}  // namespace

size_t RunsOfNights(size_t nights) { return kHistoryRuns + nights * kRunsOfNight; }

CalibratedCell Calibrate(std::string spec, std::span<const double> runs) {
  CalibratedCell cell;
  cell.spec = std::move(spec);
  cell.runs.assign(runs.begin(), runs.end());
  cell.sigma = RobustSigma(runs);
  const auto baseline_with_sigma = [&](size_t at) {
    Baseline baseline = *RollingBaseline(runs.first(at));
    baseline.sigma = cell.sigma;
    return baseline;
  };
  for (size_t at = kHistoryRuns; at + kRunsOfNight <= runs.size(); at += kRunsOfNight) {
    const auto tonight = runs.subspan(at, kRunsOfNight);
    ++cell.nights;
    if (Screen(tonight, *RollingBaseline(runs.first(at))).suspect) ++cell.suspects;
    cell.detectable = std::expm1(Screen(tonight, baseline_with_sigma(at)).detectable);
  }
  for (size_t at = 0; at + 2 * kPairsOfVerdict <= runs.size(); at += 2 * kPairsOfVerdict) {
    ++cell.verdicts;
    if (Judge(RoundsInTurns(runs.subspan(at))).decision == Decision::kRegressed) ++cell.confirmed;
  }
  return cell;
}

double MostFalseAlarms(int64_t alarms, int64_t trials) {
  if (alarms >= trials) return 1;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (ChanceOfAtMost(alarms, trials, middle) > 0.05 ? low : high) = middle;
  }
  return high;
}

Table CalibrationTable(std::span<const CalibratedCell> cells) {
  Table table{{"point", "runs", "sigma", "detects", "suspects", "confirmed"}, {}};
  std::vector<std::string> specs;
  for (const CalibratedCell& cell : cells) specs.push_back(cell.spec);
  const std::vector<std::string> names = PointNames(specs);
  for (size_t i = 0; i < cells.size(); ++i) {
    const CalibratedCell& cell = cells[i];
    table.rows.push_back({names[i], std::ssize(cell.runs), fmt::format("{:.2f} %", 100 * cell.sigma),
                          cell.nights > 0 ? fmt::format("{:+.1f} %", 100 * cell.detectable) : "",
                          SomeOf(cell.suspects, cell.nights), SomeOf(cell.confirmed, cell.verdicts)});
  }
  return table;
}

std::string CalibrationWords(std::span<const CalibratedCell> cells) {
  CalibratedCell all;
  for (const CalibratedCell& cell : cells) {
    all.nights += cell.nights;
    all.suspects += cell.suspects;
    all.verdicts += cell.verdicts;
    all.confirmed += cell.confirmed;
  }
  return RateWords(all.suspects, all.nights, "nights of a point were suspects, with nothing changed") +
         RateWords(all.confirmed, all.verdicts,
                   "verdicts on base and head in turns were REGRESSED, with nothing changed");
}

}  // namespace ridgeline
