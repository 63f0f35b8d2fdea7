// The formats a report is written in, each from the same rows.
#pragma once

#include <span>
#include <string>

#include "report/chart.h"
#include "report/forest.h"
#include "report/heat_map.h"
#include "report/lines.h"
#include "report/report.h"
#include "report/rows.h"
#include "report/scatter.h"

namespace ridgeline {

// What a page for people holds at most; CSV and JSON always hold every run.
inline constexpr size_t kMaxPanels = 24;
inline constexpr size_t kMaxPanelBytes = 3'000'000;  // of the panels of a page, but for the last one's
inline constexpr size_t kMaxTableRows = 100;
inline constexpr size_t kMaxBars = 40;
inline constexpr size_t kMaxMarks = 100;      // of a scatter plot
inline constexpr size_t kMaxCellRuns = 1000;  // of a heat map
inline constexpr size_t kMaxLineRuns = 4000;  // of a chart of lines
inline constexpr size_t kMaxEnvironments = 12;

std::string RenderHtml(const Report& report, const Rows& rows, const RenderOptions& options);
std::string RenderMarkdown(const Report& report, const Rows& rows, const RenderOptions& options);
// For a terminal: each panel's answer, and a table of its key columns.
std::string RenderText(const Report& report, const Rows& rows, const RenderOptions& options);
std::string RenderJson(const Report& report, const Rows& rows, const RenderOptions& options);

// A chart over a panel's rows; no slots where it has nothing to show. `id` is unique in the page.
BarChart MakeChart(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel, const std::string& id);

// The same for a chart of lines; no lines where it has nothing to show.
LineChart MakeLineChart(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                        const std::string& id);

// The same for a chart of intervals; no rows where it has nothing to show. The first kMaxBars runs.
ForestChart MakeForestChart(const Report& report, const ReportChart& chart, const Rows& rows,
                            std::span<const size_t> panel, const std::string& id);

// The same for a chart of cells; none where it has nothing to show. Of runs that share a place the first that ended
// well has it.
HeatMap MakeHeatMap(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                    const std::string& id);

// The same for a scatter plot; no groups where no run has both figures. The first kMaxMarks runs, those before the
// others that its line goes through.
ScatterChart MakeScatterChart(const Report& report, const ReportChart& chart, const Rows& rows,
                              std::span<const size_t> panel, const std::string& id);

// "predicted, emulated, seed 2": what a run's figures are, where they were not measured here in their own format, and
// what tells it from its neighbours beside its labels.
std::string NoteOf(const Rows& rows, size_t row);

// The axis that values of this style have.
AxisScale ScaleOf(ValueStyle style);

// "6 runs in 2 panels: 5 ok, 1 failed."
std::string CountsSentence(const Rows& rows, size_t panels);

// "Campaign night-2. ": which measurements are shown, where they are not the newest; for a page, and not escaped.
std::string ChoiceSentence(const RenderOptions& options);

// "measured 5, predicted 1 (hatched)": where a panel's figures come from.
std::string ProvenanceSentence(const Rows& rows, std::span<const size_t> panel);

}  // namespace ridgeline
