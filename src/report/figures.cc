// A panel's rows -> the charts and sentences a page shows of them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "report/page.h"

namespace ridgeline {
namespace {

constexpr size_t kGrey = 7;  // the palette's last: a secondary bar beside a stack

Fill FillOf(std::string_view provenance) {
  if (provenance == "predicted") return Fill::kHatched;
  if (provenance == "published") return Fill::kDotted;
  return Fill::kSolid;
}

std::string NoteOf(const Rows& rows, size_t row) {
  std::string note = rows.Text(row, report_columns::kProvenance);
  if (note == "measured") note.clear();
  if (rows.Emulated(row)) note += note.empty() ? "emulated" : ", emulated";
  return note;
}

AxisScale ScaleOf(ValueStyle style) {
  if (style == ValueStyle::kBytes) return AxisScale::kBytes;
  return style == ValueStyle::kCount ? AxisScale::kCount : AxisScale::kPlain;
}

// The palette index of every part of every bar: parts take the next one, a light bar that of the plain bar before it.
std::vector<std::vector<size_t>> Colours(const ReportChart& chart) {
  std::vector<std::vector<size_t>> colours;
  size_t next = 0;
  for (const ChartBar& bar : chart.bars) {
    const bool follows_plain = !colours.empty() && colours.back().size() == 1;
    auto& own = colours.emplace_back();
    for (size_t part = 0; part < bar.stack.size(); ++part) {
      own.push_back(!bar.light ? next++ : follows_plain ? colours[colours.size() - 2][0] : kGrey);
    }
  }
  return colours;
}

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

// The mean of several runs' buckets and what they span; a bucket that a run lacks is the others'.
std::vector<LinePoint> MeanLine(const std::vector<std::vector<double>>& runs, size_t bucket) {
  size_t length = 0;
  for (const auto& run : runs) length = std::max(length, run.size());
  std::vector<LinePoint> points;
  for (size_t b = 0; b < length; ++b) {
    LinePoint point{static_cast<double>(b * bucket) + (static_cast<double>(bucket) + 1) / 2, 0, 0, 0};
    std::vector<double> values;
    for (const auto& run : runs) {
      if (b < run.size() && std::isfinite(run[b])) values.push_back(run[b]);
    }
    for (const double value : values) point.y += value;
    point.y /= static_cast<double>(values.size());
    if (!values.empty()) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      point.low = *low;
      point.high = *high;
    }
    points.push_back(point);
  }
  return points;
}

std::string Runs(size_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

}  // namespace

LineChart MakeLineChart(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                        const std::string& id) {
  // Runs that are not of the same provenance never share a line.
  struct Group {
    std::string label;
    size_t colour = 0;
    std::vector<size_t> rows;
  };
  std::vector<Group> groups;
  std::vector<std::string> colours;  // the texts of `by`, in the order they come
  std::map<size_t, std::vector<double>> series;
  size_t longest = 0;
  for (const size_t row : panel) {
    const std::string text = rows.Text(row, chart.lines->by);
    if (std::find(colours.begin(), colours.end(), text) == colours.end()) colours.push_back(text);
    const std::string note = NoteOf(rows, row);
    const std::string label = note.empty() ? text : text + ", " + note;
    series[row] = rows.Series(row, chart.lines->series);
    if (series[row].empty()) continue;
    longest = std::max(longest, series[row].size());
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.label == label; });
    if (group == groups.end()) {
      const auto colour = std::find(colours.begin(), colours.end(), text) - colours.begin();
      group = groups.insert(group, {label, static_cast<size_t>(colour), {}});
    }
    group->rows.push_back(row);
  }

  const auto points = static_cast<size_t>(chart.lines->points);
  const size_t bucket = std::max<size_t>(1, (longest + points - 1) / points);
  LineChart out;
  out.id = id;
  out.title = chart.title + ": " + rows.Text(panel.front(), report_columns::kPanel);
  out.x_axis = bucket == 1 ? "step" : fmt::format("step (each point is the mean of {})", bucket);
  out.y_axis = chart.axis;
  out.x_max = static_cast<double>(std::max<size_t>(longest, 1));
  out.log = chart.lines->log;
  const auto add = [&](const Group& group, Curve line, const std::string& words) {
    line.colour = group.colour;
    line.stroke = StrokeOf(rows, group.rows.front());
    line.title = words;
    out.description += (out.description.empty() ? "" : " ") + words + ".";
    out.lines.push_back(std::move(line));
  };
  const auto first_and_last = [&](const std::vector<LinePoint>& line) {
    std::vector<double> shown;
    for (const LinePoint& point : line) {
      if (std::isfinite(point.y)) shown.push_back(point.y);
    }
    return shown.empty() ? std::string("no figure")
                         : fmt::format("{} to {}", FormatValue(chart.style, shown.front()),
                                       FormatValue(chart.style, shown.back()));
  };
  for (const Group& group : groups) {
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
      line.points = MeanLine(whole, bucket);
      line.legend = std::exchange(legend, "");
      add(group, line,
          fmt::format("{}: {}, the mean of {}", group.label, first_and_last(line.points), Runs(whole.size())));
    }
    for (const size_t row : failed) {
      Curve line;
      line.points = MeanLine({BucketMeans(series[row], bucket)}, bucket);
      line.legend = std::exchange(legend, "");
      const std::string failure = rows.Text(row, report_columns::kFailure);
      line.failure = fmt::format("{}: {}", rows.Text(row, chart.label), failure);
      add(group, line,
          fmt::format("{}: {}, then {}", rows.Text(row, chart.label), first_and_last(line.points), failure));
    }
  }
  return out;
}

