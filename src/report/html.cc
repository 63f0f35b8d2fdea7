// The page: a single file that fetches nothing. It is readable, and its charts are right, with neither style nor
// script.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "report/assets.h"
#include "report/escape.h"
#include "report/html_table.h"
#include "report/page.h"

namespace ridgeline::report {
namespace {

constexpr size_t kMaxHeading = 140;
constexpr size_t kSlotsOfHalfAPage = 8;

std::string Draw(const BarChart& chart, const svg::Room& room) { return RenderBarChart(chart, room); }
std::string Draw(const LineChart& chart, const svg::Room& room) { return RenderLineChart(chart, room); }
std::string Draw(const ForestChart& chart, const svg::Room& room) { return RenderForestChart(chart, room); }
std::string Draw(const HeatMap& map, const svg::Room& room) { return RenderHeatMap(map, room); }
std::string Draw(const ScatterChart& chart, const svg::Room& room) { return RenderScatterChart(chart, room); }

std::string PanelId(size_t panel) { return fmt::format("panel-{}", panel + 1); }

// A chart of a panel, and how wide it is drawn on a large screen.
struct Figure {
  const ReportChart* from = nullptr;
  std::variant<BarChart, LineChart, ForestChart, HeatMap, ScatterChart> chart;
  std::string note;
  bool full = false;  // the page's width; else half of it
};

std::vector<Figure> MakeFigures(const Report& report, const Rows& rows, const Panel& panel, size_t number) {
  std::vector<Figure> figures;
  const auto first = [&](size_t most) { return std::span(panel.rows).first(std::min(panel.rows.size(), most)); };
  const auto note_of = [&](const ReportChart& from, size_t drawn) {
    if (drawn >= panel.rows.size()) return from.note;
    return from.note + fmt::format(" The first {} of {} are drawn.", drawn, rows.Counted(panel.rows.size()));
  };
  for (const ReportChart& from : report.charts) {
    const std::string id = fmt::format("{}-{}", from.id, number + 1);
    if (std::holds_alternative<ChartLines>(from.kind)) {
      LineChart chart = MakeLineChart(report, from, rows, first(kMaxLineRuns), id);
      if (!chart.lines.empty()) figures.push_back({&from, std::move(chart), note_of(from, kMaxLineRuns), false});
      continue;
    }
    if (std::holds_alternative<ChartCells>(from.kind)) {
      HeatMap map = MakeHeatMap(report, from, rows, first(kMaxCellRuns), id);
      if (!map.cells.empty()) figures.push_back({&from, std::move(map), note_of(from, kMaxCellRuns), false});
      continue;
    }
    if (std::holds_alternative<ChartIntervals>(from.kind)) {
      ForestChart chart = MakeForestChart(report, from, rows, panel.rows, id);
      if (!chart.rows.empty()) figures.push_back({&from, std::move(chart), from.note, false});
      continue;
    }
    if (std::holds_alternative<ChartScatter>(from.kind)) {
      ScatterChart chart = MakeScatterChart(report, from, rows, panel.rows, id);
      if (chart.groups.empty()) continue;
      std::string note = from.note;
      if (panel.rows.size() > kMaxMarks) note += fmt::format(" At most {} are drawn.", rows.Counted(kMaxMarks));
      figures.push_back({&from, std::move(chart), std::move(note), false});
      continue;
    }
    BarChart chart = MakeChart(from, rows, panel.rows, id);
    const size_t slots = chart.slots.size();
    if (slots == 0) continue;
    std::string note = note_of(from, slots);
    const std::string provenance = ProvenanceSentence(rows, std::span(panel.rows).first(slots));
    if (!provenance.empty()) note += " " + provenance;
    figures.push_back({&from, std::move(chart), std::move(note), slots > kSlotsOfHalfAPage});
  }
  // The first chart answers the panel's question. Of the others, one without a neighbour takes the whole page.
  if (!figures.empty()) figures.front().full = true;
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].full) continue;
    if (i + 1 < figures.size() && !figures[i + 1].full) {
      ++i;
    } else {
      figures[i].full = true;
    }
  }
  return figures;
}

// The chart, drawn for each width of a page. The style shows the one that fits; without style, the middle one is shown.
std::string FigureHtml(const Figure& figure) {
  const auto drawn = [&](const svg::Room& room, std::string_view name) {
    return std::visit(
        [&](auto chart) {
          chart.id += fmt::format("-{}", name);
          return Draw(chart, room);
        },
        figure.chart);
  };
  std::string out =
      fmt::format("<figure{}><figcaption><strong>{}</strong> <small>{}</small></figcaption>\n",
                  figure.full ? " class=\"full\"" : "", EscapeHtml(figure.from->title), EscapeHtml(figure.note));
  if (figure.full) out += "<div class=\"wide\" hidden=\"\">\n" + drawn(svg::kWide, "wide") + "</div>\n";
  out += "<div class=\"medium\">\n" + drawn(svg::kMedium, "medium") + "</div>\n";
  out += "<div class=\"narrow\" hidden=\"\">\n" + drawn(svg::kNarrow, "narrow") + "</div>\n";
  return out + "</figure>\n";
}

