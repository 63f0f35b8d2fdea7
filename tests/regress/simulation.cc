#include "tests/regress/simulation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "regress/nightly.h"
#include "stats/steady.h"

namespace ridgeline::testing {
namespace {

constexpr int kSteps = 60;
constexpr int kCells = 100;
constexpr int kMostRounds = 3;

}  // namespace

double MachineSimulation::Run(double level, double of_session) {
  double shared = level + noise_.between_runs * normal_(random_) + noise_.drift_of_session * of_session;
  if (uniform_(random_) < noise_.disturbed_runs) shared += std::log(1.05);
  const int burst = uniform_(random_) < noise_.bursts ? static_cast<int>(uniform_(random_) * kSteps) : kSteps;
  const double fresh = std::sqrt(1 - noise_.neighbours * noise_.neighbours);
  double noise = normal_(random_);
  steps_.clear();
  for (int i = 0; i < kSteps; ++i) {
    const double warm_up = 0.3 * std::exp(-i / 3.0);
    const double disturbed = i >= burst && i < burst + kSteps / 6 ? std::log(1.5) : 0;
    steps_.push_back(std::exp(shared + noise_.steps * noise + warm_up + disturbed));
    noise = noise_.neighbours * noise + fresh * normal_(random_);
  }
  return stats::FindSteadySteps(steps_)->log_median;
}

std::vector<double> MachineSimulation::NewHistory() {
  std::vector<double> history;
  while (history.size() < regress::kHistoryRuns) history.push_back(Run(0));
  return history;
}

CellNight MachineSimulation::Night(const std::vector<double>& history, double level, double change) {
  CellNight night;
  for (double& run : night.runs) run = Run(level + change);
  const regress::Screening screening = regress::Screen(night.runs, *regress::RollingBaseline(history));
  night.suspect = screening.suspect;
  night.faint = screening.faint && !screening.suspect;
  if (!night.suspect && !night.faint) return night;
  regress::Judgement judgement;
  std::vector<std::vector<regress::RunPair>> rounds;
  do {
    rounds.emplace_back();
    for (size_t i = 0; i < regress::kPairsOfRound; ++i) {
      const double at = static_cast<double>(i) / regress::kPairsOfRound;
      const double next = at + 0.5 / regress::kPairsOfRound;
      const bool base_first = i % 2 == 0;
      const double base = Run(level, base_first ? at : next);
      rounds.back().push_back({base, Run(level + change, base_first ? next : at)});
    }
    judgement = regress::Judge(rounds);
  } while (regress::MeasuresOn(judgement, night.faint) && rounds.size() < kMostRounds);
  night.decision = judgement.decision;
  night.chance = judgement.chance;
  if (night.faint && night.decision == regress::Decision::kInconclusive) night.decision = regress::Decision::kPass;
  return night;
}

NightCounts MachineSimulation::CountRedNights(int64_t nights) {
  NightCounts counts;
  counts.nights = nights;
  std::vector<std::vector<double>> histories;
  while (histories.size() < kCells) histories.push_back(NewHistory());
  for (int64_t night = 0; night < nights; ++night) {
    const double level = noise_.drift_of_nights * std::sin(2 * std::numbers::pi * static_cast<double>(night) / 60);
    std::vector<double> chances;
    bool inconclusive = false;
    for (std::vector<double>& history : histories) {
      const CellNight cell = Night(history, level, 0);
      counts.suspects += cell.suspect ? 1 : 0;
      inconclusive |= cell.decision == regress::Decision::kInconclusive;
      if (cell.suspect || cell.faint)
        chances.push_back(cell.decision == regress::Decision::kRegressed ? cell.chance : 1);
      if (cell.decision != regress::Decision::kPass) continue;  // baselines leave out runs that looked worse
      history.insert(history.end(), cell.runs.begin(), cell.runs.end());
      history.erase(history.begin(), history.end() - regress::kHistoryRuns);
    }
    const std::vector<bool> found = regress::Discoveries(chances, regress::kTurnsRate);
    const bool red = std::find(found.begin(), found.end(), true) != found.end();
    counts.red += red ? 1 : 0;
    counts.inconclusive += !red && inconclusive ? 1 : 0;
  }
  return counts;
}

int64_t MachineSimulation::CountFound(int64_t cases, double change) {
  int64_t found = 0;
  for (int64_t i = 0; i < cases; ++i) {
    const CellNight night = Night(NewHistory(), 0, change);
    found += night.decision == regress::Decision::kRegressed ? 1 : 0;
  }
  return found;
}

}  // namespace ridgeline::testing
