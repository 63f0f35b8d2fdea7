// Suspects that were measured again, base and head in turns on one node (regress/verdict.h), and the gate's decision on
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regress/gate.h"
#include "regress/measurements.h"
#include "regress/verdict.h"

namespace ridgeline::regress {

inline constexpr size_t kMostRounds = 3;

// A cell with at least one suspect finding, and the rounds that were measured of it.
struct SuspectCell {
  std::string point_id;
  std::string spec;
  std::string setup;
  std::vector<std::vector<RunPair>> step_times;    // logarithms of step times
  std::vector<std::vector<RunPair>> device_peaks;  // the same for the accelerator's memory, if it was measured
  std::vector<std::vector<RunPair>> rss_peaks;     // and for the process's memory
  int64_t pairs = 0;                               // pairs that were to be measured
  int64_t whole_pairs = 0;                         // pairs of which both gave a result, or failed by themselves
  int64_t base_failures = 0;
  int64_t head_failures = 0;
  std::string base_build;  // the build that was measured; empty: unknown
};

std::vector<SuspectCell> SuspectsOf(const Gate& gate);

// One run each of base and head, one after the other; nothing for a run without a result.
using RunsInTurn = std::pair<std::optional<MeasuredRuns>, std::optional<MeasuredRuns>>;

// Adds the pair to the cell's last round. Runs on two nodes are no pair.
void AddPair(const RunsInTurn& runs, SuspectCell& cell);

// Measures rounds of the cells until each of their findings is decided, three at most. `measure` gets the number of the
// round, the number of the pair in it, whether base goes first, and the cells that are still open. It returns the pair
// of each of them, or nothing if it was interrupted. Then this returns false.
using PairMeasurer = std::function<std::optional<std::vector<RunsInTurn>>(size_t round, size_t pair, bool base_first,
                                                                          std::span<SuspectCell* const> cells)>;
bool MeasureInTurns(const Gate& gate, std::vector<SuspectCell>& cells, const PairMeasurer& measure);

// Decides the gate's suspects by the rounds. As many of them as chance alone would produce are no regressions
// (Benjamini and Hochberg, over cells and metrics).
void Confirm(Gate& gate, std::span<const SuspectCell> cells);

}  // namespace ridgeline::regress