// The answer, in a sentence over a chart; then all other sentences, charts and tables.
std::string PanelHtml(const Report& report, const Rows& rows, const Panel& panel, size_t number) {
  std::string out = fmt::format("<section aria-labelledby=\"{}\">\n", PanelId(number));
  out += Titled("h2", fmt::format(" id=\"{}\"", PanelId(number)), panel.title, kMaxHeading) + "\n";
  const std::vector<std::string> said = Conclude(report, rows, panel.rows);
  if (!said.empty()) out += "<p class=\"answer\">" + EscapeHtml(said.front()) + "</p>\n";
  const std::vector<Figure> figures = MakeFigures(report, rows, panel, number);
  if (!figures.empty()) out += "<div class=\"charts\">\n" + FigureHtml(figures.front()) + "</div>\n";
  if (said.size() > 1) {
    out += "<p class=\"conclusion\">" + EscapeHtml(Join({said.begin() + 1, said.end()}, " ")) + "</p>\n";
  }
  if (figures.size() > 1) {
    out += "<div class=\"charts\">\n";
    for (const Figure& figure : std::span(figures).subspan(1)) out += FigureHtml(figure);
    out += "</div>\n";
  }
  const SummaryTable summary = Summarize(report, rows, panel.rows);
  if (!summary.rows.empty())
    out += TableHtml(rows, summary.columns, summary.rows, "", fmt::format("summary-{}", number + 1));
  return out +
         TableHtml(rows, TableColumns(report, rows, panel.rows), panel.rows, ProvenanceSentence(rows, panel.rows),
                   fmt::format("runs-{}", number + 1)) +
         "</section>\n";
}

std::string EnvironmentsHtml(const Rows& rows) {
  const std::vector<Environment> environments = DistinctEnvironments(rows);
  if (environments.empty()) return {};
  std::string out = "<h2 id=\"environment\">Environment</h2>\n";
  const size_t shown = std::min(environments.size(), kMaxEnvironments);
  for (size_t i = 0; i < shown; ++i) {
    const Environment& environment = environments[i];
    if (environments.size() > 1) {
      out += fmt::format("<h3>Environment {}: {}</h3>\n", i + 1, CountOf(environment.runs, "run"));
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

std::string LeftOut(const Rows& rows, const std::vector<Panel>& panels, size_t shown) {
  if (panels.size() <= shown) return {};
  size_t runs = 0;
  for (size_t p = shown; p < panels.size(); ++p) runs += panels[p].rows.size();
  return fmt::format(
      "<p class=\"note\" id=\"left-out\">This page shows the first {} of {} panels; {} are left out. The CSV and "
      "the JSON of this report hold all of them.</p>\n",
      shown, panels.size(), rows.Counted(runs));
}

std::string DataJson(const Report& report, const Rows& rows, const std::vector<Panel>& panels, size_t shown) {
  Json list = Json::array();
  for (size_t p = 0; p < shown; ++p) {
    for (const size_t row : std::span(panels[p].rows).first(std::min(panels[p].rows.size(), kMaxTableRows))) {
      Json object = Json::object();
      for (const ReportColumn& column : report.columns) {
        // CSV and JSON have series, and no form has the other columns.
        if (column.style == ValueStyle::kSeries || column.hide == ReportColumn::Hide::kEverywhere) continue;
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
  std::string drawn;
  size_t shown = 0;
  for (; shown < std::min(panels.size(), kMaxPanels) && drawn.size() < kMaxPanelBytes; ++shown) {
    drawn += PanelHtml(report, rows, panels[shown], shown);
  }
  std::string out = PageHead(report.title) + "<header>\n<h1>" + EscapeHtml(report.title) + "</h1>\n<p class=\"lead\">" +
                    EscapeHtml(report.description) + "</p>\n";
  std::string facts = CountsSentence(rows, panels.size());
  facts = ChoiceSentence(options) + facts;
  if (!options.sweep.empty()) facts = "Sweep " + ShortenToCodePoints(options.sweep, kMaxHeading) + ". " + facts;
  if (!report.measured.empty()) facts += " " + report.measured;
  out += "<p class=\"facts\">" + EscapeHtml(facts) + "</p>\n" + LeftOut(rows, panels, shown) + "</header>\n";
  if (shown > 1) {
    out += "<nav aria-label=\"Panels\"><ul>\n";
    for (size_t p = 0; p < shown; ++p) {
      const std::vector<std::string> said = Conclude(report, rows, panels[p].rows);
      out += fmt::format("<li><a href=\"#{}\">{}</a>{}</li>\n", PanelId(p),
                         EscapeHtml(ShortenToCodePoints(panels[p].title, kMaxHeading)),
                         said.empty() ? "" : "<br/>" + EscapeHtml(said.front()));
    }
    out += "</ul></nav>\n";
  }
  out += "<main>\n" + drawn;
  if (!report.notes.empty()) {
    out += "<h2 id=\"notes\">How to read this</h2>\n";
    for (const std::string& note : report.notes) out += "<p>" + EscapeHtml(note) + "</p>\n";
  }
  out += EnvironmentsHtml(rows) + "</main>\n<script type=\"application/json\" id=\"ridgeline-rows\">" +
         DataJson(report, rows, panels, shown) + "</script>\n<script>" + std::string(kPageScript) +
         "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace ridgeline::report
