#include "tests/regress/night_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "regress/accepted.h"
#include "regress/nightly.h"
#include "stats/median.h"

namespace ridgeline::testing {
namespace {

constexpr size_t kCells = 100;
constexpr size_t kNodes = 4;
constexpr int kRuns = 3;
constexpr size_t kMostRounds = 3;

double MedianNight(std::vector<double> runs) { return stats::MedianOf(runs); }

double MeanNight(const std::vector<double>& runs) {
  return std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
}

}  // namespace

double NightSimulation::Run(double level, bool* disturbed) {
  double run = level + noise_.runs * normal_(random_);
  if (uniform_(random_) < noise_.disturbed) {
    run += std::log(1.05);
    if (disturbed != nullptr) *disturbed = noise_.is_seen;
  }
  if (uniform_(random_) < noise_.slow_clock) run += std::log(1.04);
  return run;
}

void NightSimulation::AddNight(CellNights& cell, double change) {
  const auto node = static_cast<size_t>(uniform_(random_) * kNodes);
  double level = change + cell.nodes[std::min(node, kNodes - 1)] + noise_.nights * normal_(random_);
  std::vector<double>& runs = cell.nights.emplace_back();
  bool disturbed = false;
  if (noise_.disturbed_nights > 0 && uniform_(random_) < noise_.disturbed_nights) {
    level += std::log(1.2);
    disturbed = noise_.is_seen;
  }
  while (runs.size() < kRuns) runs.push_back(Run(level, &disturbed));
  cell.disturbed.push_back(disturbed);
  cell.open.push_back(false);
  cell.worse.push_back(false);
}

NightSimulation::CellNights NightSimulation::NewCell(int nights) {
  CellNights cell;
  while (cell.nodes.size() < kNodes) cell.nodes.push_back(noise_.nodes * normal_(random_));
  for (int i = 0; i < nights; ++i) AddNight(cell, 0);
  return cell;
}

regress::Judgement NightSimulation::InTurns(double change, double base, bool is_faint) {
  std::vector<std::vector<regress::RunPair>> rounds;
  regress::Judgement judgement;
  do {
    rounds.emplace_back();
    for (size_t i = 0; i < regress::kPairsOfRound; ++i) rounds.back().push_back({Run(0) + base, Run(change)});
    judgement = regress::Judge(rounds);
    runs_in_turns_ += 2 * static_cast<int64_t>(regress::kPairsOfRound);
  } while (regress::MeasuresOn(judgement, is_faint) && rounds.size() < kMostRounds);
  return judgement;
}

std::vector<NightSimulation::End> NightSimulation::Tonight(std::vector<CellNights>& cells,
                                                           const std::vector<double>& changes, bool pinned) {
  std::vector<End> ends(cells.size(), End::kPass);
  std::vector<double> chances;
  std::vector<size_t> judged;  // the cells with those chances
  std::vector<bool> faint(cells.size());
  std::vector<size_t> first(cells.size());  // first of the nights that show it together
  for (size_t i = 0; i < cells.size(); ++i) {
    CellNights& cell = cells[i];
    first[i] = cell.nights.size();
    if (uniform_(random_) < noise_.lost) continue;
    // The earlier nights that were undisturbed.
    std::vector<size_t> places;
    for (size_t night = 0; night < cell.nights.size(); ++night) {
      if (!cell.disturbed[night]) places.push_back(night);
    }
    AddNight(cell, changes[i]);
    const std::vector<double>& tonight = cell.nights.back();
    const bool is_disturbed = cell.disturbed.back();
    std::vector<double> history;
    std::vector<double> means;
    std::vector<double> before;
    std::vector<double> window;
    const size_t begin = places[places.size() - std::min(places.size(), regress::kWindowNights - 1)];
    std::vector<size_t> of_window;
    for (const size_t night : places) {
      if (night >= begin) of_window.push_back(night);
      if (night >= begin) window.push_back(MedianNight(cell.nights[night]));
      if (cell.open[night] || cell.worse[night]) continue;
      history.insert(history.end(), cell.nights[night].begin(), cell.nights[night].end());
      means.push_back(MeanNight(cell.nights[night]));
      if (night < begin) before.push_back(MedianNight(cell.nights[night]));
    }
    of_window.push_back(first[i]);
    window.push_back(MedianNight(tonight));
    const auto baseline = regress::RollingBaseline(history, means);
    if (baseline) {
      faint[i] = regress::Screen(tonight, *baseline).faint;
      const regress::Screening screening = regress::Screen(tonight, *baseline);
      if (screening.suspect) ends[i] = End::kOpen;
      cell.acceptable = screening.change + regress::kAcceptedErrors * screening.error;
    }
    bool is_red = baseline && !is_disturbed && regress::IsLarge(tonight, *baseline);
    if (baseline && pinned && !is_disturbed) {
      const regress::Baseline release = regress::PinnedBaseline(cell.nights[0], *baseline);
      is_red |= regress::Screen(tonight, release).suspect && std::ranges::all_of(of_window, [&](size_t night) {
                  return regress::Screen(cell.nights[night], release).suspect;
                });
    }
    if (is_red) ends[i] = End::kRed;
    const auto nights = regress::JudgeNights(before, window);
    if (nights && !is_disturbed) {
      judged.push_back(i);
      chances.push_back(nights->slower ? nights->chance : 1);
      if (nights->slower) first[i] = of_window[nights->first];
      cell.acceptable = std::max(cell.acceptable, nights->change);
    }
  }
  const std::vector<bool> found = regress::Discoveries(chances, regress::kNightsRate);
  for (size_t j = 0; j < judged.size(); ++j) {
    if (found[j] && chances[j] < 1) {
      ends[judged[j]] = End::kRed;
    } else if (ends[judged[j]] != End::kRed) {
      first[judged[j]] = cells[judged[j]].nights.size() - 1;
    }
  }
  if (has_turns_) {
    std::vector<double> of_turns;
    std::vector<size_t> suspects;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_faint = ends[i] == End::kPass;
      if (is_faint && !faint[i]) continue;
      const regress::Judgement judgement = InTurns(changes[i], cells[i].base_shift, is_faint);
      cells[i].acceptable_in_turns = judgement.high;
      suspects.push_back(i);
      of_turns.push_back(judgement.decision == regress::Decision::kRegressed ? judgement.chance : 1);
      if (judgement.decision == regress::Decision::kPass) ends[i] = End::kPass;
      if (judgement.decision == regress::Decision::kRegressed && is_faint) ends[i] = End::kOpen;
    }
    const std::vector<bool> regressed = regress::Discoveries(of_turns, regress::kTurnsRate);
    for (size_t j = 0; j < suspects.size(); ++j) {
      if (regressed[j] && of_turns[j] < 1) ends[suspects[j]] = End::kRed;
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    CellNights& cell = cells[i];
    if (ends[i] == End::kPass) std::fill(cell.open.begin(), cell.open.end(), false);
    if (ends[i] == End::kOpen) cell.open.back() = true;
    cell.first = std::min(first[i], cell.nights.size() - 1);
    if (ends[i] != End::kRed) continue;
    for (size_t night = std::min(first[i], cell.nights.size() - 1); night < cell.nights.size(); ++night) {
      cell.worse[night] = true;
    }
  }
  return ends;
}

NightRates NightSimulation::Quiet(int64_t nights) {
  std::vector<CellNights> cells;
  while (cells.size() < kCells) cells.push_back(NewCell());
  const std::vector<double> changes(kCells);
  NightRates rates;
  rates.nights = nights;
  runs_in_turns_ = 0;
  for (int64_t night = 0; night < nights; ++night) {
    const std::vector<End> ends = Tonight(cells, changes);
    const bool is_red = std::find(ends.begin(), ends.end(), End::kRed) != ends.end();
    rates.red += is_red ? 1 : 0;
    rates.inconclusive += !is_red && std::find(ends.begin(), ends.end(), End::kOpen) != ends.end() ? 1 : 0;
  }
  rates.runs_in_turns = runs_in_turns_;
  return rates;
}

void NightSimulation::Accept(CellNights& cell) {
  // Consecutive worse nights are one change.
  while (cell.first > 0 && (cell.worse[cell.first - 1] || cell.open[cell.first - 1])) --cell.first;
  for (size_t night = 0; night < cell.nights.size(); ++night) {
    if (night >= cell.first) {
      cell.worse[night] = cell.open[night] = false;
      continue;
    }
    for (double& run : cell.nights[night]) run += cell.acceptable;
  }
  cell.base_shift += cell.acceptable_in_turns;
}

AcceptedRates NightSimulation::Accepted(int64_t times) {
  constexpr double kAccepted = 0.05;
  constexpr double kFurther = 0.03;
  constexpr int kQuiet = 20;
  AcceptedRates rates;
  for (int64_t time = 0; time < times; ++time) {
    std::vector<CellNights> cells;
    while (cells.size() < kCells) cells.push_back(NewCell());
    std::vector<double> changes(kCells);
    changes[0] = std::log1p(kAccepted);
    bool is_red = false;
    for (int night = 0; night < 2 * kQuiet && !is_red; ++night) is_red = Tonight(cells, changes)[0] == End::kRed;
    if (!is_red) continue;
    Accept(cells[0]);
    for (int night = 0; night < kQuiet; ++night, ++rates.nights) {
      rates.red += Tonight(cells, changes)[0] == End::kRed ? 1 : 0;
    }
    changes[0] += std::log1p(kFurther);
    ++rates.cells;
    bool found = false;
    for (size_t night = 0; night < regress::kWindowNights && !found; ++night) {
      found = Tonight(cells, changes)[0] == End::kRed;
      rates.first_night += found && night == 0 ? 1 : 0;
    }
    rates.six_nights += found ? 1 : 0;
  }
  return rates;
}

SlowdownRates NightSimulation::Slowdown(int64_t times, double change) {
  SlowdownRates rates;
  rates.cells = times;
  for (int64_t time = 0; time < times; ++time) {
    std::vector<CellNights> cells;
    while (cells.size() < kCells) cells.push_back(NewCell());
    std::vector<double> changes(kCells);
    changes[0] = change;
    bool found = false;
    for (size_t night = 0; night < regress::kWindowNights && !found; ++night) {
      found = Tonight(cells, changes)[0] == End::kRed;
      rates.first_night += found && night == 0 ? 1 : 0;
    }
    rates.six_nights += found ? 1 : 0;
  }
  return rates;
}

int64_t NightSimulation::Creep(int64_t count, double a_night, int nights, bool pinned) {
  std::vector<CellNights> cells;
  while (std::ssize(cells) < count) cells.push_back(NewCell());
  std::vector<bool> found(cells.size());
  for (int night = 1; night <= nights; ++night) {
    const std::vector<End> ends = Tonight(cells, std::vector<double>(cells.size(), a_night * night), pinned);
    for (size_t i = 0; i < cells.size(); ++i) found[i] = found[i] || ends[i] == End::kRed;
  }
  return std::count(found.begin(), found.end(), true);
}

}  // namespace ridgeline::testing
