// The page: one file, nothing fetched. It is readable and its charts are right with neither style nor script.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/assets.h"
#include "report/escape.h"
#include "report/page.h"

namespace ridgeline {
namespace {

constexpr size_t kMaxHeading = 140;
constexpr size_t kMaxCell = 80;
constexpr size_t kSlotsOfHalfAPage = 8;

std::string PanelId(size_t panel) { return fmt::format("panel-{}", panel + 1); }

// Text that may be cut, with all of it in the title then.
std::string Titled(std::string_view tag, std::string_view attributes, const std::string& text, size_t limit) {
  const std::string shown = Shorten(text, limit);
  std::string title;
  if (shown != text) title = fmt::format(R"( title="{}")", EscapeHtml(text));
  return fmt::format("<{0}{1}{2}>{3}</{0}>", tag, attributes, title, EscapeHtml(shown));
}

std::string HeadingCell(const ReportColumn& column, bool number) {
  std::string text = column.label;
  if (!column.unit.empty() && column.group.empty()) text += ", " + column.unit;
  std::string attributes = R"( scope="col")";
  attributes += number ? R"( align="right")" : R"( align="left")";
  if (!column.help.empty()) attributes += fmt::format(R"( title="{}")", EscapeHtml(column.help));
  return fmt::format("<th{}>{}</th>", attributes, EscapeHtml(text));
}

std::string ValueCell(const ReportColumn& column, const Cell& cell) {
  const std::string text = FormatValue(column.style, cell);
  if (std::holds_alternative<std::monostate>(cell)) {
    const bool number = column.style != ValueStyle::kText;
    return fmt::format("<td data-none=\"\"{}>{}</td>", number ? R"( align="right")" : "", text);
  }
  if (std::holds_alternative<std::string>(cell)) {
    return Titled("td", text.size() > 40 ? R"( class="words")" : "", text, kMaxCell);
  }
  return fmt::format(R"(<td align="right" data-v="{}">{}</td>)", CellText(cell), EscapeHtml(text));
}

// Neighbours with the same group, and so the same unit, share a heading above theirs; no row at all where no column has
// a group.
std::string GroupRow(const std::vector<const ReportColumn*>& columns) {
  std::string row;
  bool any = false;
  for (size_t c = 0; c < columns.size();) {
    size_t end = c + 1;
    while (end < columns.size() && columns[end]->group == columns[c]->group) ++end;
    std::string group = columns[c]->group;
    if (!group.empty() && !columns[c]->unit.empty()) group += ", " + columns[c]->unit;
    any = any || !group.empty();
    row += group.empty() ? fmt::format("<td colspan=\"{}\"></td>", end - c)
                         : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>", end - c, EscapeHtml(group));
    c = end;
  }
  return any ? "<tr>" + row + "</tr>\n" : "";
}

std::string TableHtml(const Rows& rows, const std::vector<const ReportColumn*>& columns,
                      std::span<const size_t> all_rows, std::string caption) {
  const size_t shown = std::min(all_rows.size(), kMaxTableRows);
  std::string out = R"(<div class="scroll"><table data-sort="" border="1" cellpadding="5" cellspacing="0">)"
                    "\n";
  if (shown < all_rows.size()) {
    caption += fmt::format(" The first {} of {} runs; the CSV and the JSON of this report hold all of them.", shown,
                           all_rows.size());
  }
  out += "<caption>" + EscapeHtml(caption) + "</caption>\n<thead>\n" + GroupRow(columns) + "<tr>";
  for (const ReportColumn* column : columns) out += HeadingCell(*column, column->style != ValueStyle::kText);
  out += "</tr>\n</thead>\n<tbody>\n";
  for (const size_t row : all_rows.first(shown)) {
    out += rows.Failed(row) ? R"(<tr class="failed">)" : "<tr>";
    for (const ReportColumn* column : columns) out += ValueCell(*column, rows.At(row, column->name));
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

std::string FigureHtml(const std::string& title, const std::string& note, bool wide, const std::string& svg) {
  return fmt::format("<figure{}><figcaption><strong>{}</strong> <small>{}</small></figcaption>\n{}</figure>\n",
                     wide ? " class=\"wide\"" : "", EscapeHtml(title), EscapeHtml(note), svg);
}

std::string ChartsHtml(const Report& report, const Rows& rows, const Panel& panel, size_t number) {
  std::string out;
  for (const ReportChart& from : report.charts) {
    const std::string id = fmt::format("{}-{}", from.id, number + 1);
    if (from.lines) {
      const LineChart chart = MakeLineChart(from, rows, panel.rows, id);
      if (!chart.lines.empty()) out += FigureHtml(from.title, from.note, false, RenderLineChart(chart));
      continue;
    }
    const BarChart chart = MakeChart(from, rows, panel.rows, id);
    if (chart.slots.empty()) continue;
    std::string note = from.note;
    if (chart.slots.size() < panel.rows.size()) {
      note += fmt::format(" The first {} of {} runs are drawn.", chart.slots.size(), panel.rows.size());
    }
    const std::string provenance = ProvenanceSentence(rows, std::span(panel.rows).first(chart.slots.size()));
    if (!provenance.empty()) note += " " + provenance;
    out += FigureHtml(from.title, note, chart.slots.size() > kSlotsOfHalfAPage, RenderBarChart(chart));
  }
  return out.empty() ? out : "<div class=\"charts\">\n" + out + "</div>\n";
}

std::string EnvironmentsHtml(const Rows& rows) {
  const std::vector<Environment> environments = DistinctEnvironments(rows);
  if (environments.empty()) return {};
  std::string out = "<h2 id=\"environment\">Environment</h2>\n";
  const size_t shown = std::min(environments.size(), kMaxEnvironments);
  for (size_t i = 0; i < shown; ++i) {
    const Environment& environment = environments[i];
    if (environments.size() > 1) {
      out +=
          fmt::format("<h3>Environment {}: {} run{}</h3>\n", i + 1, environment.runs, environment.runs == 1 ? "" : "s");
    }
    out += R"(<table class="environment" border="1" cellpadding="5" cellspacing="0">)"
           "\n";
    const auto line = [&](const std::string& key, const std::string& value) {
      out += "<tr>" + Titled("th", R"( scope="row" align="left")", key, kMaxCell) + Titled("td", "", value, 2000) +
             "</tr>\n";
    };
    for (const auto& [key, value] : environment.facts) line(key, value);
    if (!environment.command.empty()) {
      line(environment.runs > 1 ? "command of the first run" : "command", environment.command);
    }
    out += "</table>\n";
  }
  if (shown < environments.size()) {
    out += fmt::format(
        "<p class=\"note\">{} more environments are not listed; the CSV and the JSON name each run's "
        "machine.</p>\n",
        environments.size() - shown);
  }
  return out;
}

std::string LeftOut(const std::vector<Panel>& panels) {
  if (panels.size() <= kMaxPanels) return {};
  size_t runs = 0;
  for (size_t p = kMaxPanels; p < panels.size(); ++p) runs += panels[p].rows.size();
  return fmt::format(
      "<p class=\"note\" id=\"left-out\">This page shows the first {} of {} panels; {} runs are left out. The CSV and "
      "the JSON of this report hold all of them.</p>\n",
      kMaxPanels, panels.size(), runs);
}

std::string DataJson(const Report& report, const Rows& rows, const std::vector<Panel>& panels, size_t shown) {
  Json list = Json::array();
  for (size_t p = 0; p < shown; ++p) {
    for (const size_t row : std::span(panels[p].rows).first(std::min(panels[p].rows.size(), kMaxTableRows))) {
      Json object = Json::object();
      for (const ReportColumn& column : report.columns) {
        if (column.style == ValueStyle::kSeries) continue;  // the CSV and the JSON have them
        std::visit(
            [&](const auto& value) {
              if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
                object[column.name] = nullptr;
              } else {
                object[column.name] = value;
              }
            },
            rows.At(row, column.name));
      }
      list.push_back(std::move(object));
    }
  }
  return ScriptJson({{"report", report.name}, {"rows", std::move(list)}});
}

}  // namespace

std::string RenderHtml(const Report& report, const Rows& rows, const RenderOptions& options) {
  const std::vector<Panel> panels = MakePanels(rows);
  const size_t shown = std::min(panels.size(), kMaxPanels);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; script-src "
      "'sha256-{}'; base-uri 'none'; form-action 'none'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"Ridgeline\"/>\n"
      "<title>{}</title>\n",
      kPageStyleHash, kPageScriptHash, EscapeHtml(report.title));
  out += "<style>" + std::string(kPageStyle) + "</style>\n</head>\n<body>\n<header>\n<h1>" + EscapeHtml(report.title) +
         "</h1>\n<p class=\"lead\">" + EscapeHtml(report.description) + "</p>\n";
  std::string facts = CountsSentence(rows, panels.size());
  facts = ChoiceSentence(options) + facts;
  if (!options.sweep.empty()) facts = "Sweep " + Shorten(options.sweep, kMaxHeading) + ". " + facts;
  out += "<p class=\"facts\">" + EscapeHtml(facts) + "</p>\n" + LeftOut(panels) + "</header>\n";
  if (shown > 1) {
    out += "<nav aria-label=\"Panels\"><ul>\n";
    for (size_t p = 0; p < shown; ++p) {
      out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", PanelId(p),
                         EscapeHtml(Shorten(panels[p].title, kMaxHeading)));
    }
    out += "</ul></nav>\n";
  }
  out += "<main>\n";
  for (size_t p = 0; p < shown; ++p) {
    const Panel& panel = panels[p];
    out += fmt::format("<section aria-labelledby=\"{}\">\n", PanelId(p));
    out += Titled("h2", fmt::format(" id=\"{}\"", PanelId(p)), panel.title, kMaxHeading) + "\n";
    const std::string paragraph = Join(Conclude(report, rows, panel.rows), " ");
    if (!paragraph.empty()) out += "<p class=\"conclusion\">" + EscapeHtml(paragraph) + "</p>\n";
    out += ChartsHtml(report, rows, panel, p);
    const SummaryTable summary = Summarize(report, rows, panel.rows);
    if (!summary.rows.empty()) out += TableHtml(rows, summary.columns, summary.rows, "");
    out += TableHtml(rows, TableColumns(report, rows, panel.rows), panel.rows, ProvenanceSentence(rows, panel.rows)) +
           "</section>\n";
  }
  if (!report.notes.empty()) {
    out += "<h2 id=\"notes\">How to read this</h2>\n";
    for (const std::string& note : report.notes) out += "<p>" + EscapeHtml(note) + "</p>\n";
  }
  out += EnvironmentsHtml(rows) + "</main>\n<script type=\"application/json\" id=\"ridgeline-rows\">" +
         DataJson(report, rows, panels, shown) + "</script>\n<script>" + std::string(kPageScript) +
         "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace ridgeline
