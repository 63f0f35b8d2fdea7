#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "report/differences.h"
#include "report/origin.h"
#include "report/page.h"
#include "report/report.h"
#include "report/rows.h"
#include "report/run_columns.h"
#include "report/swept.h"
#include "store/store.h"

namespace ridgeline::report {

ReportFormat ReportFormatNamed(std::string_view name) {
  if (name == "html") return ReportFormat::kHtml;
  if (name == "csv") return ReportFormat::kCsv;
  if (name == "md") return ReportFormat::kMarkdown;
  if (name == "json") return ReportFormat::kJson;
  if (name == "text") return ReportFormat::kText;
  throw Error(ErrorKind::kUsage, fmt::format("no report can be written as '{}'", name),
              "as html, csv, md, json or text");
}

// Every run, and the panels in words. ToJson writes the rows, because it keeps the order of the columns.
std::string RenderJson(const Report& report, Rows&& rows, const RenderOptions& options) {
  Json columns = Json::array();
  for (const ReportColumn& column : report.columns) {
    columns.push_back({{"name", column.name},
                       {"label", column.group.empty() ? column.label : column.group + ": " + column.label},
                       {"help", column.help}});
  }
  Json panels = Json::array();
  const std::vector<Panel> all = MakePanels(rows);
  for (const Panel& panel : all) {
    panels.push_back(
        {{"title", panel.title}, {"runs", panel.rows.size()}, {"conclusion", Conclude(report, rows, panel.rows)}});
  }
  Json environments = Json::array();
  for (const Environment& environment : DistinctEnvironments(rows)) {
    environments.push_back(
        {{"facts", environment.facts}, {"command", environment.command}, {"runs", environment.runs}});
  }
  Json head = {{"report", report.name},       {"title", report.title},
               {"sweep", options.sweep},      {"columns", std::move(columns)},
               {"panels", std::move(panels)}, {"environments", std::move(environments)}};
  if (!report.measured.empty()) head["measured"] = report.measured;
  if (!options.campaign.empty()) head["campaign"] = options.campaign;
  if (options.all_measurements) head["all_measurements"] = true;
  std::string text = ShowJson(head, 2);
  text.erase(text.find_last_of('}') - 1);
  std::vector<std::string> series;
  for (const ReportColumn& column : report.columns) {
    if (column.style != ValueStyle::kSeries) continue;
    series.push_back(column.name);
    for (size_t row = 0; row < rows.size(); ++row) rows.Series(row, column.name);  // throws if it is invalid
  }
  return text + ",\n  \"rows\": " + ToJson(std::move(rows).Shown(), series) + "}\n";
}

RenderedReport RenderRows(const Report& report, Table table, const RenderOptions& options) {
  Rows rows(report, std::move(table));
  RenderedReport rendered;
  rendered.runs = static_cast<int64_t>(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) rendered.failed += rows.Failed(row) ? 1 : 0;
  const std::vector<Panel> panels = MakePanels(rows);
  rendered.counts = CountsSentence(rows, panels.size());
  for (const Panel& panel : std::span(panels).first(std::min(panels.size(), kMaxPanels))) {
    const std::vector<std::string> said = Conclude(report, rows, panel.rows);
    if (!said.empty()) rendered.answers.push_back(panel.title + ": " + said.front());
  }
  switch (options.format) {
    case ReportFormat::kHtml:
      rendered.bytes = RenderHtml(report, rows, options);
      break;
    case ReportFormat::kCsv:
      rendered.bytes = ToCsv(std::move(rows).Shown());
      break;
    case ReportFormat::kMarkdown:
      rendered.bytes = RenderMarkdown(report, rows, options);
      break;
    case ReportFormat::kText:
      rendered.bytes = RenderText(report, rows, options);
      break;
    case ReportFormat::kJson:
      rendered.bytes = RenderJson(report, std::move(rows), options);
      break;
  }
  return rendered;
}

RenderedReport Render(const Report& of_all, store::Store& store, const RenderOptions& options) {
  std::map<std::string, std::string> parameters;
  if (!options.sweep.empty()) {
    store.Progress(options.sweep);  // throws for a sweep that the store does not know
    parameters["sweep"] = options.sweep;
  }
  if (!options.campaign.empty() && !store.HasCampaign(options.campaign)) {
    throw Error(ErrorKind::kUsage, fmt::format("nothing was measured for the campaign '{}'", options.campaign),
                "`ridgeline query \"SELECT DISTINCT campaign FROM measurements\"` lists them");
  }
  if (!options.input.empty()) parameters["input"] = options.input;
  store.ChooseRuns({options.all_measurements, options.campaign});
  Table rows = store.Query(of_all.sql, parameters);
  Report report = of_all;
  report.measured = MeasuredSentence(store, rows);
  AddRunColumns(report, store, rows);
  const bool for_people = options.format != ReportFormat::kCsv && options.format != ReportFormat::kJson;
  if (for_people) {
    AddDifferences(report, store, rows);
  } else {
    AddWhatDiffers(report, store, rows);
  }
  return RenderRows(report, std::move(rows), options);
}

}  // namespace ridgeline::report
