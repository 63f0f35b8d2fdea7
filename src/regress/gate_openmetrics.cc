#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/gate_forms.h"

namespace ridgeline::regress {
namespace {

// Removes #: GitLab treats the text after it as a comment, wherever it stands.
std::string LabelText(std::string_view text) {
  std::string out;
  for (const char c : PrintableLine(text)) {
    if (c == '#') {
      out += "\\\\x23";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
  return out;
}

// The same label as the other metrics have.
std::string SweepLabel(const Gate& gate) {
  return gate.sweep.empty() ? "" : fmt::format("sweep=\"{}\",", LabelText(gate.sweep));
}

// A family of gauges: its declaration, then `samples`.
std::string Family(std::string_view name, std::string_view unit, std::string_view help, const std::string& samples) {
  if (samples.empty()) return "";
  std::string text = fmt::format("# TYPE ridgeline_gate_{} gauge\n", name);
  if (!unit.empty()) text += fmt::format("# UNIT ridgeline_gate_{} {}\n", name, unit);
  return text + fmt::format("# HELP ridgeline_gate_{} {}\n{}", name, help, samples);
}

using FigureOf = std::optional<double> (*)(const GateFinding&);

// A sample for each finding of this metric that has the value, and for those since the pinned baseline, unless that is
// not wanted.
std::string Samples(const Gate& gate, std::string_view name, GateMetric metric, std::optional<GateMetric> pinned,
                    FigureOf value) {
  std::string samples;
  for (const GateFinding& finding : gate.findings) {
    if (finding.metric != metric && (!pinned || finding.metric != *pinned)) continue;
    const std::optional<double> number = value(finding);
    if (!number || !std::isfinite(*number)) continue;
    samples += fmt::format("ridgeline_gate_{}{{{}point=\"{}\",cell=\"{}\"", name, SweepLabel(gate),
                           LabelText(finding.point_id), LabelText(finding.point));
    if (pinned) samples += fmt::format(",baseline=\"{}\"", finding.metric == metric ? "rolling" : "pinned");
    samples += fmt::format("}} {:.10g}\n", *number);
  }
  return samples;
}

std::string CountSamples(const Gate& gate) {
  std::string samples;
  using enum GateAnswer;
  for (const GateAnswer answer : {kPass, kFails, kInconclusive, kMissing, kRegressed}) {
    std::string name(GateAnswerName(answer));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    samples += fmt::format("ridgeline_gate_findings{{{}answer=\"{}\"}} {}\n", SweepLabel(gate), name,
                           std::count_if(gate.findings.begin(), gate.findings.end(),
                                         [&](const GateFinding& finding) { return finding.answer == answer; }));
  }
  return samples;
}

}  // namespace

std::string GateOpenMetrics(const Gate& gate) {
  using enum GateMetric;
  const FigureOf head_seconds = [](const GateFinding& finding) {
    return finding.head ? std::optional(*finding.head / 1e9) : std::nullopt;
  };
  const FigureOf head = [](const GateFinding& finding) { return finding.head; };
  const FigureOf change = [](const GateFinding& finding) { return finding.change; };
  const FigureOf detectable = [](const GateFinding& finding) { return finding.detectable; };
  std::string text;
  const auto add = [&](std::string_view name, std::string_view unit, std::string_view help, GateMetric metric,
                       std::optional<GateMetric> pinned, FigureOf value) {
    text += Family(name, unit, help, Samples(gate, name, metric, pinned, value));
  };
  add("step_time_seconds", "seconds", "Geometric mean over runs of the median steady step.", kStepTime, std::nullopt,
      head_seconds);
  add("step_time_change_ratio", "ratio", "Change of the step time since the baseline.", kStepTime, kPinnedStepTime,
      change);
  add("step_time_detectable_ratio", "ratio", "Slowdown that is found in 80 of 100 cases.", kStepTime, kPinnedStepTime,
      detectable);
  add("peak_memory_bytes", "bytes", "Largest peak memory, of the accelerator or else of the process.", kPeakMemory,
      std::nullopt, head);
  add("peak_memory_change_ratio", "ratio", "Change of the peak memory since the baseline.", kPeakMemory,
      kPinnedPeakMemory, change);
  text += Family("findings", "", "Findings of the gate by answer.", CountSamples(gate));
  return text + "# EOF\n";
}

}  // namespace ridgeline::regress
