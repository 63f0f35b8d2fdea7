// The verdict on a suspect that was measured again: base and head in turns on one node, in the order base, head, head,
// base, which cancels a constant drift. Neighbours are a pair, and the pairs' differences are judged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "regress/nightly.h"

namespace ridgeline::regress {

// Figures of two runs: logarithms of median steady step times.
struct RunPair {
  double base = 0;
  double head = 0;
};

// Pairs that are measured before they are judged: three times base, head, head, base. A night has two such rounds, and
// a third if those leave it open.
inline constexpr size_t kPairsOfRound = 6;

enum class Decision { kPass, kRegressed, kInconclusive };
std::string_view DecisionName(Decision decision);  // "PASS", "REGRESSED", "INCONCLUSIVE"

struct Judgement {
  Decision decision = Decision::kInconclusive;
  // Over all pairs, change of the logarithm: above 0 is slower.
  double change = 0;
  double low = 0;  // the 95 % interval, by Student's t; infinite with fewer than two pairs
  double high = 0;
  double detectable = 0;  // the smallest slowdown that would be detected in 80 of 100 cases (Bloom, 1995)
  double chance = 1;      // chance of such a change or more if there is none: one-sided p
  // For an inconclusive judgement: the further runs that would decide if they vary like these. kMostRuns stands for
  // that many or more.
  int64_t further_runs = 0;
};

inline constexpr int64_t kMostRuns = 1000;

// PASS if the interval ends below the tolerance. REGRESSED if two rounds, each by itself, and all of them together have
// an interval above 0 and a change beyond the tolerance. INCONCLUSIVE if neither holds, or both.
Judgement Judge(std::span<const std::vector<RunPair>> rounds, double tolerance = kTolerance);

// Whether another round is worth its runs: the judgement is open and, if the night's change was faint, still slower
// than the tolerance.
bool MeasuresOn(const Judgement& judgement, bool is_faint, double tolerance = kTolerance);

// The share of nights in which turns may find a regression by accident, however many suspects they have.
inline constexpr double kTurnsRate = 0.005;

// Which of these chances, one for each suspect cell and metric, are no accident. At most the share `rate` of those
// selected are accidents (Benjamini and Hochberg, 1995). Other runs selected the suspects than those behind the
// chances, so cells that were no suspects do not count (Bourgon, Gentleman and Huber, 2010).
std::vector<bool> Discoveries(std::span<const double> chances, double rate);

}  // namespace ridgeline::regress
