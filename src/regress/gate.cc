#include "regress/gate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "regress/accepted.h"
#include "regress/nightly.h"
#include "regress/point_names.h"
#include "regress/verdict.h"
#include "run/disturbance.h"
#include "stats/median.h"
#include "store/store.h"

namespace ridgeline::regress {
namespace {

using GatedPoint = std::pair<std::string, std::string>;  // a point's id and its setup
using CellsByPoint = std::map<GatedPoint, std::vector<const MeasuredCell*>>;

CellsByPoint ByPoint(std::span<const MeasuredCell> cells) {
  CellsByPoint all;
  for (const MeasuredCell& cell : cells) all[{cell.point_id, cell.setup}].push_back(&cell);
  return all;
}

// The measurements of one cell, oldest first.
using CellHistory = std::vector<const MeasuredRuns*>;

// The history on this machine; if that is unknown, on any.
CellHistory HistoryOf(const CellsByPoint& cells, const GatedPoint& point, const std::string& machine) {
  CellHistory history;
  const auto found = cells.find(point);
  if (found == cells.end()) return history;
  for (const MeasuredCell* cell : found->second) {
    if (!machine.empty() && cell->machine != machine) continue;
    for (const MeasuredRuns& runs : cell->measurements) history.push_back(&runs);
  }
  std::stable_sort(history.begin(), history.end(),
                   [](const auto* a, const auto* b) { return a->ended_unix_ns < b->ended_unix_ns; });
  return history;
}

std::vector<double> StepTimesOf(const CellHistory& history) {
  std::vector<double> times;
  for (const MeasuredRuns* runs : history) {
    times.insert(times.end(), runs->log_step_times.begin(), runs->log_step_times.end());
  }
  return times;
}

bool IsDisturbed(const MeasuredRuns* runs) { return runs->others_share > kDisturbingShare; }

bool HasResult(const CellHistory& history) {
  return std::any_of(history.begin(), history.end(), [](const auto* runs) { return runs->failure.empty(); });
}

double MeanOfLogs(const std::vector<double>& logs) {
  return std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
}

// A peak of memory, and what it counts.
struct PeakOf {
  int64_t MeasuredRuns::*bytes;
  std::string kind;  // what device_peak_bytes counts
  std::string of;
};

std::vector<double> PeaksIn(const CellHistory& history, const PeakOf& peak) {
  std::vector<double> peaks;
  for (const MeasuredRuns* runs : history) {
    const bool is_alike = peak.bytes != &MeasuredRuns::device_peak_bytes || runs->device_peak_kind == peak.kind;
    if (is_alike && runs->*peak.bytes > 0) peaks.push_back(static_cast<double>(runs->*peak.bytes));
  }
  return peaks;
}

// The peaks to compare with earlier ones, in order of preference: the first that both sides have counts. The newest
// measurement decides what the device's peak counts.
std::vector<PeakOf> PeaksToHold(const CellHistory& tonight) {
  const std::string kind = tonight.empty() ? "" : tonight.back()->device_peak_kind;
  return {{&MeasuredRuns::device_peak_bytes, kind, kind.empty() ? "the device" : kind},
          {&MeasuredRuns::device_reserved_bytes, "", "reserved"},
          {&MeasuredRuns::rss_peak_bytes, "", kOfProcess}};
}

// The findings of one cell of head.
class CellGate {
 public:
  CellGate(GateFinding cell, CellHistory tonight) : cell_(std::move(cell)), tonight_(std::move(tonight)) {}

  // `recent`: the cell's measurements before tonight, whatever their outcome.
  void HoldToBaseline(const CellHistory& history, const CellHistory& recent, size_t elsewhere) {
    const CellHistory still = Undisturbed(history);
    tells_disturbed_ = StepTimesOf(still).size() >= kHistoryRuns;
    const CellHistory& held_to = tells_disturbed_ ? still : history;
    const std::vector<double> runs = StepTimesOf(held_to);
    GateFinding finding = Of(GateMetric::kStepTime);
    const std::vector<double> times = StepTimesOf(tonight_);
    rolling_ = RollingBaseline(runs, MeanNights(held_to));
    if (times.empty()) {
      finding.answer = GateAnswer::kInconclusive;
      finding.words = "its trainer says no step times";
    } else if (!rolling_) {
      finding.answer = GateAnswer::kInconclusive;
      finding.head = std::exp(MeanOfLogs(times));
      finding.head_runs = std::ssize(times);
      finding.base_runs = std::ssize(runs);
      finding.further_runs = static_cast<int64_t>(kHistoryRuns - runs.size());
      finding.words = fmt::format("{} of the {} that a baseline takes", CountOf(runs.size(), "run"), kHistoryRuns);
      if (elsewhere > 0) finding.words += fmt::format(", {} on other machines", elsewhere);
    } else {
      ScreenStepTimes(times, *rolling_, finding);
      HoldNightsTo(held_to, recent, finding);
      NameTaken(held_to, finding);
    }
    findings_.push_back(std::move(finding));
    HoldMemoryTo(history, recent, GateMetric::kPeakMemory);
  }

