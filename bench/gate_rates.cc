// How often the nightly rule is wrong, and how soon it finds a slowdown, by kinds of noise: all figures of
// docs/gate.md's section on it.
//
//   gate_rates [TIMES]    TIMES: nights, and slowdowns, that each row is of (default 1000, 200)
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/regress/night_simulation.h"

namespace {

using ridgeline::testing::NightNoise;
using ridgeline::testing::NightSimulation;

double Percent(int64_t part, int64_t whole) { return 100 * static_cast<double>(part) / static_cast<double>(whole); }

}  // namespace

int main(int argc, char** argv) {
  const int64_t nights = argc > 1 ? std::atoll(argv[1]) : 1000;
  const int64_t slowdowns = argc > 1 ? std::max(1LL, std::atoll(argv[1]) / 5) : 200;
  struct Case {
    const char* name;
    NightNoise noise;
  };
  const std::array<Case, 9> cases = {
      Case{"runs 0.4 %", {.runs = 0.004}},
      {"runs 1 %", {}},
      {"runs 1 %, nights 1 %", {.nights = 0.01}},
      {"runs 1 %, four nodes 1 %", {.nodes = 0.01}},
      {"runs 1 %, 2 % of runs disturbed by 5 %", {.disturbed = 0.02}},
      {"runs 1 %, 2 % of nights disturbed by 20 %", {.disturbed_nights = 0.02}},
      {"the same, seen in `others_share`", {.disturbed_nights = 0.02, .is_seen = true}},
      {"runs 0.4 %, a third at a clock 4 % slower", {.runs = 0.004, .slow_clock = 1.0 / 3}},
      {"runs 1 %, 1 % of results lost", {.lost = 0.01}}};
  fmt::print("{} quiet nights and {} slowdowns in each row, of 100 points with 3 runs a night:\n\n", nights, slowdowns);
  fmt::print(
      "| noise | turns | red | inconclusive | runs in turns, a night | 3 % found, first night | by the sixth |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const Case& each : cases) {
    for (const bool turns : {false, true}) {
      const auto quiet = NightSimulation(each.noise, turns, 1).Quiet(nights);
      const auto slow = NightSimulation(each.noise, turns, 2).Slowdown(slowdowns, std::log(1.03));
      fmt::print(
          "| {} | {} | {:.1f} % | {:.0f} % | {} | {:.0f} % | {:.0f} % |\n", each.name, turns ? "yes" : "no",
          Percent(quiet.red, quiet.nights), Percent(quiet.inconclusive, quiet.nights),
          turns ? fmt::format("{:.0f}", static_cast<double>(quiet.runs_in_turns) / static_cast<double>(nights)) : "",
          Percent(slow.first_night, slow.cells), Percent(slow.six_nights, slow.cells));
      std::fflush(stdout);
    }
  }
  fmt::print("\n{} accepted changes in each row, each held to 20 nights after it:\n\n",
             std::max(int64_t{1}, slowdowns / 2));
  fmt::print("| 5 % accepted; noise | turns | red of its nights | 3 % more found, first night | by the sixth |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const Case& each : cases) {
    for (const bool turns : {false, true}) {
      const auto rates = NightSimulation(each.noise, turns, 4).Accepted(std::max(int64_t{1}, slowdowns / 2));
      fmt::print("| {} | {} | {:.1f} % | {:.0f} % | {:.0f} % |\n", each.name, turns ? "yes" : "no",
                 Percent(rates.red, rates.nights), Percent(rates.first_night, rates.cells),
                 Percent(rates.six_nights, rates.cells));
      std::fflush(stdout);
    }
  }
  constexpr int64_t kCells = 200;
  constexpr int kNights = 60;
  for (const bool pinned : {false, true}) {
    fmt::print("{}creep of 0.05 % a night, {} nights, runs 1 %, {}: found in {:.0f} % of {} points\n",
               pinned ? "" : "\n", kNights, pinned ? "pinned" : "rolling alone",
               Percent(NightSimulation({}, false, 3).Creep(kCells, 0.0005, kNights, pinned), kCells), kCells);
  }
}
