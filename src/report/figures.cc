// Makes a panel's bar charts and sentences from its rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "report/intervals.h"
#include "report/page.h"
#include "run/disturbance.h"

namespace ridgeline::report {
namespace {

// With the version that it printed, if the answer has both, and the definition that started it.
std::string TrainerOf(const Rows& rows, size_t row) {
  std::string trainer = rows.Text(row, report_columns::kTrainer);
  if (trainer.empty()) return trainer;
  const std::string version = rows.Text(row, report_columns::kVersion);
  if (!version.empty()) trainer += " " + version;
  const ShownFacts facts = EnvironmentFacts(rows, row);
  const auto definition = facts.find("definition");
  return definition == facts.end() ? trainer : trainer + ", definition " + definition->second;
}

constexpr size_t kGrey = 7;  // the palette's last: a secondary bar beside a stack

Fill FillOf(std::string_view provenance) {
  if (provenance == "predicted") return Fill::kHatched;
  if (provenance == "published") return Fill::kDotted;
  return Fill::kSolid;
}

// The palette index of every part of every bar. Parts take the next one, and a light bar that of the plain bar before
// it.
std::vector<std::vector<size_t>> Colours(const ReportChart& chart) {
  std::vector<std::vector<size_t>> colours;
  size_t next = 0;
  for (const ChartBar& bar : chart.as<ChartBars>().bars) {
    const bool follows_plain = !colours.empty() && colours.back().size() == 1;
    auto& own = colours.emplace_back();
    for (size_t part = 0; part < bar.stack.size(); ++part) {
      own.push_back(!bar.light ? next++ : follows_plain ? colours[colours.size() - 2][0] : kGrey);
    }
  }
  return colours;
}

// For a plain bar whose figure has an interval.
void AddErrorBar(const Rows& rows, size_t row, const ChartBar& from, Bar& bar) {
  if (from.stack.size() != 1) return;
  const std::optional<double> low = rows.Number(row, LowColumn(from.stack[0].column));
  const std::optional<double> high = rows.Number(row, HighColumn(from.stack[0].column));
  if (!low || !high) return;
  bar.low = *low;
  bar.high = *high;
}

}  // namespace

std::string NoteOf(const Rows& rows, size_t row) {
  std::string note = rows.Text(row, report_columns::kProvenance);
  if (note == "measured") note.clear();
  if (rows.Emulated(row)) note += note.empty() ? "emulated" : ", emulated";
  if (rows.DisturbedShare(row) && !rows.AllAreDisturbed()) note += note.empty() ? "disturbed" : ", disturbed";
  const std::string differs = rows.Text(row, report_columns::kDiffers);
  if (!differs.empty()) note += (note.empty() ? "" : ", ") + differs;
  return note;
}

AxisScale ScaleOf(ValueStyle style) {
  if (style == ValueStyle::kBytes) return AxisScale::kBytes;
  return style == ValueStyle::kCount ? AxisScale::kCount : AxisScale::kPlain;
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
      slot.note = rows.Text(row, report_columns::kDiffers);
    }
    for (size_t b = 0; b < chart.as<ChartBars>().bars.size(); ++b) {
      const ChartBar& from = chart.as<ChartBars>().bars[b];
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
        std::string said = fmt::format("{} {}", from.label, value_text(total));
        AddErrorBar(rows, row, from, bar);
        if (bar.high > 0) said += fmt::format(" ({} to {})", value_text(bar.low), value_text(bar.high));
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
    const ChartBar& bar = chart.as<ChartBars>().bars[b];
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
  const Report& report = rows.report();
  if (rows.size() == 0) return report.empty.empty() ? "There are no runs to show yet." : report.empty;
  std::string text = fmt::format("{} in {}: ", rows.Counted(rows.size()), CountOf(panels, "panel"));
  if (!report.rows.by.empty()) {
    std::vector<std::pair<std::string, size_t>> counts;  // in the order of the rows
    for (size_t row = 0; row < rows.size(); ++row) {
      const std::string of = rows.Text(row, report.rows.by);
      const auto count = std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == of; });
      if (count == counts.end()) {
        counts.emplace_back(of, 1);
      } else {
        ++count->second;
      }
    }
    std::vector<std::string> words;
    for (const auto& [of, count] : counts) words.push_back(fmt::format("{} {}", count, of));
    return text + Join(words, ", ") + ".";
  }
  size_t failed = 0;
  for (size_t row = 0; row < rows.size(); ++row) failed += rows.Failed(row) ? 1 : 0;
  text += fmt::format("{} ok", rows.size() - failed);
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
  size_t disturbed = 0;
  std::set<std::string> trainers;
  for (const size_t row : panel) {
    if (rows.Failed(row)) continue;
    ++counts[rows.Text(row, report_columns::kProvenance)];
    if (rows.Text(row, report_columns::kProvenance) == "measured") trainers.insert(TrainerOf(rows, row));
    emulated += rows.Emulated(row) ? 1 : 0;
    disturbed += rows.DisturbedShare(row) ? 1 : 0;
  }
  std::string text;
  for (const auto& [provenance, count] : counts) {
    const Fill fill = FillOf(provenance);
    text += text.empty() ? "Provenance: " : ", ";
    text += provenance;
    if (counts.size() > 1) text += fmt::format(" {}", CountOf(count, "run"));
    if (fill != Fill::kSolid) text += fill == Fill::kHatched ? " (hatched)" : " (dotted)";
  }
  if (disturbed > 0 && rows.AllAreDisturbed()) {
    text += fmt::format("; {}disturbed: others held more than {:.0f} % of the cores", disturbed > 1 ? "all " : "",
                        100 * kHeadlineShare);
  } else if (disturbed > 0) {
    text += fmt::format("; {} disturbed ({}: others held more than {:.0f} % of the cores)", disturbed, kDisturbedMark,
                        100 * kHeadlineShare);
  }
  if (emulated > 0) text += fmt::format("; {} emulated", emulated);
  trainers.erase("");
  if (!trainers.empty()) text += "; by " + Join({trainers.begin(), trainers.end()}, ", ");
  return text.empty() ? text : text + ".";
}

}  // namespace ridgeline::report
