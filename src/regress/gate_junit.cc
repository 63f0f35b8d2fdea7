#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "regress/gate_forms.h"
#include "report/escape.h"

namespace ridgeline::regress {
namespace {

std::string_view ElementOf(GateAnswer answer) {
  switch (answer) {
    case GateAnswer::kPass:
      return "system-out";
    case GateAnswer::kFails:
    case GateAnswer::kInconclusive:
      return "skipped";
    case GateAnswer::kMissing:
      return "error";
    case GateAnswer::kRegressed:
      return "failure";
  }
  return "error";
}

// The text of a table row after the point and the metric.
std::string Said(const Table& table, const std::vector<Cell>& row) {
  std::string said;
  for (size_t column = 3; column < row.size(); ++column) {
    const std::string text = CellText(row[column]);
    if (!text.empty()) said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", table.columns[column], text);
  }
  return said;
}

}  // namespace

std::string GateJunit(const Gate& gate) {
  const auto count = [&](std::string_view element) {
    return std::count_if(gate.findings.begin(), gate.findings.end(),
                         [&](const GateFinding& finding) { return ElementOf(finding.answer) == element; });
  };
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"ridgeline gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n"
      "    <properties>\n",
      gate.findings.size(), count("failure"), count("error"), count("skipped"));
  for (const auto& [name, value] :
       {std::pair{"head", gate.head}, {"baseline", gate.baseline}, {"pinned", gate.pinned}}) {
    if (!value.empty()) {
      xml += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, report::EscapeHtml(value));
    }
  }
  xml += "    </properties>\n";
  const Table table = GateTable(gate);
  for (size_t i = 0; i < gate.findings.size(); ++i) {
    const GateFinding& finding = gate.findings[i];
    const std::string_view element = ElementOf(finding.answer);
    const std::string said = report::EscapeHtml(Said(table, table.rows[i]));
    xml += fmt::format("    <testcase classname=\"ridgeline.gate\" name=\"{}: {}\">\n      ",
                       report::EscapeHtml(finding.point), GateMetricName(finding.metric));
    xml += finding.answer == GateAnswer::kPass
               ? fmt::format("<system-out>{}</system-out>\n", said)
               : fmt::format("<{} type=\"{}\" message=\"{}\"/>\n", element, GateAnswerName(finding.answer), said);
    xml += "    </testcase>\n";
  }
  return xml + "  </testsuite>\n</testsuites>\n";
}

}  // namespace ridgeline::regress
