// Compares two sides' measurements point by point: what differs between base and head, and how certain that is. It
// describes; a verdict needs runs in turns (regress/verdict.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/table.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::regress {

// The measurements of a store that form a side: those of a campaign, those by builds of a commit (its full name, as in
// the results), else the newest of each point and setup.
struct SideChoice {
  std::string campaign;
  std::string commit;
};

// A side's measurements of one point with one setup, on machines of one fingerprint.
struct SideCell {
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;                 // the fingerprint; empty if a failure names none
  std::string failure;                 // the newest measurement's failure, in words; empty if it succeeded
  std::vector<double> log_step_times;  // natural logarithm of each run's median steady step, in nanoseconds
  int64_t device_peak_bytes = 0;       // the largest of its runs; 0: not taken
  int64_t rss_peak_bytes = 0;
  std::string device_peak_kind;  // what device_peak_bytes counts in the newest measurement
  int64_t device_reserved_bytes = 0;
  std::string note;  // the newest one's remarks beside its figures
};

// The side's cells, in the order in which their points came into the store. Runs that ended for infrastructure reasons
// or were cancelled are no measurements. Throws Error(kInvalidInput) if step times in the store are invalid.
std::vector<SideCell> ReadSide(store::Store& store, const SideChoice& choice);

struct ComparedCell {
  std::optional<SideCell> base;
  std::optional<SideCell> head;

  const SideCell& either() const { return base ? *base : *head; }
};

// Pairs the cells that agree in point, setup and fingerprint, and includes those of one side alone. In the order of
// base, then of head. A failure without a fingerprint is compared with the other side's cells on any machine.
std::vector<ComparedCell> MatchSides(std::span<const SideCell> base, std::span<const SideCell> head);

// How much longer a cell's step takes in head than in base: the ratio of the geometric means over runs. It has a 95 %
// interval if both sides have several runs, and enough that it is no wider than half to twice (Welch, 1947). Nothing if
// a side has no run.
struct StepRatio {
  double base_step_ns = 0;
  double head_step_ns = 0;
  double ratio = 1;
  std::optional<double> low;
  std::optional<double> high;
};
std::optional<StepRatio> RatioOf(const ComparedCell& cell);

// One row per cell. `point`: the fields in which the cells' points differ. `step_time` and `memory` describe the
// outcome in words, such as "slower", "one run each: no interval", "fails now: out of memory" or "missing in head". The
// other columns identify the cell, and have figures with their units in their names.
Table ComparisonTable(std::span<const ComparedCell> cells);

// The same for people, with fewer columns and rounded figures.
Table ShortComparisonTable(std::span<const ComparedCell> cells);

}  // namespace ridgeline::regress
