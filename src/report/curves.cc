// Makes a panel's line charts from its rows.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "report/intervals.h"
#include "report/page.h"

namespace ridgeline::report {
namespace {

Stroke StrokeOf(const Rows& rows, size_t row) {
  if (rows.Text(row, report_columns::kProvenance) != "measured") return Stroke::kDotted;
  return rows.Emulated(row) ? Stroke::kDashed : Stroke::kSolid;
}

// The mean of every `bucket` neighbouring steps; NaN for those without a finite value.
std::vector<double> BucketMeans(const std::vector<double>& series, size_t bucket) {
  std::vector<double> means;
  for (size_t begin = 0; begin < series.size(); begin += bucket) {
    double sum = 0;
    int64_t count = 0;
    for (size_t i = begin; i < std::min(begin + bucket, series.size()); ++i) {
      if (!std::isfinite(series[i])) continue;
      sum += series[i];
      ++count;
    }
    means.push_back(sum / static_cast<double>(count));  // 0 / 0 is NaN
  }
  return means;
}

// The mean of some runs' values at x, and their range; NaN without values.
LinePoint MeanPoint(double x, const std::vector<double>& values) {
  LinePoint point{x, 0, 0, 0};
  for (const double value : values) point.y += value;
  point.y /= static_cast<double>(values.size());
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    point.low = *low;
    point.high = *high;
  }
  return point;
}

// The mean of several runs' buckets, and their range. If a run lacks a bucket, the others' count. The first bucket's x
// is `first`.
std::vector<LinePoint> MeanLine(const std::vector<std::vector<double>>& runs, size_t bucket, double first) {
  size_t length = 0;
  for (const auto& run : runs) length = std::max(length, run.size());
  std::vector<LinePoint> points;
  for (size_t b = 0; b < length; ++b) {
    std::vector<double> values;
    for (const auto& run : runs) {
      if (b < run.size() && std::isfinite(run[b])) values.push_back(run[b]);
    }
    points.push_back(
        MeanPoint(static_cast<double>(b * bucket) + (static_cast<double>(bucket) - 1) / 2 + first, values));
  }
  return points;
}

// Sets the interval of a single run's figure, if it has one.
void SetInterval(const Rows& rows, size_t row, const std::string& column, LinePoint& point) {
  const std::optional<double> low = rows.Number(row, LowColumn(column));
  const std::optional<double> high = rows.Number(row, HighColumn(column));
  if (!low || !high) return;
  point.low = *low;
  point.high = *high;
}

// Runs that share a line: they have the same text of `by`, and the same provenance.
struct Group {
  std::string label;
  size_t colour = 0;  // the index of the text among those of the panel, so it is the same in every chart
  std::vector<size_t> rows;
};

template <typename Belongs>
std::vector<Group> MakeGroups(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                              const Belongs& belongs) {
  std::vector<Group> groups;
  std::vector<std::string> texts;
  for (const size_t row : panel) {
    const std::string text = rows.Text(row, chart.as<ChartLines>().by);
    auto place = std::find(texts.begin(), texts.end(), text);
    if (place == texts.end()) place = texts.insert(place, text);
    if (!belongs(row)) continue;
    const std::string note = NoteOf(rows, row);
    const std::string label = note.empty() ? text : text + ", " + note;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.label == label; });
    if (group == groups.end()) {
      group = groups.insert(group, {label, static_cast<size_t>(place - texts.begin()), {}});
    }
    group->rows.push_back(row);
  }
  return groups;
}

// Adds lines, and names each in the chart's description.
class LineAdder {
 public:
  LineAdder(const Rows& rows, LineChart& out) : rows_(rows), out_(out) {}
  void Add(const Group& group, Curve line, const std::string& words) {
    line.colour = group.colour;
    line.stroke = StrokeOf(rows_, group.rows.front());
    line.title = words;
    out_.description += (out_.description.empty() ? "" : " ") + words + ".";
    out_.lines.push_back(std::move(line));
  }

