#include "regress/confirm.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/accepted.h"

namespace ridgeline::regress {
namespace {

bool IsOf(const GateFinding& finding, const SuspectCell& cell) {
  return IsMeasuredAgain(finding) && finding.point_id == cell.point_id && finding.setup == cell.setup;
}

// The rounds of a metric. For memory, the accelerator's if its turns report it.
std::span<const std::vector<RunPair>> RoundsOf(const SuspectCell& cell, GateMetric metric) {
  if (!IsMemory(metric)) return cell.step_times;
  const bool has_device =
      std::any_of(cell.device_peaks.begin(), cell.device_peaks.end(), [](const auto& round) { return !round.empty(); });
  return has_device ? cell.device_peaks : cell.rss_peaks;
}

// The base as if it had the changes that were accepted since.
std::vector<std::vector<RunPair>> WithAccepted(const GateFinding& finding, const SuspectCell& cell) {
  const auto rounds = RoundsOf(cell, finding.metric);
  std::vector<std::vector<RunPair>> shifted(rounds.begin(), rounds.end());
  const double log = LogOfTaken(TakenInTurns(finding, cell.base_build));
  for (auto& round : shifted) {
    for (RunPair& pair : round) pair.base += log;
  }
  return shifted;
}

Judgement JudgementOf(const GateFinding& finding, const SuspectCell& cell) {
  return Judge(WithAccepted(finding, cell), finding.tolerance);
}

// If head fails again and base does not, the failure is not by chance.
Decision DecisionOfFailures(const SuspectCell& cell) {
  if (cell.base_failures > 0 || cell.whole_pairs == 0) return Decision::kInconclusive;
  return cell.head_failures > 0 ? Decision::kRegressed : Decision::kPass;
}

void DecideFailure(const SuspectCell& cell, GateFinding& finding) {
  const std::string runs = CountOf(cell.whole_pairs, "pair");
  switch (DecisionOfFailures(cell)) {
    case Decision::kPass:
      finding.answer = GateAnswer::kPass;
      finding.words += fmt::format("; measured again in turns: not in {}", runs);
      break;
    case Decision::kRegressed:
      finding.answer = GateAnswer::kRegressed;
      finding.words += "; measured again in turns: head fails again, and base does not";
      break;
    case Decision::kInconclusive:
      finding.answer = GateAnswer::kInconclusive;
      finding.words += cell.base_failures > 0 ? "; measured again in turns: base fails, too"
                                              : "; measured again in turns, without a result";
      break;
  }
}

std::vector<double> SideOf(std::span<const std::vector<RunPair>> rounds, double RunPair::*side) {
  std::vector<double> values;
  for (const auto& round : rounds) {
    for (const RunPair& pair : round) values.push_back(pair.*side);
  }
  return values;
}

std::optional<double> GeometricMean(const std::vector<double>& logs) {
  if (logs.empty()) return std::nullopt;
  double mean = 0;
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  return std::exp(mean);
}

std::optional<double> Share(double log) { return std::isfinite(log) ? std::optional(std::expm1(log)) : std::nullopt; }

void Decide(const Judgement& judgement, bool is_discovery, const SuspectCell& cell, GateFinding& finding) {
  const auto rounds = WithAccepted(finding, cell);
  finding.taken = TakenInTurns(finding, cell.base_build);
  finding.base_build = cell.base_build;
  const std::vector<double> base = SideOf(rounds, &RunPair::base);
  finding.base = GeometricMean(base);
  finding.head = GeometricMean(SideOf(rounds, &RunPair::head));
  finding.base_runs = std::ssize(base);
  finding.head_runs = finding.base_runs;
  finding.change = base.empty() ? std::nullopt : Share(judgement.change);
  finding.low = Share(judgement.low);
  finding.high = Share(judgement.high);
  finding.detectable = Share(judgement.detectable);
  finding.further_runs = judgement.further_runs;
  const char* grown = IsMemory(finding.metric) ? "more" : "slower";
  switch (judgement.decision) {
    case Decision::kPass:
      finding.answer = GateAnswer::kPass;
      finding.words = fmt::format("measured again in turns: no {}", grown);
      break;
    case Decision::kRegressed:
      finding.answer = is_discovery ? GateAnswer::kRegressed : GateAnswer::kInconclusive;
      finding.words =
          is_discovery ? fmt::format("measured again in turns: {} in two rounds", grown)
                       : fmt::format("measured again in turns: {}; among so many suspects, this can be chance", grown);
      break;
    case Decision::kInconclusive:
      // It looked slower than most nights do, as some nights always do.
      if (finding.faint) {
        finding.words = fmt::format("measured again in turns: not {} for certain", grown);
        finding.further_runs = 0;
        break;
      }
      // A decision without turns stays.
      if (finding.answer == GateAnswer::kRegressed) {
        finding.words += "; measured again in turns, and open there";
        break;
      }
      finding.answer = GateAnswer::kInconclusive;
      finding.words = "measured again in turns, and still open";
      break;
  }
  if (const int64_t lost = cell.pairs - finding.base_runs; lost > 0) {
    finding.words += fmt::format("; {} of {} pairs gave no result on one node", lost, cell.pairs);
  }
}

}  // namespace

std::vector<SuspectCell> SuspectsOf(const Gate& gate) {
  std::vector<SuspectCell> cells;
  for (const GateFinding& finding : gate.findings) {
    const bool is_known =
        std::any_of(cells.begin(), cells.end(), [&](const SuspectCell& cell) { return IsOf(finding, cell); });
    if (!IsMeasuredAgain(finding) || is_known) continue;
    SuspectCell& cell = cells.emplace_back();
    cell.point_id = finding.point_id;
    cell.spec = finding.spec;
    cell.setup = finding.setup;
  }
  return cells;
}

void AddPair(const RunsInTurn& runs, SuspectCell& cell) {
  ++cell.pairs;
  const std::optional<MeasuredRuns>& base = runs.first;
  const std::optional<MeasuredRuns>& head = runs.second;
  if (base && base->failure.empty()) cell.base_build = base->commit;
  if (base && head) {
    ++cell.whole_pairs;
    cell.base_failures += base->failure.empty() ? 0 : 1;
    cell.head_failures += head->failure.empty() ? 0 : 1;
  }
  if (!base || !head || !base->failure.empty() || !head->failure.empty()) return;
  if (!base->host.empty() && !head->host.empty() && base->host != head->host) return;
  if (!base->log_step_times.empty() && !head->log_step_times.empty()) {
    cell.step_times.back().push_back({base->log_step_times.back(), head->log_step_times.back()});
  }
  const auto add = [&](int64_t base_bytes, int64_t head_bytes, std::vector<std::vector<RunPair>>& rounds) {
    if (base_bytes <= 0 || head_bytes <= 0) return;
    rounds.back().push_back({std::log(static_cast<double>(base_bytes)), std::log(static_cast<double>(head_bytes))});
  };
  const auto peaks = LikePeaksOf(*base, *head);
  if (peaks && peaks->of != kOfProcess) add(peaks->base, peaks->head, cell.device_peaks);
  add(base->rss_peak_bytes, head->rss_peak_bytes, cell.rss_peaks);
}

bool MeasureInTurns(const Gate& gate, std::vector<SuspectCell>& cells, const PairMeasurer& measure) {
  const auto is_open = [&](const SuspectCell& cell) {
    return std::any_of(gate.findings.begin(), gate.findings.end(), [&](const GateFinding& finding) {
      if (!IsOf(finding, cell)) return false;
      if (finding.metric == GateMetric::kResult) return cell.pairs == 0;
      return MeasuresOn(JudgementOf(finding, cell), finding.faint, finding.tolerance);
    });
  };
  // A point that hangs until its limit is not measured more often than necessary.
  const auto is_decided_failure = [&](const SuspectCell* cell) {
    return cell->base_failures + cell->head_failures > 0 &&
           std::none_of(gate.findings.begin(), gate.findings.end(), [&](const GateFinding& finding) {
             return IsOf(finding, *cell) && finding.metric != GateMetric::kResult;
           });
  };
  for (size_t round = 1; round <= kMostRounds; ++round) {
    std::vector<SuspectCell*> open;
    for (SuspectCell& cell : cells) {
      if (is_open(cell)) open.push_back(&cell);
    }
    if (open.empty()) return true;
    for (SuspectCell* cell : open) {
      cell->step_times.emplace_back();
      cell->device_peaks.emplace_back();
      cell->rss_peaks.emplace_back();
    }
    for (size_t pair = 0; pair < kPairsOfRound; ++pair) {
      std::erase_if(open, is_decided_failure);
      if (open.empty()) break;
      const std::optional<std::vector<RunsInTurn>> runs = measure(round, pair + 1, pair % 2 == 0, open);
      if (!runs) return false;
      for (size_t i = 0; i < open.size(); ++i) AddPair((*runs)[i], *open[i]);
    }
  }
  return true;
}

void Confirm(Gate& gate, std::span<const SuspectCell> cells) {
  struct Judged {
    GateFinding* finding;
    const SuspectCell* cell;
    Judgement judgement;
  };
  std::vector<Judged> judged;
  std::vector<double> chances;
  for (const SuspectCell& cell : cells) {
    for (GateFinding& finding : gate.findings) {
      if (!IsOf(finding, cell)) continue;
      if (finding.metric == GateMetric::kResult) {
        DecideFailure(cell, finding);
        continue;
      }
      const Judgement judgement = JudgementOf(finding, cell);
      judged.push_back({&finding, &cell, judgement});
      chances.push_back(judgement.decision == Decision::kRegressed ? judgement.chance : 1);
    }
  }
  const std::vector<bool> discovered = Discoveries(chances, kTurnsRate);
  for (size_t i = 0; i < judged.size(); ++i) {
    Decide(judged[i].judgement, discovered[i], *judged[i].cell, *judged[i].finding);
  }
  Conclude(gate);
}

}  // namespace ridgeline::regress
