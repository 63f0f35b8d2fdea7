#include <algorithm>
#include <cmath>
#include <string>

#include "base/json.h"
#include "regress/gate_forms.h"

namespace ridgeline::regress {
namespace {

// A figure that was not measured is null; so is an infinite one.
Json NumberOrNull(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? Json(*number) : Json();
}

// The changes that a person accepted and that were subtracted.
Json TakenJson(const std::vector<TakenChange>& taken) {
  Json all = Json::array();
  for (const TakenChange& each : taken) {
    all.push_back({{"change", each.change}, {"night", each.night}, {"reason", each.reason}, {"author", each.author}});
  }
  return all;
}

Json FindingJson(const GateFinding& finding) {
  const bool memory = IsMemory(finding.metric);
  Json json = {{"metric", GateMetricName(finding.metric)},
               {"answer", GateAnswerName(finding.answer)},
               {"point", finding.point},
               {"point_id", finding.point_id},
               {"setup", finding.setup},
               {"machine", finding.machine},
               {"words", finding.words},
               {"suspect", finding.suspect},
               {"base_runs", finding.base_runs},
               {"head_runs", finding.head_runs},
               {"head_effective_steps", NumberOrNull(finding.effective_steps)},
               {"head_warmup_steps_found", finding.warm_up_steps},
               {"change", NumberOrNull(finding.change)},
               {"change_low", NumberOrNull(finding.low)},
               {"change_high", NumberOrNull(finding.high)},
               {"detectable_change", NumberOrNull(finding.detectable)},
               {"nights_change", NumberOrNull(finding.nights_change)},
               {"nights_chance", NumberOrNull(finding.nights_chance)},
               {"since", finding.since},
               {"further_runs", finding.further_runs},
               {"acceptable_change", NumberOrNull(finding.acceptable)},
               {"base_build", finding.base_build},
               {"accepted", TakenJson(finding.taken)}};
  json[memory ? "base_peak_bytes" : "base_step_ns"] = NumberOrNull(finding.base);
  json[memory ? "head_peak_bytes" : "head_step_ns"] = NumberOrNull(finding.head);
  return json;
}

// The exit code depends only on the worst answer.
Json CountsJson(const Gate& gate) {
  Json counts = Json::object();
  using enum GateAnswer;
  for (const GateAnswer answer : {kRegressed, kMissing, kInconclusive, kFails, kPass}) {
    counts[std::string(GateAnswerName(answer))] = std::ranges::count(gate.findings, answer, &GateFinding::answer);
  }
  return counts;
}

}  // namespace

std::string GateJson(const Gate& gate) {
  Json findings = Json::array();
  for (const GateFinding& finding : gate.findings) findings.push_back(FindingJson(finding));
  const Json document = {{"version", 1},
                         {"answer", GateAnswerName(gate.answer)},
                         {"exit_code", GateExitCode(gate.answer)},
                         {"counts", CountsJson(gate)},
                         {"head", gate.head},
                         {"baseline", gate.baseline},
                         {"pinned", gate.pinned.empty() ? Json() : Json(gate.pinned)},
                         {"findings", std::move(findings)}};
  return ShowJson(document, 2) + "\n";
}

}  // namespace ridgeline::regress