  void HoldToPinned(const CellHistory& history, const CellHistory& recent) {
    const std::vector<double> runs = StepTimesOf(history);
    const std::vector<double> times = StepTimesOf(tonight_);
    if (rolling_ && !runs.empty() && !times.empty()) {
      GateFinding finding = Of(GateMetric::kPinnedStepTime);
      const Baseline pinned = PinnedBaseline(runs, *rolling_);
      ScreenStepTimes(times, pinned, finding);
      if (finding.suspect && !IsDisturbedTonight()) HoldNightsToPinned(NightsIn(recent), pinned, finding);
      NameTaken(history, finding);
      findings_.push_back(std::move(finding));
    }
    HoldMemoryTo(history, recent, GateMetric::kPinnedPeakMemory);
  }

  // One run in a thousand fails by chance, and a night has hundreds of runs. So a single failure is a suspect.
  void HoldFailure(const MeasuredRuns& failed, const CellHistory& history, const CellHistory& recent) {
    GateFinding finding = Of(GateMetric::kResult);
    const std::string& failure = failed.failure;
    const bool failed_twice = failed.failures > 1;
    const bool failed_before = !recent.empty() && !recent.back()->failure.empty();
    if (!HasResult(history)) {
      finding.answer = GateAnswer::kFails;
      finding.words = "fails, and the baseline has no result: " + failure;
    } else {
      finding.suspect = true;
      finding.answer = failed_twice || failed_before ? GateAnswer::kRegressed : GateAnswer::kInconclusive;
      finding.words = fmt::format("{}: {}",
                                  failed_twice    ? "fails now, and when it was run again"
                                  : failed_before ? "fails, as the time before"
                                                  : "failed once, a suspect until it is run again",
                                  failure);
    }
    finding.base_runs = std::ssize(StepTimesOf(history));
    findings_.push_back(std::move(finding));
  }

  std::vector<GateFinding>& findings() { return findings_; }

 private:
  GateFinding Of(GateMetric metric) const {
    GateFinding finding = cell_;
    finding.metric = metric;
    if (IsMemory(metric) || metric == GateMetric::kResult) return finding;
    for (const MeasuredRuns* runs : tonight_) {
      finding.warm_up_steps = std::max(finding.warm_up_steps, runs->warm_up_steps);
      if (runs->effective_steps <= 0) continue;
      finding.effective_steps =
          std::min(finding.effective_steps.value_or(runs->effective_steps), runs->effective_steps);
    }
    return finding;
  }

  // Names the accepted changes that part of the reference lacks by itself (ShiftToAccepted).
  static void NameTaken(const CellHistory& history, GateFinding& finding) {
    for (const AcceptedChange& change : finding.accepted) {
      const auto up = change.up.find(finding.metric);
      if (up == change.up.end() || up->second == 0) continue;
      if (std::none_of(history.begin(), history.end(), [&](const auto* runs) { return change.IsBefore(*runs); })) {
        continue;
      }
      finding.taken.push_back({up->second, change.night, change.reason, change.author});
    }
  }

  static CellHistory Undisturbed(const CellHistory& history) {
    CellHistory still = history;
    std::erase_if(still, IsDisturbed);
    return still;
  }

  // A disturbed night says nothing about the program. On a machine that is always disturbed, the disturbance is its
  // noise.
  bool IsDisturbedTonight() const { return tells_disturbed_ && std::ranges::any_of(tonight_, IsDisturbed); }

  CellHistory NightsIn(const CellHistory& history) const {
    return WithStepTimes(tells_disturbed_ ? Undisturbed(history) : history);
  }