 private:
  const Rows& rows_;
  LineChart& out_;
};

std::string FirstAndLast(const ReportChart& chart, const std::vector<LinePoint>& line) {
  std::vector<double> shown;
  for (const LinePoint& point : line) {
    if (std::isfinite(point.y)) shown.push_back(point.y);
  }
  return shown.empty()
             ? std::string("no figure")
             : fmt::format("{} to {}", FormatValue(chart.style, shown.front()), FormatValue(chart.style, shown.back()));
}

// Adds lines over steps.
void AddSeries(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel, LineChart& out) {
  std::map<size_t, std::vector<double>> series;
  size_t longest = 0;
  for (const size_t row : panel) {
    series[row] = rows.Series(row, chart.as<ChartLines>().series);
    longest = std::max(longest, series[row].size());
  }
  const auto points = static_cast<size_t>(chart.as<ChartLines>().points);
  const size_t bucket = std::max<size_t>(1, (longest + points - 1) / points);
  const std::string along = chart.as<ChartLines>().along.empty() ? "step" : chart.as<ChartLines>().along;
  const double first = chart.as<ChartLines>().along.empty() ? 1 : 0;  // steps are counted from 1
  out.x_axis = bucket == 1 ? along : fmt::format("{} (each point is the mean of {})", along, bucket);
  out.x_max = std::max(static_cast<double>(longest) - 1 + first, 1.0);
  // A small number of counted things get a dot each.
  for (size_t i = 0; first == 0 && longest <= kMaxBars && i < longest; ++i) out.at.push_back(static_cast<double>(i));
  LineAdder lines(rows, out);
  for (const Group& group : MakeGroups(chart, rows, panel, [&](size_t row) { return !series[row].empty(); })) {
    std::vector<std::vector<double>> whole;
    std::vector<size_t> failed;
    for (const size_t row : group.rows) {
      if (rows.Failed(row)) {
        failed.push_back(row);
      } else {
        whole.push_back(BucketMeans(series[row], bucket));
      }
    }
    std::string legend = group.label;
    if (!whole.empty()) {
      Curve line;
      line.points = MeanLine(whole, bucket, first);
      line.legend = std::exchange(legend, "");
      lines.Add(group, line,
                fmt::format("{}: {}, the mean of {}", group.label, FirstAndLast(chart, line.points),
                            CountOf(whole.size(), "run")));
    }
    for (const size_t row : failed) {
      Curve line;
      line.points = MeanLine({BucketMeans(series[row], bucket)}, bucket, first);
      line.legend = std::exchange(legend, "");
      const std::string failure = rows.Text(row, report_columns::kFailure);
      line.failure = fmt::format("{}: {}", rows.Text(row, chart.label), failure);
      lines.Add(group, line,
                fmt::format("{}: {}, then {}", rows.Text(row, chart.label), FirstAndLast(chart, line.points), failure));
    }
  }
}

