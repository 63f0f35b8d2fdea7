// Renders a report as a document with headings, sentences and tables, and as a short text for a terminal.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/page.h"
#include "report/run_columns.h"

namespace ridgeline::report {
namespace {

constexpr size_t kMaxText = 120;

// One line of Markdown, escaped by the same rule as the cells of a Markdown table.
std::string Line(const std::string& text) {
  const std::string header = ToMarkdown({{ShortenToCodePoints(text, 2000)}, {}});
  return header.substr(2, header.find('\n') - 4);
}

// The same for a note of report.yaml, whose `code` stays code.
std::string NoteLine(const std::string& text) {
  if (std::count(text.begin(), text.end(), '`') % 2 != 0) return Line(text);
  std::string line;
  bool is_code = false;
  for (size_t begin = 0; begin <= text.size(); is_code = !is_code) {
    const size_t end = std::min(text.find('`', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    line += is_code ? "`" + PrintableLine(part) + "`" : Line(part);
    begin = end + 1;
  }
  return line;
}

Table MakeTable(const Rows& rows, const std::vector<const ReportColumn*>& columns, std::span<const size_t> all_rows) {
  Table table;
  for (const ReportColumn* column : columns) {
    std::string heading = column->group.empty() ? column->label : column->group + ": " + column->label;
    if (!column->unit.empty()) heading += ", " + column->unit;
    table.columns.push_back(std::move(heading));
  }
  for (const size_t row : all_rows.first(std::min(all_rows.size(), kMaxTableRows))) {
    auto& cells = table.rows.emplace_back();
    for (const ReportColumn* column : columns) {
      cells.emplace_back(ShortenToCodePoints(FormatFigure(*column, rows, row), kMaxText));
    }
  }
  return table;
}

// Headings for a terminal. Includes the group if two columns have the same name.
Table TerminalTable(const Rows& rows, const std::vector<const ReportColumn*>& columns,
                    std::span<const size_t> all_rows) {
  Table table = MakeTable(rows, columns, all_rows);
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto called = std::count_if(columns.begin(), columns.end(),
                                      [&](const ReportColumn* other) { return other->label == columns[c]->label; });
    if (called == 1) table.columns[c] = columns[c]->label + (columns[c]->unit.empty() ? "" : ", " + columns[c]->unit);
  }
  return table;
}

}  // namespace

std::string RenderText(const Report& report, const Rows& rows, const RenderOptions& options) {
  const std::vector<Panel> panels = MakePanels(rows);
  std::string out = PrintableLine(report.title) + "\n";
  if (!options.sweep.empty()) out += "Sweep " + PrintableLine(options.sweep) + ". ";
  out += PrintableLine(ChoiceSentence(options)) + CountsSentence(rows, panels.size());
  if (!report.measured.empty()) out += " " + PrintableLine(report.measured);
  out += "\n";
  bool short_of = false;
  const size_t shown = std::min(panels.size(), kMaxPanels);
  for (const Panel& panel : std::span(panels).first(shown)) {
    out += "\n" + PrintableLine(panel.title) + "\n";
    for (const std::string& sentence : Conclude(report, rows, panel.rows)) out += PrintableLine(sentence) + "\n";
    if (const std::string from = ProvenanceSentence(rows, panel.rows); !from.empty()) out += PrintableLine(from) + "\n";
    std::vector<const ReportColumn*> columns = TableColumns(report, rows, panel.rows);
    const auto is_key = [](const ReportColumn* column) { return column->key; };
    if (std::any_of(columns.begin(), columns.end(), is_key)) {
      short_of = short_of || !std::all_of(columns.begin(), columns.end(), is_key);
      // A terminal has room for the run's number, which a phone has not.
      std::erase_if(columns, [&](const ReportColumn* column) { return !is_key(column) && column->name != kRunColumn; });
    }
    out += "\n" + ToText(TerminalTable(rows, columns, panel.rows));
    short_of = short_of || panel.rows.size() > kMaxTableRows;
  }
  if (short_of || shown < panels.size()) {
    out += "\n-o md has every column, -o csv every run, and --to FILE.html the charts\n";
  }
  return out;
}

std::string RenderMarkdown(const Report& report, const Rows& rows, const RenderOptions& options) {
  const std::vector<Panel> panels = MakePanels(rows);
  std::string out = "# " + Line(report.title) + "\n\n";
  if (!report.description.empty()) out += Line(report.description) + "\n\n";
  if (!options.sweep.empty()) out += "Sweep " + Line(options.sweep) + ". ";
  out += Line(ChoiceSentence(options));
  out += CountsSentence(rows, panels.size()) + "\n";
  if (!report.measured.empty()) out += "\n" + Line(report.measured) + "\n";
  const size_t shown = std::min(panels.size(), kMaxPanels);
  for (const Panel& panel : std::span(panels).first(shown)) {
    out += "\n## " + Line(panel.title) + "\n";
    const std::vector<std::string> conclusion = Conclude(report, rows, panel.rows);
    if (!conclusion.empty()) out += "\n**" + Line(conclusion.front()) + "**\n";
    if (conclusion.size() > 1) out += "\n" + Line(Join({conclusion.begin() + 1, conclusion.end()}, " ")) + "\n";
    const std::string provenance = ProvenanceSentence(rows, panel.rows);
    if (!provenance.empty()) out += "\n" + Line(provenance) + "\n";
    const SummaryTable summary = Summarize(report, rows, panel.rows);
    if (!summary.rows.empty()) out += "\n" + ToMarkdown(MakeTable(rows, summary.columns, summary.rows));
    out += "\n" + ToMarkdown(MakeTable(rows, TableColumns(report, rows, panel.rows), panel.rows));
    if (panel.rows.size() > kMaxTableRows) {
      out += fmt::format("\nThe first {} of {}; the CSV and the JSON of this report hold all of them.\n", kMaxTableRows,
                         rows.Counted(panel.rows.size()));
    }
  }
  if (shown < panels.size()) {
    out += fmt::format("\nThe first {} of {} panels; the CSV and the JSON of this report hold all of them.\n", shown,
                       panels.size());
  }
  if (!report.notes.empty()) out += "\n## How to read this\n";
  for (const std::string& note : report.notes) out += "\n" + NoteLine(note) + "\n";
  const std::vector<Environment> environments = DistinctEnvironments(rows);
  if (!environments.empty()) out += "\n## Environment\n";
  for (const Environment& environment :
       std::span(environments).first(std::min(environments.size(), kMaxEnvironments))) {
    Table table{{"fact", environments.size() > 1 ? fmt::format("of {}", CountOf(environment.runs, "run")) : "value"},
                {}};
    for (const auto& [key, value] : environment.facts) {
      table.rows.push_back({{Cell(key), Cell(ShortenToCodePoints(value, 2000))}});
    }
    if (!environment.command.empty()) {
      table.rows.push_back({{Cell(std::string(environment.runs > 1 ? "command of the first run" : "command")),
                             Cell(ShortenToCodePoints(environment.command, 2000))}});
    }
    out += "\n" + ToMarkdown(table);
  }
  if (environments.size() > kMaxEnvironments) {
    out += fmt::format("\n{} more environments are not listed.\n", environments.size() - kMaxEnvironments);
  }
  return out;
}

}  // namespace ridgeline::report