  void ScreenStepTimes(const std::vector<double>& times, const Baseline& baseline, GateFinding& finding) const {
    const Screening screening = Screen(times, baseline);
    finding.tolerance = kTolerance;
    finding.base = std::exp(baseline.log_step_time);
    finding.head = std::exp(MeanOfLogs(times));
    finding.base_runs = static_cast<int64_t>(baseline.runs);
    finding.head_runs = std::ssize(times);
    finding.change = std::expm1(screening.change);
    finding.detectable = std::expm1(screening.detectable);
    finding.suspect = screening.suspect;
    finding.faint = screening.faint && !screening.suspect;
    finding.acceptable = std::expm1(screening.change + kAcceptedErrors * screening.error);
    if (screening.suspect) {
      finding.answer = GateAnswer::kInconclusive;
      finding.further_runs = static_cast<int64_t>(4 * kPairsOfRound);  // two rounds of pairs
      finding.words =
          fmt::format("a suspect, beyond {:.1f} %: to be measured again", 100 * std::expm1(screening.threshold));
      if (IsDisturbedTonight()) {
        const auto* most = *std::ranges::max_element(tonight_, {}, &MeasuredRuns::others_share);
        finding.words += fmt::format("; others took {:.0f} % of its cores' time", 100 * most->others_share);
      } else if (IsLarge(times, baseline)) {
        finding.answer = GateAnswer::kRegressed;
        finding.further_runs = 0;
        finding.words = "slower by more than 10 % and 6 standard errors";
      }
    } else if (-screening.change > screening.threshold) {
      finding.words = "faster";
    }
  }

  // Compares the last nights together with those before them, which are in the baseline. MakeGate decides for which
  // cells their chance is no accident.
  void HoldNightsTo(const CellHistory& history, const CellHistory& recent, GateFinding& finding) {
    if (IsDisturbedTonight()) return;
    CellHistory window = NightsIn(recent);
    if (window.size() + 1 < kWindowNights) {
      const size_t left = kWindowNights - window.size() - 1;
      if (finding.answer == GateAnswer::kInconclusive) {
        finding.words += fmt::format(", or {}, which then decide together", CountOf(left, "more night"));
      }
      return;
    }
    window.erase(window.begin(), window.end() - (kWindowNights - 1));
    CellHistory before = WithStepTimes(history);
    std::erase_if(before, [&](const MeasuredRuns* runs) { return runs->ended_unix_ns >= window[0]->ended_unix_ns; });
    std::vector<double> nights = MedianNights(window);
    std::vector<double> times = StepTimesOf(tonight_);
    nights.push_back(stats::MedianOf(times));
    const auto judged = JudgeNights(MedianNights(before), nights);
    if (!judged) return;
    finding.nights_chance = judged->slower ? judged->chance : 1;
    finding.nights_change = std::expm1(judged->change);
    if (judged->slower && judged->first < window.size()) finding.since = window[judged->first]->campaign;
  }

  // A suspect in this many consecutive nights, including tonight, is not by chance. This catches slow changes.
  static void HoldNightsToPinned(const CellHistory& recent, const Baseline& pinned, GateFinding& finding) {
    if (recent.size() + 1 < kWindowNights) return;
    const auto first = recent.end() - (kWindowNights - 1);
    const bool always = std::all_of(
        first, recent.end(), [&](const MeasuredRuns* runs) { return Screen(runs->log_step_times, pinned).suspect; });
    if (!always) return;
    finding.answer = GateAnswer::kRegressed;
    finding.further_runs = 0;
    finding.since = (*first)->campaign;
    finding.words = fmt::format("slower in each of {} nights since {}", kWindowNights, finding.since);
  }

  static CellHistory WithStepTimes(const CellHistory& history) {
    CellHistory with;
    std::copy_if(history.begin(), history.end(), std::back_inserter(with),
                 [](const MeasuredRuns* runs) { return !runs->log_step_times.empty(); });
    return with;
  }

  static std::vector<double> MeanNights(const CellHistory& history) {
    std::vector<double> nights;
    for (const MeasuredRuns* runs : WithStepTimes(history)) nights.push_back(MeanOfLogs(runs->log_step_times));
    return nights;
  }

  static std::vector<double> MedianNights(const CellHistory& history) {
    std::vector<double> nights;
    for (const MeasuredRuns* runs : history) {
      std::vector<double> times = runs->log_step_times;
      nights.push_back(stats::MedianOf(times));
    }
    return nights;
  }

