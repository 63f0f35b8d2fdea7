// The verdict on a suspect that was measured again: base and head in turns on one node, in the order base, head, head,
// base, which a drift that is even cancels in. Neighbours are a pair, and what is judged is the pairs' differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "regress/nightly.h"

namespace ridgeline {

// Runs' figures: logarithms of median steady step times.
struct RunPair {
  double base = 0;
  double head = 0;
};

// Pairs that are measured before they are judged: three times base, head, head, base. A night has two such rounds, and
// a third where those leave it open.
inline constexpr size_t kPairsOfRound = 6;

enum class Decision { kPass, kRegressed, kInconclusive };
std::string_view DecisionName(Decision decision);  // "PASS", "REGRESSED", "INCONCLUSIVE"

struct Judgement {
  Decision decision = Decision::kInconclusive;
  // Over all pairs, of the logarithm: above 0 is slower.
  double change = 0;
  double low = 0;  // the interval of 95 %, by Student's t; without end where there are fewer than two pairs
  double high = 0;
  double detectable = 0;     // the smallest slowdown that would be told from none in 80 of 100 cases (Bloom, 1995)
  double chance = 1;         // of such a change or more where there is none: one-sided p
  int64_t further_runs = 0;  // of an inconclusive one: so many would decide, varied they as these; kMostRuns or more
};

inline constexpr int64_t kMostRuns = 1000;

// PASS where the interval ends below the tolerance. REGRESSED where two rounds, each by itself, and all of them
// together have an interval above 0 and a change beyond the tolerance. INCONCLUSIVE where neither is so, or both were.
Judgement Judge(std::span<const std::vector<RunPair>> rounds, double tolerance = kTolerance);

// Whether another round is worth its runs: the judgement is open and, where the night's change was faint, still slower
// than the tolerance.
bool MeasuresOn(const Judgement& judgement, bool is_faint, double tolerance = kTolerance);

// Turns may find a regression by accident in this share of nights, however many suspects they have.
inline constexpr double kTurnsRate = 0.005;

// Which of these chances, one a suspect cell and metric, are no accident: at most the share `rate` of those that are
// said to be are (Benjamini and Hochberg, 1995). Suspects were chosen by other runs than those that their chances are
// of, so the cells that were no suspects are no part of it (Bourgon, Gentleman and Huber, 2010).
std::vector<bool> Discoveries(std::span<const double> chances, double rate);

}  // namespace ridgeline
