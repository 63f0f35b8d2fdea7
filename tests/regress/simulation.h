// Nights of a noisy machine: runs made step by step, screened and measured again as the gate does it.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "regress/verdict.h"

namespace ridgeline::testing {

struct MachineNoise {
  double between_runs = 0.01;   // standard deviation of the part that a run's steps share, of the logarithm
  double steps = 0.01;          // and of a single step
  double neighbours = 0.6;      // correlation of a step with the one before it
  double drift_of_nights = 0;   // how far the machine drifts over 60 nights, and back
  double drift_of_session = 0;  // how much slower a session's last run is than its first
  double bursts = 0;            // share of runs in which something slows a sixth of the steps by half
  double disturbed_runs = 0;    // share of runs that something slows by 5 % throughout
};

// How a night ended for one cell.
struct CellNight {
  std::array<double, 3> runs = {};  // the night's own runs
  bool suspect = false;
  bool faint = false;
  regress::Decision decision = regress::Decision::kPass;
  double chance = 1;
};

struct NightCounts {
  int64_t nights = 0;
  int64_t red = 0;           // nights with a regression
  int64_t inconclusive = 0;  // other nights, with an inconclusive cell
  int64_t suspects = 0;      // suspect cells
};

class MachineSimulation {
 public:
  MachineSimulation(const MachineNoise& noise, uint64_t seed) : noise_(noise), random_(seed) {}

  // Nights of 100 cells that never change.
  NightCounts CountRedNights(int64_t nights);

  // The number of `cases` cells with 20 runs of history that are found to have regressed in the night in which they
  // take e^change as long.
  int64_t CountFound(int64_t cases, double change);

  // The figure of one run at this level, at a share of its session.
  double Run(double level, double of_session = 0);

 private:
  std::vector<double> NewHistory();
  CellNight Night(const std::vector<double>& history, double level, double change);

  MachineNoise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<double> steps_;
};

}  // namespace ridgeline::testing
