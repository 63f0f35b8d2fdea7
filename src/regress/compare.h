// Two sides' measurements, point by point: what differs between base and head, and how sure that is. It describes; a
// verdict takes runs in turns (regress/verdict.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/table.h"

namespace ridgeline {

class Store;

// Which of a store's measurements are a side: those of a campaign, those by builds of a commit (as the results say it,
// whole), else the newest of each point and setup.
struct SideChoice {
  std::string campaign;
  std::string commit;
};

// What a side has of one point with one setup, on machines of one fingerprint.
struct SideCell {
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;                 // the fingerprint; empty where a failure says none
  std::string failure;                 // of the newest measurement, in words; empty where it went well
  std::vector<double> log_step_times;  // natural logarithm of each run's median steady step, in nanoseconds
  int64_t device_peak_bytes = 0;       // the largest of its runs; 0: not taken
  int64_t rss_peak_bytes = 0;
  std::string device_peak_kind;  // of the newest measurement: what device_peak_bytes counts
  int64_t device_reserved_bytes = 0;
  std::string note;  // of the newest: what there is to say beside its figures
};

// The side's cells, in the order in which their points came into the store. What ended for want of infrastructure, or
// was cancelled, is no measurement. Throws Error(kInvalidInput) where step times in the store are none.
std::vector<SideCell> ReadSide(Store& store, const SideChoice& choice);

struct ComparedCell {
  std::optional<SideCell> base;
  std::optional<SideCell> head;

  const SideCell& either() const { return base ? *base : *head; }
};

// In the order of base, then of head. The cells that are alike in point, setup and fingerprint, and those of one side
// alone. A failure without a fingerprint is compared with what the other side has on any.
std::vector<ComparedCell> MatchSides(std::span<const SideCell> base, std::span<const SideCell> head);

// How a cell's step takes longer in head than in base, as the ratio of the geometric means over runs, with its interval
// of 95 % where both sides have several, and enough that it is no wider than half to twice (Welch, 1947). Nothing where
// a side has no run.
struct StepRatio {
  double base_step_ns = 0;
  double head_step_ns = 0;
  double ratio = 1;
  std::optional<double> low;
  std::optional<double> high;
};
std::optional<StepRatio> RatioOf(const ComparedCell& cell);

// A row a cell. `point`: the fields in which the cells' points differ; `step_time` and `memory` say in words what
// became of them, such as "slower", "one run each: no interval", "fails now: out of memory" or "missing in head". The
// other columns are figures with their units in their names, and what the cell is.
Table ComparisonTable(std::span<const ComparedCell> cells);

// The same for people: fewer columns, figures rounded.
Table ShortComparisonTable(std::span<const ComparedCell> cells);

}  // namespace ridgeline
