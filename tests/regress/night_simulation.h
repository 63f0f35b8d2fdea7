// Nights of many cells, one after another, held to the nights before as `ridgeline nightly` does it: with turns where
// an older build is at hand, else by the nights alone. bench/gate_rates.cc prints what comes of it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "regress/verdict.h"

namespace ridgeline::testing {

// How runs differ, of the logarithm.
struct NightNoise {
  double runs = 0.01;           // standard deviation of a run
  double nights = 0;            // of what all runs of a cell's night share: a boot, its memory's layout
  double nodes = 0;             // of what a node adds, on one of four of which each night's cell is run
  double disturbed = 0;         // the share of runs that something slows by 5 %
  double disturbed_nights = 0;  // the share of cells' nights that something slows by 20 % from end to end
  bool is_seen = false;         // others_share says which runs were disturbed
  double slow_clock = 0;        // the share of runs at the lower of two clocks, 4 % slower
  double lost = 0;              // the share of cells' nights without a result
};

struct NightRates {
  int64_t nights = 0;
  int64_t red = 0;           // nights with a regression
  int64_t inconclusive = 0;  // of the others, nights with a suspect
  int64_t runs_in_turns = 0;
};

struct SlowdownRates {
  int64_t cells = 0;
  int64_t first_night = 0;  // of the cells, found in the night it came
  int64_t six_nights = 0;   // and by the sixth
};

struct AcceptedRates {
  int64_t nights = 0;  // of the cells whose change was accepted, nothing further has changed
  int64_t red = 0;
  int64_t cells = 0;  // of those that got slower by 3 % more
  int64_t first_night = 0;
  int64_t six_nights = 0;
};

class NightSimulation {
 public:
  NightSimulation(const NightNoise& noise, bool has_turns, uint64_t seed)
      : noise_(noise), has_turns_(has_turns), random_(seed) {}

  // Nights of 100 cells of which none changes, after 20 that made the baselines.
  NightRates Quiet(int64_t nights);

  // `times` over: one of 100 cells takes e^change as long from a night on, after 20 that made the baselines.
  SlowdownRates Slowdown(int64_t times, double change);

  // `times` over: one of 100 cells is slower by 5 % until a night is red, which is accepted. It stays so for 20 nights,
  // then gets slower by 3 % more. The base build of the turns stays the one without either.
  AcceptedRates Accepted(int64_t times);

  // Of so many cells that get slower by this much every night, how many are found by then; `pinned`: held to the first
  // night, too.
  int64_t Creep(int64_t cells, double a_night, int nights, bool pinned);

 private:
  struct CellNights {
    std::vector<std::vector<double>> nights;
    std::vector<bool> disturbed;  // and seen to be
    std::vector<bool> open;       // a suspect that no later night has passed
    std::vector<bool> worse;      // regressed
    std::vector<double> nodes;    // what each of four nodes adds
    // What accepting tonight would take off: of the baseline, of the base build, from which night on.
    double acceptable = 0;
    double acceptable_in_turns = 0;
    size_t first = 0;
    double base_shift = 0;  // what was accepted, on the base build
  };
  enum class End { kPass, kOpen, kRed };

  double Run(double level, bool* disturbed = nullptr);
  void AddNight(CellNights& cell, double change);
  CellNights NewCell(int nights = 20);
  // What comes of tonight, of each cell with the change it has.
  std::vector<End> Tonight(std::vector<CellNights>& cells, const std::vector<double>& changes, bool pinned = false);
  Judgement InTurns(double change, double base, bool is_faint);
  static void Accept(CellNights& cell);

  NightNoise noise_;
  bool has_turns_;
  int64_t runs_in_turns_ = 0;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

}  // namespace ridgeline::testing
