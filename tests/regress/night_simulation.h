// Consecutive nights of many cells, each compared with earlier nights as `ridgeline nightly` does it: with turns if an
// older build is available, else only by the nights. bench/gate_rates.cc prints the results.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "regress/verdict.h"

namespace ridgeline::testing {

// How the logarithms of runs vary.
struct NightNoise {
  double runs = 0.01;           // standard deviation of runs
  double nights = 0;            // of what all runs of a cell's night share: a boot, the memory layout
  double nodes = 0;             // of a node's part; each night's cell runs on one of four nodes
  double disturbed = 0;         // share of runs that something slows by 5 %
  double disturbed_nights = 0;  // share of cells' nights that something slows by 20 % throughout
  bool is_seen = false;         // others_share shows which runs were disturbed
  double slow_clock = 0;        // share of runs at the lower of two clocks, 4 % slower
  double lost = 0;              // share of cells' nights without a result
};

struct NightRates {
  int64_t nights = 0;
  int64_t red = 0;           // nights with a regression
  int64_t inconclusive = 0;  // other nights, with a suspect
  int64_t runs_in_turns = 0;
};

struct SlowdownRates {
  int64_t cells = 0;
  int64_t first_night = 0;  // cells found in the first night of the change
  int64_t six_nights = 0;   // cells found by the sixth night
};

struct AcceptedRates {
  int64_t nights = 0;  // nights of cells whose change was accepted and that have not changed again
  int64_t red = 0;
  int64_t cells = 0;  // cells found of those that then got slower by 3 % more
  int64_t first_night = 0;
  int64_t six_nights = 0;
};

class NightSimulation {
 public:
  NightSimulation(const NightNoise& noise, bool has_turns, uint64_t seed)
      : noise_(noise), has_turns_(has_turns), random_(seed) {}

  // Nights of 100 cells that never change, after 20 nights for the baselines.
  NightRates Quiet(int64_t nights);

  // Repeated `times` times: one of 100 cells takes e^change as long from a night on, after 20 nights for the baselines.
  SlowdownRates Slowdown(int64_t times, double change);

  // Repeated `times` times: one of 100 cells is slower by 5 % until a night is red, which is accepted. It stays so for
  // 20 nights, then gets slower by 3 % more. The turns' base build never has either change.
  AcceptedRates Accepted(int64_t times);

  // The number of these cells, each slower by this much every night, that are found by then. `pinned`: also compares
  // with the first night.
  int64_t Creep(int64_t cells, double a_night, int nights, bool pinned);

 private:
  struct CellNights {
    std::vector<std::vector<double>> nights;
    std::vector<bool> disturbed;  // disturbed, and known to be
    std::vector<bool> open;       // a suspect that no later night has cleared
    std::vector<bool> worse;      // regressed
    std::vector<double> nodes;    // the part of each of four nodes
    // What accepting tonight would subtract: from the baseline, from the base build, and from which night on.
    double acceptable = 0;
    double acceptable_in_turns = 0;
    size_t first = 0;
    double base_shift = 0;  // accepted changes relative to the base build
  };
  enum class End { kPass, kOpen, kRed };

  double Run(double level, bool* disturbed = nullptr);
  void AddNight(CellNights& cell, double change);
  CellNights NewCell(int nights = 20);
  // The outcome of tonight, for each cell with its change.
  std::vector<End> Tonight(std::vector<CellNights>& cells, const std::vector<double>& changes, bool pinned = false);
  regress::Judgement InTurns(double change, double base, bool is_faint);
  static void Accept(CellNights& cell);

  NightNoise noise_;
  bool has_turns_;
  int64_t runs_in_turns_ = 0;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

}  // namespace ridgeline::testing
