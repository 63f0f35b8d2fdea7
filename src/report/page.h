// The formats of a report, each made from the same rows.
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

namespace ridgeline::report {

// The limits of a page for people. CSV and JSON always hold every run.
inline constexpr size_t kMaxPanels = 24;
inline constexpr size_t kMaxPanelBytes = 3'000'000;  // of a page's panels, except the last one
inline constexpr size_t kMaxTableRows = 100;
inline constexpr size_t kMaxBars = 40;
inline constexpr size_t kMaxMarks = 100;      // in a scatter plot
inline constexpr size_t kMaxCellRuns = 1000;  // in a heat map
inline constexpr size_t kMaxLineRuns = 4000;  // in a line chart
inline constexpr size_t kMaxEnvironments = 12;

std::string RenderHtml(const Report& report, const Rows& rows, const RenderOptions& options);
std::string RenderMarkdown(const Report& report, const Rows& rows, const RenderOptions& options);
// For a terminal: each panel's answer, and a table of its key columns.
std::string RenderText(const Report& report, const Rows& rows, const RenderOptions& options);
std::string RenderJson(const Report& report, const Rows& rows, const RenderOptions& options);

// A chart over a panel's rows; no slots if there is nothing to show. `id` is unique in the page.
BarChart MakeChart(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel, const std::string& id);

// The same for a line chart; no lines if there is nothing to show.
LineChart MakeLineChart(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                        const std::string& id);

// The same for a chart of intervals, with the first kMaxBars runs; no rows if there is nothing to show.
ForestChart MakeForestChart(const Report& report, const ReportChart& chart, const Rows& rows,
                            std::span<const size_t> panel, const std::string& id);

// The same for a chart of cells; none if there is nothing to show. If runs share a place, the first successful one is
// shown.
HeatMap MakeHeatMap(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                    const std::string& id);

// The same for a scatter plot, with the first kMaxMarks runs; those on its line precede the others. No groups if no run
// has both figures.
ScatterChart MakeScatterChart(const Report& report, const ReportChart& chart, const Rows& rows,
                              std::span<const size_t> panel, const std::string& id);

// "predicted, emulated, seed 2": says if a run's figures were not measured here in their own format, and what
// distinguishes it from its neighbours beside its labels.
std::string NoteOf(const Rows& rows, size_t row);

// The axis for values of this style.
AxisScale ScaleOf(ValueStyle style);

// "6 runs in 2 panels: 5 ok, 1 failed."
std::string CountsSentence(const Rows& rows, size_t panels);

// "Campaign night-2. ": which measurements are shown, if they are not the newest. For a page, and not escaped.
std::string ChoiceSentence(const RenderOptions& options);

// "measured 5, predicted 1 (hatched)": where a panel's figures come from.
std::string ProvenanceSentence(const Rows& rows, std::span<const size_t> panel);

}  // namespace ridgeline::report
