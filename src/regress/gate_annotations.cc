#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/gate_forms.h"

namespace ridgeline::regress {
namespace {

constexpr size_t kMostOfAKind = 10;     // the most that GitHub shows for a step
constexpr size_t kLongestBytes = 2000;  // of a message

// Escapes as GitHub's toolkit does: whatever would end the command, and whatever introduces such an escape.
std::string CommandData(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : PrintableLine(text)) {
    if (c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string WorkflowCommand(std::string_view kind, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", kind, CommandData(ShortenToBytes(title, kLongestBytes), true),
                     CommandData(ShortenToBytes(message, kLongestBytes), false));
}

std::string CommandsOf(const Gate& gate, std::string_view kind, bool are_errors) {
  const Table table = GateTable(gate);
  std::string commands;
  size_t shown = 0;
  size_t left_out = 0;
  for (size_t i = 0; i < gate.findings.size(); ++i) {
    const GateFinding& finding = gate.findings[i];
    const bool is_error = finding.answer == GateAnswer::kRegressed || finding.answer == GateAnswer::kMissing;
    if (is_error != are_errors || (!is_error && finding.answer != GateAnswer::kInconclusive)) continue;
    // The last one says how many more there are.
    if (shown + 1 == kMostOfAKind) {
      ++left_out;
      continue;
    }
    ++shown;
    const std::string change = CellText(table.rows[i][5]);
    const std::string note = CellText(table.rows[i].back());
    commands += WorkflowCommand(
        kind, fmt::format("{}: {}", GateAnswerName(finding.answer), GateMetricName(finding.metric)),
        fmt::format("{}: {}{}{}", finding.point, change, change.empty() || note.empty() ? "" : ", ", note));
  }
  if (left_out > 0) {
    commands += WorkflowCommand(kind, "ridgeline gate", fmt::format("{} more: {}", left_out, GateConclusion(gate)));
  }
  return commands;
}

}  // namespace

std::string GateAnnotations(const Gate& gate) {
  return CommandsOf(gate, "error", true) + CommandsOf(gate, "warning", false);
}

}  // namespace ridgeline::regress