// Adds lines over a column.
void AddFigures(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel, const std::string& x_label,
                LineChart& out) {
  const auto x = [&](size_t row) { return rows.Number(row, chart.as<ChartLines>().x); };
  const auto y = [&](size_t row) {
    return rows.Failed(row) ? std::nullopt : rows.Number(row, chart.as<ChartLines>().y);
  };
  out.log_x = chart.as<ChartLines>().log_x;
  const auto stands = [&](size_t row) { return x(row) && (!out.log_x || *x(row) > 0) && (y(row) || rows.Failed(row)); };
  // Runs that succeeded without such a figure add nothing to it, and neither do crosses beside them.
  const auto is_well = [&](size_t row) { return !rows.Failed(row); };
  if (std::any_of(panel.begin(), panel.end(), is_well) &&
      std::none_of(panel.begin(), panel.end(), [&](size_t row) { return y(row).has_value(); })) {
    return;
  }
  std::set<double> at;
  for (const size_t row : panel) {
    if (stands(row)) at.insert(*x(row));
  }
  out.x_axis = x_label;
  out.from_zero = chart.as<ChartLines>().from_zero;
  out.at.assign(at.begin(), at.end());
  std::map<double, std::string> labels;
  std::map<double, std::string> marks;
  for (const size_t row : panel) {
    if (!stands(row)) continue;
    if (!chart.as<ChartLines>().x_label.empty())
      labels.emplace(*x(row), rows.Text(row, chart.as<ChartLines>().x_label));
    if (chart.as<ChartLines>().marks.empty()) continue;
    if (std::string text = rows.Text(row, chart.as<ChartLines>().marks); !text.empty())
      marks.emplace(*x(row), std::move(text));
  }
  for (const auto& [place, label] : labels) out.at_labels.push_back(label);
  for (const auto& [place, text] : marks) out.marks.push_back({place, text});
  const auto named_place = [&](double place) {
    const auto label = labels.find(place);
    return label == labels.end() ? x_label + " " + ShortNumber(place) : label->second;
  };
  LineAdder lines(rows, out);
  std::set<size_t> named;  // colours in the legend
  const auto ended_well = [&](size_t row) { return stands(row) && !rows.Failed(row); };
  for (const Group& group : MakeGroups(chart, rows, panel, ended_well)) {
    std::map<double, std::vector<double>> values;
    std::map<double, size_t> row_at;
    for (const size_t row : group.rows) {
      values[*x(row)].push_back(*y(row));
      row_at[*x(row)] = row;
    }
    Curve line;
    std::string words;
    for (const auto& [place, several] : values) {
      line.points.push_back(MeanPoint(place, several));
      if (several.size() == 1) SetInterval(rows, row_at[place], chart.as<ChartLines>().y, line.points.back());
      std::string figure = FormatValue(chart.style, line.points.back().y) + " at " + named_place(place);
      if (several.size() > 1) figure += fmt::format(" (the mean of {})", CountOf(several.size(), "run"));
      line.points.back().title = group.label + ": " + figure;
      if (values.size() <= kMaxBars) words += (words.empty() ? "" : ", ") + figure;
    }
    if (words.empty()) words = fmt::format("{} figures, {}", values.size(), FirstAndLast(chart, line.points));
    line.legend = group.label;
    named.insert(group.colour);
    lines.Add(group, line, fmt::format("{}: {}", group.label, words));
  }
  const auto failed = [&](size_t row) { return stands(row) && rows.Failed(row); };
  for (const Group& group : MakeGroups(chart, rows, panel, failed)) {
    const std::string text = rows.Text(group.rows.front(), chart.as<ChartLines>().by);
    for (const size_t row : group.rows) {
      Curve line;
      line.points = {MeanPoint(*x(row), {})};
      if (named.insert(group.colour).second) line.legend = text;
      line.failure = fmt::format("{}, {}: {}", text, named_place(*x(row)), rows.Text(row, report_columns::kFailure));
      const std::string words = line.failure;
      lines.Add(group, std::move(line), words);
    }
  }
  if (out.at.size() < 2) out.lines.clear();  // a line needs more than one place
}

}  // namespace

LineChart MakeLineChart(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                        const std::string& id) {
  LineChart out;
  out.id = id;
  out.title = chart.title + ": " + rows.Text(panel.front(), report_columns::kPanel);
  out.y_axis = chart.axis;
  out.scale = ScaleOf(chart.style);
  out.log = chart.as<ChartLines>().log;
  if (chart.as<ChartLines>().x.empty()) {
    AddSeries(chart, rows, panel, out);
  } else {
    const ReportColumn* column = FindColumn(report, chart.as<ChartLines>().x);
    AddFigures(chart, rows, panel, column == nullptr ? chart.as<ChartLines>().x : column->label, out);
  }
  return out;
}

}  // namespace ridgeline::report
