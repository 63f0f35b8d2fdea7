#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/gate_forms.h"
#include "regress/verdict.h"

namespace ridgeline::regress {
namespace {

std::string Figure(const GateFinding& finding, const std::optional<double>& figure) {
  if (!figure) return "";
  return IsMemory(finding.metric) ? FormatBytes(std::llround(*figure)) : FormatDuration(std::llround(*figure));
}

std::string ChangeText(const GateFinding& finding) {
  if (!finding.change) return "";
  std::string text = fmt::format("{:+.1f} %", 100 * *finding.change);
  if (finding.low && finding.high)
    text += fmt::format(" ({:+.1f} to {:+.1f})", 100 * *finding.low, 100 * *finding.high);
  return text;
}

std::string NoteOf(const GateFinding& finding) {
  if (finding.further_runs == 0) return finding.words;
  const bool is_most = finding.further_runs >= kMostRuns;
  std::string note = fmt::format("{}; {} more {} would decide", finding.words, finding.further_runs,
                                 is_most                     ? "runs, or yet more,"
                                 : finding.further_runs == 1 ? "run"
                                                             : "runs");
  // If the baseline is too short, later nights add the missing runs, as many each as tonight.
  if (!finding.base && finding.head_runs > 0) {
    const int64_t nights = (finding.further_runs + finding.head_runs - 1) / finding.head_runs;
    note += fmt::format(": {} like this one", CountOf(nights, "more night"));
  }
  return note;
}

}  // namespace

Table GateTable(const Gate& gate) {
  Table table{{"answer", "point", "metric", "base", "head", "change", "detects", "note"}, {}};
  for (const GateFinding& finding : gate.findings) {
    table.rows.push_back(
        {std::string(GateAnswerName(finding.answer)), finding.point, std::string(GateMetricName(finding.metric)),
         Figure(finding, finding.base), Figure(finding, finding.head), ChangeText(finding),
         finding.detectable ? fmt::format("{:+.1f} %", 100 * *finding.detectable) : "", NoteOf(finding)});
  }
  return table;
}

std::string GateConclusion(const Gate& gate) {
  std::string text = fmt::format("{}: {}", GateAnswerName(gate.answer), GateCounts(gate));
  const GateFinding* dullest = nullptr;
  for (const GateFinding& finding : gate.findings) {
    if (finding.answer != GateAnswer::kPass || !finding.detectable || IsMemory(finding.metric)) continue;
    if (dullest == nullptr || *finding.detectable > *dullest->detectable) dullest = &finding;
  }
  if (dullest != nullptr) {
    text += fmt::format("; of what passes, a slowdown of {:.1f} % would have been seen everywhere, in 80 of 100 cases",
                        100 * *dullest->detectable);
  }
  return text;
}

std::string GateText(const Gate& gate) {
  return fmt::format("{}\n{}\n", ToText(GateTable(gate)), PrintableLine(GateConclusion(gate)));
}

}  // namespace ridgeline::regress