  // Compares tonight's largest peak with the median of earlier ones: the accelerator's if both measured the same kind.
  void HoldMemoryTo(const CellHistory& history, const CellHistory& recent, GateMetric metric) {
    for (const PeakOf& peak : PeaksToHold(tonight_)) {
      std::vector<double> before = PeaksIn(history, peak);
      const std::vector<double> now = PeaksIn(tonight_, peak);
      if (before.empty() || now.empty()) continue;
      if (before.size() > kHistoryRuns) before.erase(before.begin(), before.end() - kHistoryRuns);
      GateFinding finding = Of(metric);
      finding.base_runs = std::ssize(before);
      finding.head_runs = std::ssize(now);
      finding.tolerance = MemoryTolerance(before);
      finding.detectable = finding.tolerance;
      finding.base = stats::MedianOf(before);
      finding.head = *std::max_element(now.begin(), now.end());
      finding.change = *finding.head / *finding.base - 1;
      finding.acceptable = finding.change;
      if (*finding.change > finding.tolerance) SuspectMemory(PeaksIn(recent, peak), peak.of, finding);
      NameTaken(history, finding);
      findings_.push_back(std::move(finding));
      return;
    }
  }

  static void SuspectMemory(const std::vector<double>& recent, const std::string& of, GateFinding& finding) {
    finding.suspect = true;
    const bool is_large = *finding.change > std::max(kLargeChange, kLargeErrors / 3 * finding.tolerance);
    const bool again = !recent.empty() && recent.back() / *finding.base - 1 > finding.tolerance;
    finding.answer = is_large || again ? GateAnswer::kRegressed : GateAnswer::kInconclusive;
    finding.words = fmt::format("grew beyond {:.1f} % ({}): {}", 100 * finding.tolerance, of,
                                is_large ? "by more than 10 %, and twice that limit"
                                : again  ? "as the time before"
                                         : "a suspect, until it is measured again");
  }

  GateFinding cell_;
  CellHistory tonight_;
  std::optional<Baseline> rolling_;
  bool tells_disturbed_ = false;  // the baseline's runs were undisturbed
  std::vector<GateFinding> findings_;
};

// Adds what distinguishes cells whose points have the same name: the setup, then the machine.
void NameCells(std::vector<GateFinding>& cells) {
  std::vector<std::string> specs;
  for (const GateFinding& cell : cells) specs.push_back(cell.spec);
  std::vector<std::string> names = PointNames(specs);
  for (const auto& [member, word] : {std::pair{&GateFinding::setup, "setup"}, {&GateFinding::machine, "on"}}) {
    std::map<std::string, std::set<std::string>> values;
    for (size_t i = 0; i < cells.size(); ++i) values[names[i]].insert(cells[i].*member);
    std::vector<std::string> longer = names;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& value = cells[i].*member;
      if (values[names[i]].size() > 1) longer[i] += fmt::format(", {} {}", word, value.empty() ? "?" : value);
    }
    names = std::move(longer);
  }
  for (size_t i = 0; i < cells.size(); ++i) cells[i].point = std::move(names[i]);
}

GateFinding CellOf(const std::string& point_id, const std::string& spec, const std::string& setup,
                   const std::string& machine) {
  GateFinding cell;
  cell.point_id = point_id;
  cell.spec = spec;
  cell.setup = setup;
  cell.machine = machine;
  return cell;
}

// A failure that names no machine, if the point later succeeded on one.
bool IsOvertaken(const MeasuredCell& cell, const std::vector<const MeasuredCell*>& of_point) {
  const MeasuredRuns& last = cell.measurements.back();
  return cell.machine.empty() && !last.failure.empty() &&
         std::any_of(of_point.begin(), of_point.end(), [&](const MeasuredCell* other) {
           return other != &cell && other->measurements.back().failure.empty() &&
                  other->measurements.back().ended_unix_ns >= last.ended_unix_ns;
         });
}

// The results that head should have and lacks. If the store does not know all of them: those that the baseline has.
std::vector<ExpectedCell> MissingCells(const GateSides& sides, const CellsByPoint& head) {
  std::vector<ExpectedCell> expected = sides.expected.cells;
  if (!sides.expected.is_whole) {
    for (const MeasuredCell& cell : sides.baseline) {
      expected.push_back({cell.point_id, cell.spec, cell.setup, "the baseline has it"});
    }
  }
  std::vector<ExpectedCell> missing;
  std::set<GatedPoint> seen;
  for (ExpectedCell& cell : expected) {
    const GatedPoint point = {cell.point_id, cell.setup};
    if (!head.contains(point) && seen.insert(point).second) missing.push_back(std::move(cell));
  }
  return missing;
}

void DecideByNights(Gate& gate) {
  std::vector<GateFinding*> judged;
  std::vector<double> chances;
  for (GateFinding& finding : gate.findings) {
    if (!finding.nights_chance) continue;
    judged.push_back(&finding);
    chances.push_back(*finding.nights_chance);
  }
  const std::vector<bool> slower = Discoveries(chances, kNightsRate);
  for (size_t i = 0; i < judged.size(); ++i) {
    GateFinding& finding = *judged[i];
    if (!slower[i] || chances[i] >= 1) {
      finding.since.clear();
      continue;
    }
    finding.answer = GateAnswer::kRegressed;
    finding.suspect = true;
    finding.acceptable = std::max(finding.acceptable.value_or(0), *finding.nights_change);
    finding.further_runs = 0;
    finding.words =
        fmt::format("slower in the nights since {}: {:+.1f} %", finding.since, 100 * *finding.nights_change);
  }
}

}  // namespace