BarChart MakeChart(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel, const std::string& id) {
  BarChart out;
  out.id = id;
  out.title = chart.title + ": " + rows.Text(panel.front(), report_columns::kPanel);
  out.axis = chart.axis;
  out.scale = ScaleOf(chart.style);
  const auto colours = Colours(chart);
  const auto value_text = [&](double value) {
    const std::string text = FormatValue(chart.style, value);
    return chart.axis.empty() ? text : text + " " + chart.axis;
  };
  std::set<std::pair<size_t, size_t>> shown;  // (bar, part) with a value somewhere
  std::set<std::string> provenances;
  bool any = false;
  bool any_wanted = false;
  for (const size_t row : panel.first(std::min(panel.size(), kMaxBars))) {
    Slot slot;
    slot.label = rows.Text(row, chart.label);
    slot.cluster = chart.cluster.empty() ? "" : rows.Text(row, chart.cluster);
    slot.note = NoteOf(rows, row);
    slot.failure = rows.Text(row, report_columns::kFailure);
    slot.title = slot.label + (slot.cluster.empty() ? "" : ", " + slot.cluster);
    std::string words;
    const std::string provenance = rows.Text(row, report_columns::kProvenance);
    const std::string mark = slot.note.empty() ? provenance : slot.note;
    if (!slot.failure.empty()) {
      words = slot.failure;
      slot.wanted = chart.wanted.empty() ? 0 : rows.Number(row, chart.wanted).value_or(0);
      slot.wanted_text = value_text(slot.wanted);
      if (slot.wanted > 0) words += ", wanted " + slot.wanted_text;
      any = true;
      any_wanted = any_wanted || slot.wanted > 0;
      slot.note.clear();
    }
    for (size_t b = 0; b < chart.bars.size(); ++b) {
      const ChartBar& from = chart.bars[b];
      Bar bar;
      double total = 0;
      for (size_t part = 0; slot.failure.empty() && part < from.stack.size(); ++part) {
        const std::optional<double> value = rows.Number(row, from.stack[part].column);
        if (!value || *value < 0) continue;
        total += *value;
        bar.parts.push_back({*value, colours[b][part], ""});
        if (from.stack.size() > 1) {
          bar.parts.back().title = fmt::format("{}: {}, {}", slot.title, from.stack[part].label, value_text(*value));
        }
        if (*value > 0) shown.emplace(b, part);
      }
      bar.fill = FillOf(provenance);
      bar.light = from.light;
      if (!bar.parts.empty()) {
        any = true;
        provenances.insert(provenance);
        const std::string said = fmt::format("{} {}", from.label, value_text(total));
        bar.title = fmt::format("{}: {} ({})", slot.title, said, mark);
        words += (words.empty() ? "" : ", ") + said;
      }
      slot.bars.push_back(std::move(bar));
    }
    if (words.empty()) words = "no figure";
    out.description += fmt::format("{}{}: {} ({}).", out.description.empty() ? "" : " ", slot.title, words, mark);
    slot.title = fmt::format("{}: {} ({})", slot.title, words, mark);
    out.slots.push_back(std::move(slot));
  }
  if (!any) out.slots.clear();
  for (const auto& [b, part] : shown) {
    const ChartBar& bar = chart.bars[b];
    out.legend.push_back(
        {bar.stack.size() > 1 ? bar.stack[part].label : bar.label, colours[b][part], Fill::kSolid, bar.light, false});
  }
  for (const std::string& provenance : provenances) {
    const Fill fill = FillOf(provenance);
    if (fill != Fill::kSolid) out.legend.push_back({provenance, kGrey, fill, false, false});
  }
  if (any_wanted) out.legend.push_back({"wanted, did not fit", 0, Fill::kSolid, false, true});
  return out;
}

std::string CountsSentence(const Rows& rows, size_t panels) {
  if (rows.size() == 0) return "There are no runs to show yet.";
  size_t failed = 0;
  for (size_t row = 0; row < rows.size(); ++row) failed += rows.Failed(row) ? 1 : 0;
  std::string text = fmt::format("{} run{} in {} panel{}: {} ok", rows.size(), rows.size() == 1 ? "" : "s", panels,
                                 panels == 1 ? "" : "s", rows.size() - failed);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  return text + ".";
}

std::string ChoiceSentence(const RenderOptions& options) {
  if (!options.campaign.empty()) return "Campaign " + options.campaign + ". ";
  return options.all_measurements ? "Every measurement. " : "";
}

std::string ProvenanceSentence(const Rows& rows, std::span<const size_t> panel) {
  std::map<std::string, size_t> counts;
  size_t emulated = 0;
  for (const size_t row : panel) {
    if (rows.Failed(row)) continue;
    ++counts[rows.Text(row, report_columns::kProvenance)];
    emulated += rows.Emulated(row) ? 1 : 0;
  }
  std::string text;
  for (const auto& [provenance, count] : counts) {
    const Fill fill = FillOf(provenance);
    text += text.empty() ? "Provenance: " : ", ";
    text += provenance;
    if (counts.size() > 1) text += fmt::format(" {} run{}", count, count == 1 ? "" : "s");
    if (fill != Fill::kSolid) text += fill == Fill::kHatched ? " (hatched)" : " (dotted)";
  }
  if (emulated > 0) text += fmt::format("; {} emulated", emulated);
  return text.empty() ? text : text + ".";
}

}  // namespace ridgeline
