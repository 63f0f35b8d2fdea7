#include "regress/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/measurements.h"
#include "regress/nightly.h"
#include "regress/point_names.h"
#include "stats/median.h"

namespace ridgeline::regress {
namespace {

void AddMeasurement(const MeasuredRuns& runs, SideCell& cell) {
  cell.failure = runs.failure;
  cell.log_step_times.insert(cell.log_step_times.end(), runs.log_step_times.begin(), runs.log_step_times.end());
  cell.note = runs.note;
  // Compares like with like: figures that count something else follow an older definition.
  if (runs.device_peak_bytes > 0 && runs.device_peak_kind != cell.device_peak_kind) cell.device_peak_bytes = 0;
  if (runs.device_peak_bytes > 0) cell.device_peak_kind = runs.device_peak_kind;
  cell.device_peak_bytes = std::max(cell.device_peak_bytes, runs.device_peak_bytes);
  cell.device_reserved_bytes = std::max(cell.device_reserved_bytes, runs.device_reserved_bytes);
  cell.rss_peak_bytes = std::max(cell.rss_peak_bytes, runs.rss_peak_bytes);
}

using WhatIsMeasured = std::pair<std::string, std::string>;  // a point's id and its setup
using ByMachine = std::map<std::string, const SideCell*>;

std::map<WhatIsMeasured, ByMachine> ByWhatIsMeasured(std::span<const SideCell> cells) {
  std::map<WhatIsMeasured, ByMachine> all;
  for (const SideCell& cell : cells) all[{cell.point_id, cell.setup}][cell.machine] = &cell;
  return all;
}

// The machines of both sides. A cell that names no machine is on each of the others, if there are any.
std::set<std::string> MachinesOf(const ByMachine& base, const ByMachine& head) {
  std::set<std::string> machines;
  for (const ByMachine* side : {&base, &head}) {
    for (const auto& [machine, cell] : *side) machines.insert(machine);
  }
  if (machines.size() > 1) machines.erase("");
  return machines;
}

// The cell on the machine, or one that names no machine.
std::optional<SideCell> On(const std::string& machine, const ByMachine& cells) {
  for (const std::string& name : {machine, std::string()}) {
    if (const auto it = cells.find(name); it != cells.end()) return *it->second;
  }
  return std::nullopt;
}

// An interval wider than from half to twice a ratio says nothing about two builds. With two runs per side it may span a
// factor of a hundred.
constexpr double kWidest = 2;

// On the scale of logarithms: a side's mean over its runs, of which there are at least two.
stats::Estimate MeanOfRuns(const std::vector<double>& logs) {
  const auto runs = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / runs;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  return {std::exp(mean), logs.size() > 1 ? std::sqrt(squares / (runs - 1) / runs) : 0, std::max(1.0, runs - 1)};
}

std::string WithoutInterval(const ComparedCell& cell) {
  const size_t base = cell.base->log_step_times.size();
  const size_t head = cell.head->log_step_times.size();
  if (base == 1 && head == 1) return "one run each: no interval";
  if (base > 1 && head > 1) return fmt::format("too few runs for an interval: {} of base, {} of head", base, head);
  return fmt::format("one run of {}: no interval", base == 1 ? "base" : "head");
}

std::string StepTimeWords(const ComparedCell& cell, const std::optional<StepRatio>& ratio) {
  if (!cell.head) return "missing in head";
  if (!cell.base) return "missing in base";
  const std::string& before = cell.base->failure;
  const std::string& now = cell.head->failure;
  if (!before.empty() && !now.empty()) return "fails in both: " + now;
  if (!now.empty()) return "fails now: " + now;
  if (!before.empty()) return "failed in base: " + before;
  if (!ratio) return "no step times";
  if (!ratio->low) return WithoutInterval(cell);
  return *ratio->low > 1 ? "slower" : *ratio->high < 1 ? "faster" : "no difference shown";
}

// The accelerator's peaks if both sides measured the same kind, else the process's; zeros if neither did.
LikePeaks PeaksOf(const ComparedCell& cell) {
  if (!cell.base || !cell.head) return {};
  return LikePeaksOf(*cell.base, *cell.head).value_or(LikePeaks());
}

std::string MemoryWords(const LikePeaks& peaks) {
  if (peaks.base == 0) return "";
  return MemoryGrew(peaks.base, peaks.head) ? "more" : MemoryGrew(peaks.head, peaks.base) ? "less" : "the same";
}

// "base: steps 4 of 103"
std::string NotesOf(const ComparedCell& cell) {
  std::string notes;
  for (const auto& [name, side] : {std::pair("base", &cell.base), std::pair("head", &cell.head)}) {
    if (!*side || (*side)->note.empty()) continue;
    notes += fmt::format("{}{}: {}", notes.empty() ? "" : "; ", name, (*side)->note);
  }
  return notes;
}

Cell Given(const std::optional<double>& number) { return number ? Cell(*number) : Cell(); }

Cell Taken(int64_t bytes) { return bytes > 0 ? Cell(bytes) : Cell(); }

std::vector<std::string> NamesOf(std::span<const ComparedCell> cells) {
  std::vector<std::string> specs;
  for (const ComparedCell& cell : cells) specs.push_back(cell.either().spec);
  return PointNames(specs);
}

// A failure that is compared may name no machine.
const std::string& MachineOfCell(const ComparedCell& cell) {
  return cell.base && !cell.base->machine.empty() ? cell.base->machine
         : cell.head                              ? cell.head->machine
                                                  : cell.base->machine;
}

std::string RatioText(const StepRatio& ratio) {
  if (!ratio.low) return fmt::format("{:.3f}", ratio.ratio);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", ratio.ratio, *ratio.low, *ratio.high);
}

}  // namespace

std::vector<SideCell> ReadSide(store::Store& store, const SideChoice& choice) {
  MeasurementChoice measurements;
  measurements.campaign = choice.campaign;
  measurements.commit = choice.commit;
  measurements.newest = choice.campaign.empty() && choice.commit.empty();
  std::vector<SideCell> cells;
  for (MeasuredCell& measured : ReadMeasurements(store, measurements)) {
    SideCell cell;
    cell.point_id = std::move(measured.point_id);
    cell.spec = std::move(measured.spec);
    cell.setup = std::move(measured.setup);
    cell.machine = std::move(measured.machine);
    for (const MeasuredRuns& runs : measured.measurements) AddMeasurement(runs, cell);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<ComparedCell> MatchSides(std::span<const SideCell> base, std::span<const SideCell> head) {
  auto bases = ByWhatIsMeasured(base);
  auto heads = ByWhatIsMeasured(head);
  std::set<WhatIsMeasured> seen;
  std::vector<ComparedCell> compared;
  for (const auto& side : {base, head}) {
    for (const SideCell& cell : side) {
      const WhatIsMeasured what = {cell.point_id, cell.setup};
      if (!seen.insert(what).second) continue;
      for (const std::string& machine : MachinesOf(bases[what], heads[what])) {
        compared.push_back({On(machine, bases[what]), On(machine, heads[what])});
      }
    }
  }
  return compared;
}

std::optional<StepRatio> RatioOf(const ComparedCell& cell) {
  if (!cell.base || !cell.head || !cell.base->failure.empty() || !cell.head->failure.empty()) return std::nullopt;
  const std::vector<double>& base_runs = cell.base->log_step_times;
  const std::vector<double>& head_runs = cell.head->log_step_times;
  if (base_runs.empty() || head_runs.empty()) return std::nullopt;
  const stats::Estimate base = MeanOfRuns(base_runs);
  const stats::Estimate head = MeanOfRuns(head_runs);
  const stats::Estimate estimate = stats::Ratio(head, base);
  StepRatio ratio{base.value, head.value, estimate.value, std::nullopt, std::nullopt};
  const double factor = stats::Factor(estimate);
  if (base_runs.size() > 1 && head_runs.size() > 1 && factor <= kWidest) {
    ratio.low = estimate.value / factor;
    ratio.high = estimate.value * factor;
  }
  return ratio;
}

Table ComparisonTable(std::span<const ComparedCell> cells) {
  Table table{{"point", "step_time", "ratio", "ratio_low", "ratio_high", "base_step_ns", "head_step_ns", "base_runs",
               "head_runs", "memory", "base_peak_bytes", "head_peak_bytes", "point_id", "setup", "machine", "memory_of",
               "note"},
              {}};
  const std::vector<std::string> names = NamesOf(cells);
  const auto runs = [](const std::optional<SideCell>& side) {
    return side ? Cell(std::ssize(side->log_step_times)) : Cell();
  };
  for (size_t i = 0; i < cells.size(); ++i) {
    const ComparedCell& cell = cells[i];
    const auto ratio = RatioOf(cell);
    const auto peaks = PeaksOf(cell);
    const auto figure = [&](double StepRatio::*member) { return ratio ? Cell((*ratio).*member) : Cell(); };
    table.rows.push_back({names[i], StepTimeWords(cell, ratio), figure(&StepRatio::ratio),
                          Given(ratio ? ratio->low : std::nullopt), Given(ratio ? ratio->high : std::nullopt),
                          figure(&StepRatio::base_step_ns), figure(&StepRatio::head_step_ns), runs(cell.base),
                          runs(cell.head), MemoryWords(peaks), Taken(peaks.base), Taken(peaks.head),
                          cell.either().point_id, cell.either().setup, MachineOfCell(cell), peaks.of, NotesOf(cell)});
  }
  return table;
}

Table ShortComparisonTable(std::span<const ComparedCell> cells) {
  Table table{{"point", "base", "head", "head / base", "step time", "base peak", "head peak", "memory"}, {}};
  const std::vector<std::string> names = NamesOf(cells);
  std::set<std::string> machines;
  std::set<std::string> setups;
  for (const ComparedCell& cell : cells) {
    machines.insert(MachineOfCell(cell));
    setups.insert(cell.either().setup);
  }
  if (setups.size() > 1) table.columns.emplace_back("setup");
  if (machines.size() > 1) table.columns.emplace_back("machine");
  const bool any_note =
      std::any_of(cells.begin(), cells.end(), [](const ComparedCell& cell) { return !NotesOf(cell).empty(); });
  if (any_note) table.columns.emplace_back("note");
  for (size_t i = 0; i < cells.size(); ++i) {
    const ComparedCell& cell = cells[i];
    const auto ratio = RatioOf(cell);
    const LikePeaks peaks = PeaksOf(cell);
    const auto duration = [&](double StepRatio::*ns) {
      return ratio ? FormatDuration(std::llround((*ratio).*ns)) : std::string();
    };
    const auto bytes = [](int64_t peak) { return peak > 0 ? FormatBytes(peak) : std::string(); };
    table.rows.push_back({names[i], duration(&StepRatio::base_step_ns), duration(&StepRatio::head_step_ns),
                          ratio ? RatioText(*ratio) : "", StepTimeWords(cell, ratio), bytes(peaks.base),
                          bytes(peaks.head),
                          MemoryWords(peaks) + (peaks.of.empty() ? "" : fmt::format(" ({})", peaks.of))});
    if (setups.size() > 1) table.rows.back().emplace_back(cell.either().setup);
    if (machines.size() > 1) table.rows.back().emplace_back(MachineOfCell(cell));
    if (any_note) table.rows.back().emplace_back(NotesOf(cell));
  }
  return table;
}

}  // namespace ridgeline::regress