std::string_view GateAnswerName(GateAnswer answer) {
  switch (answer) {
    case GateAnswer::kPass:
      return "PASS";
    case GateAnswer::kFails:
      return "FAILS";
    case GateAnswer::kInconclusive:
      return "INCONCLUSIVE";
    case GateAnswer::kMissing:
      return "MISSING";
    case GateAnswer::kRegressed:
      return "REGRESSED";
  }
  return "";
}

std::string_view GateMetricName(GateMetric metric) {
  switch (metric) {
    case GateMetric::kResult:
      return "result";
    case GateMetric::kStepTime:
      return "step time";
    case GateMetric::kPinnedStepTime:
      return "step time since pinned";
    case GateMetric::kPeakMemory:
      return "peak memory";
    case GateMetric::kPinnedPeakMemory:
      return "peak memory since pinned";
  }
  return "";
}

bool IsMemory(GateMetric metric) {
  return metric == GateMetric::kPeakMemory || metric == GateMetric::kPinnedPeakMemory;
}

ExpectedCells ReadExpected(store::Store& store, const std::string& campaign) {
  ExpectedCells expected;
  if (campaign.empty()) return expected;
  // The reason is shown beside a point only if the infrastructure is known to have caused the loss. A lost point that
  // its sweep no longer has is not expected.
  constexpr const char* kLost =
      "SELECT m.point_id, m.spec, m.setup, m.failure FROM measurements AS m LEFT JOIN jobs AS j ON j.key = m.job_key "
      "LEFT JOIN sweeps AS w ON w.name = j.sweep AND w.campaign = :campaign "
      "WHERE m.campaign = :campaign AND m.status IN ('infrastructure', 'cancelled') AND (w.name IS NULL "
      "OR EXISTS (SELECT 1 FROM sweep_points AS s WHERE s.sweep = w.name AND s.point_id = m.point_id "
      "AND ifnull(s.setup, w.setup) = m.setup))";
  constexpr const char* kOfSweeps =
      "SELECT p.id, p.spec, ifnull(s.setup, w.setup) FROM sweeps AS w JOIN sweep_points AS s ON s.sweep = w.name "
      "JOIN points AS p ON p.id = s.point_id WHERE w.campaign = :campaign ORDER BY w.rowid, s.ordinal";
  const std::map<std::string, std::string> texts = {{"campaign", campaign}};
  for (const auto& row : store.Query(kLost, texts).rows) {
    expected.cells.push_back({CellText(row[0]), CellText(row[1]), CellText(row[2]), CellText(row[3])});
  }
  for (const auto& row : store.Query(kOfSweeps, texts).rows) {
    expected.is_whole = true;
    expected.cells.push_back({CellText(row[0]), CellText(row[1]), CellText(row[2]), "its sweep has it"});
  }
  return expected;
}

