#include "regress/accepted.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace ridgeline::regress {
namespace {

double UpOf(const AcceptedChange& change, GateMetric metric) {
  const auto up = change.up.find(metric);
  return up == change.up.end() ? 0 : up->second;
}

void Shift(const std::vector<AcceptedChange>& accepted, GateMetric step_time, GateMetric memory,
           std::vector<MeasuredCell>& cells) {
  for (MeasuredCell& cell : cells) {
    for (const AcceptedChange& change : accepted) {
      if (!change.IsOf(cell)) continue;
      const double longer = std::log1p(UpOf(change, step_time));
      const double larger = 1 + UpOf(change, memory);
      for (MeasuredRuns& runs : cell.measurements) {
        if (!change.IsBefore(runs)) continue;
        for (double& time : runs.log_step_times) time += longer;
        for (int64_t* peak : {&runs.device_peak_bytes, &runs.device_reserved_bytes, &runs.rss_peak_bytes}) {
          *peak = std::llround(larger * static_cast<double>(*peak));
        }
      }
    }
  }
}

}  // namespace

bool AcceptedChange::IsBefore(const MeasuredRuns& runs) const {
  if (before.contains(runs.campaign)) return true;
  return !since.contains(runs.campaign) && runs.ended_unix_ns < begun_unix_ns;
}

void ShiftToAccepted(GateSides& sides) {
  Shift(sides.accepted, GateMetric::kStepTime, GateMetric::kPeakMemory, sides.baseline);
  Shift(sides.accepted, GateMetric::kStepTime, GateMetric::kPeakMemory, sides.recent);
  Shift(sides.accepted, GateMetric::kPinnedStepTime, GateMetric::kPinnedPeakMemory, sides.pinned);
}

std::vector<TakenChange> TakenInTurns(const GateFinding& finding, const std::string& base_build) {
  std::vector<TakenChange> taken;
  for (const AcceptedChange& change : finding.accepted) {
    const auto& share = IsMemory(finding.metric) ? change.memory_in_turns : change.step_time_in_turns;
    if (!share || change.base_build.empty() || change.base_build != base_build) continue;
    taken.push_back({*share, change.night, change.reason, change.author});
  }
  return taken;
}

double LogOfTaken(const std::vector<TakenChange>& taken) {
  double sum = 0;
  for (const TakenChange& each : taken) sum += std::log1p(each.change);
  return sum;
}

void NameTakenChanges(Gate& gate) {
  for (GateFinding& finding : gate.findings) {
    for (const TakenChange& each : finding.taken) {
      finding.words += fmt::format("{}beside {:+.1f} % accepted of {}", finding.words.empty() ? "" : "; ",
                                   100 * each.change, each.night);
      if (!each.author.empty()) finding.words += " by " + each.author;
      if (!each.reason.empty()) finding.words += ": " + each.reason;
    }
  }
}

}  // namespace ridgeline::regress
