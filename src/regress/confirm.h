// Suspects that were measured again: base and head in turns on one node (regress/verdict.h), and what the gate makes of
// it.
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

namespace ridgeline {

inline constexpr size_t kMostRounds = 3;

// A cell of which some finding is a suspect, with the rounds that were measured of it.
struct SuspectCell {
  std::string point_id;
  std::string spec;
  std::string setup;
  std::vector<std::vector<RunPair>> step_times;    // of logarithms
  std::vector<std::vector<RunPair>> device_peaks;  // the same of the accelerator's memory, where it was taken
  std::vector<std::vector<RunPair>> rss_peaks;     // and of the process's
  int64_t pairs = 0;                               // that were to be measured
  int64_t whole_pairs = 0;                         // of which both gave a result, or failed by themselves
  int64_t base_failures = 0;
  int64_t head_failures = 0;
  std::string base_build;  // that was measured; empty: nothing says which it is
};

std::vector<SuspectCell> SuspectsOf(const Gate& gate);

// One run each of base and head, one after the other; nothing of one that gave no result.
using RunsInTurn = std::pair<std::optional<MeasuredRuns>, std::optional<MeasuredRuns>>;

// Adds it to the cell's last round. What ran on two nodes is no pair.
void AddPair(const RunsInTurn& runs, SuspectCell& cell);

// Measures rounds of the cells until each of their findings is decided, three at most. `measure` gets the number of the
// round, that of the pair in it, whether base goes first, and the cells that are still open, of each of which it
// returns the pair; nothing where it was interrupted, and then this is false.
using PairMeasurer = std::function<std::optional<std::vector<RunsInTurn>>(size_t round, size_t pair, bool base_first,
                                                                          std::span<SuspectCell* const> cells)>;
bool MeasureInTurns(const Gate& gate, std::vector<SuspectCell>& cells, const PairMeasurer& measure);

// What the rounds decide of the gate's suspects, of which as many as chance alone would make are no regressions
// (Benjamini and Hochberg, over cells and metrics).
void Confirm(Gate& gate, std::span<const SuspectCell> cells);

}  // namespace ridgeline