Gate MakeGate(const GateSides& sides) {
  const CellsByPoint head = ByPoint(sides.head);
  const CellsByPoint baseline = ByPoint(sides.baseline);
  const CellsByPoint recent = ByPoint(sides.recent);
  const CellsByPoint pinned = ByPoint(sides.pinned);
  std::vector<GateFinding> cells;
  std::vector<const MeasuredCell*> measured;
  for (const MeasuredCell& cell : sides.head) {
    if (IsOvertaken(cell, head.at({cell.point_id, cell.setup}))) continue;
    cells.push_back(CellOf(cell.point_id, cell.spec, cell.setup, cell.machine));
    for (const AcceptedChange& change : sides.accepted) {
      if (change.IsOf(cell)) cells.back().accepted.push_back(change);
    }
    measured.push_back(&cell);
  }
  const std::vector<ExpectedCell> missing = MissingCells(sides, head);
  for (const ExpectedCell& cell : missing) {
    cells.push_back(CellOf(cell.point_id, cell.spec, cell.setup, {}));
    cells.back().answer = GateAnswer::kMissing;
    cells.back().words = "no result in head: " + cell.words;
  }
  NameCells(cells);

  Gate gate;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i >= measured.size()) {
      gate.findings.push_back(cells[i]);
      continue;
    }
    const MeasuredCell& cell = *measured[i];
    const GatedPoint point = {cell.point_id, cell.setup};
    const CellHistory history = HistoryOf(baseline, point, cell.machine);
    CellGate of_cell(cells[i], HistoryOf(ByPoint({&cell, 1}), point, cell.machine));
    if (!cell.measurements.back().failure.empty()) {
      of_cell.HoldFailure(cell.measurements.back(), history, HistoryOf(recent, point, {}));
    } else {
      const size_t everywhere = StepTimesOf(HistoryOf(baseline, point, {})).size();
      const CellHistory before = HistoryOf(recent, point, cell.machine);
      of_cell.HoldToBaseline(history, before, everywhere - StepTimesOf(history).size());
      of_cell.HoldToPinned(HistoryOf(pinned, point, cell.machine), before);
    }
    gate.findings.insert(gate.findings.end(), of_cell.findings().begin(), of_cell.findings().end());
  }
  DecideByNights(gate);
  // Points that are missing say it themselves.
  const bool says_nothing = std::all_of(gate.findings.begin(), gate.findings.end(),
                                        [](const auto& finding) { return finding.answer == GateAnswer::kFails; });
  if (says_nothing) {
    GateFinding none;
    none.point = "all";
    none.answer = GateAnswer::kMissing;
    none.words = "nothing was measured that a baseline has a result of";
    gate.findings.push_back(std::move(none));
  }
  Conclude(gate);
  return gate;
}

void DemandDetection(Gate& gate, double share) {
  for (GateFinding& finding : gate.findings) {
    if (finding.answer != GateAnswer::kPass || IsMemory(finding.metric) || finding.detectable.value_or(0) <= share) {
      continue;
    }
    finding.answer = GateAnswer::kInconclusive;
    finding.words = fmt::format("runs differ too much to see {:.1f} %", 100 * share);
  }
  Conclude(gate);
}

void Conclude(Gate& gate) {
  std::stable_sort(gate.findings.begin(), gate.findings.end(),
                   [](const GateFinding& a, const GateFinding& b) { return a.answer > b.answer; });
  gate.answer = gate.findings.empty() ? GateAnswer::kMissing : gate.findings.front().answer;
  if (gate.answer == GateAnswer::kFails) gate.answer = GateAnswer::kPass;
}

std::string GateCounts(const Gate& gate) {
  std::vector<std::string> counts;
  const auto add = [&](GateAnswer answer, const char* word) {
    const auto count = std::count_if(gate.findings.begin(), gate.findings.end(),
                                     [&](const GateFinding& finding) { return finding.answer == answer; });
    if (count > 0) counts.push_back(fmt::format("{} {}", count, word));
  };
  add(GateAnswer::kRegressed, "regressed");
  add(GateAnswer::kMissing, "missing");
  add(GateAnswer::kInconclusive, "inconclusive");
  add(GateAnswer::kFails, "failing as before");
  add(GateAnswer::kPass, "pass");
  return Join(counts, ", ");
}

int GateExitCode(GateAnswer answer) {
  switch (answer) {
    case GateAnswer::kPass:
    case GateAnswer::kFails:
      return 0;
    case GateAnswer::kRegressed:
      return 1;
    case GateAnswer::kMissing:
      return 3;
    case GateAnswer::kInconclusive:
      return 4;
  }
  return 3;
}

}  // namespace ridgeline::regress
