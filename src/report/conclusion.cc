// Makes sentences with figures, but only if they have something to say.
#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "report/rows.h"

namespace ridgeline::report {
namespace {

bool Meets(const Rows& rows, size_t row, const RowPick& pick) {
  return std::all_of(pick.where.begin(), pick.where.end(), [&](const auto& condition) {
    const auto& [column, texts] = condition;
    return std::find(texts.begin(), texts.end(), rows.Text(row, column)) != texts.end();
  });
}

std::optional<size_t> Pick(const Rows& rows, std::span<const size_t> panel, const RowPick& pick) {
  const std::string& column = pick.max.empty() ? pick.min : pick.max;
  const double sign = pick.max.empty() ? -1 : 1;
  std::optional<size_t> best;
  double best_value = 0;
  for (const size_t row : panel) {
    if (!Meets(rows, row, pick)) continue;
    if (column.empty()) return row;
    const std::optional<double> value = rows.Number(row, column);
    if (value && (!best || sign * *value > best_value)) {
      best = row;
      best_value = sign * *value;
    }
  }
  return best;
}

// The column to whose interval or comparison this name belongs, else the report's column of this name.
const ReportColumn* ColumnBehind(const Report& report, const std::string& name) {
  for (const std::string_view end : {"_low", "_high", "_change", "_within_percent", "_more_repeats", "_then_percent"}) {
    if (!name.ends_with(end)) continue;
    const ReportColumn* column = FindColumn(report, name.substr(0, name.size() - end.size()));
    if (column != nullptr && !column->steps_of.empty()) return column;
  }
  return FindColumn(report, name);
}

// The column of time that a sentence names; nothing if it names something else. A column that only the query has is
// recognized by its name.
std::optional<ReportColumn> TimeColumn(const Report& report, const std::string& name) {
  ReportColumn column;
  column.name = name;
  if (const ReportColumn* declared = ColumnBehind(report, name)) {
    column = *declared;
  } else if (name.ends_with("tokens_per_s")) {
    column.unit = "tokens/s";
  }
  return IsOfTime(column) ? std::optional(column) : std::nullopt;
}

// The columns of time that the sentence is about.
std::vector<ReportColumn> TimesOf(const Report& report, const Sentence& sentence) {
  std::vector<ReportColumn> columns;
  const auto add = [&](const std::string& name) {
    if (std::optional<ReportColumn> column = TimeColumn(report, name)) columns.push_back(std::move(*column));
  };
  for (const Sentence::Piece& piece : sentence.pieces) add(piece.column);
  for (const auto& [name, pick] : sentence.picks) {
    for (const auto& [column, texts] : pick.where) add(column);
    add(pick.max.empty() ? pick.min : pick.max);
  }
  return columns;
}

// Whether the sentence would be about times that other programs disturbed: those of a row that it picks or, if the time
// decides the pick, of a row that it could have picked.
bool IsOfDisturbedTimes(const Report& report, const Rows& rows, std::span<const size_t> panel,
                        const Sentence& sentence) {
  const std::vector<ReportColumn> times = TimesOf(report, sentence);
  const auto is_disturbed = [&](size_t row) {
    return std::any_of(times.begin(), times.end(),
                       [&](const ReportColumn& column) { return rows.Disturbed(row, column); });
  };
  return std::any_of(sentence.picks.begin(), sentence.picks.end(), [&](const auto& entry) {
    const RowPick& pick = entry.second;
    if (!TimeColumn(report, pick.max.empty() ? pick.min : pick.max)) {
      const std::optional<size_t> row = Pick(rows, panel, pick);
      return row && is_disturbed(*row);
    }
    return std::any_of(panel.begin(), panel.end(),
                       [&](size_t row) { return Meets(rows, row, pick) && is_disturbed(row); });
  });
}

// "The machine was busy, so this page draws no conclusion about time: others held 78 to 94 % of the cores in 5 of 6
// runs."
std::string DisturbedSentence(const Rows& rows, std::span<const size_t> panel) {
  double least = 1;
  double most = 0;
  size_t runs = 0;
  for (const size_t row : panel) {
    const std::optional<double> share = rows.DisturbedShare(row);
    if (!share) continue;
    ++runs;
    least = std::min(least, *share);
    most = std::max(most, *share);
  }
  if (runs == 0)
    return "Other processes disturbed the run that these are compared with, so this page draws no conclusion about "
           "time.";
  std::string held = fmt::format("{:.0f}", 100 * least);
  if (const std::string to = fmt::format("{:.0f}", 100 * most); to != held) held += " to " + to;
  return fmt::format(
      "The machine was busy, so this page draws no conclusion about time: others held {} % of the cores in {} of {}.",
      held, runs, rows.Counted(panel.size()));
}

// If cold throughput is above steady, although it includes the first step, a reader asks why. Empty if that holds for
// no run.
std::string ColdSentence(const Rows& rows, std::span<const size_t> panel) {
  constexpr double kAbove = 1.01;  // smaller differences are the noise of steps
  const auto runs = std::count_if(panel.begin(), panel.end(), [&](size_t row) {
    const std::optional<double> steady = rows.Number(row, "steady_tokens_per_s");
    const std::optional<double> cold = rows.Number(row, "cold_tokens_per_s");
    return steady && cold && *cold > kAbove * *steady && rows.Number(row, "too_few").value_or(0) == 0 &&
           rows.Text(row, report_columns::kProvenance) == "measured";
  });
  if (runs == 0) return {};
  return fmt::format(
      "Cold throughput is above steady in {}: the mean of all steps is below the median of the measured steps, as if "
      "the "
      "machine slowed down during the run.",
      rows.Counted(static_cast<size_t>(runs)));
}

std::optional<std::string> Say(const Report& report, const Rows& rows, std::span<const size_t> panel,
                               const Sentence& sentence) {
  std::map<std::string, size_t> picked;
  std::string marks;
  for (const auto& [name, pick] : sentence.picks) {
    const std::optional<size_t> row = Pick(rows, panel, pick);
    if (!row) return std::nullopt;
    picked[name] = *row;
    const std::string provenance = rows.Text(*row, report_columns::kProvenance);
    if (provenance != "measured" && marks.find(provenance) == std::string::npos) marks += ", " + provenance;
    if (rows.Emulated(*row) && marks.find("emulated") == std::string::npos) marks += ", emulated";
  }
  std::string said;
  for (const Sentence::Piece& piece : sentence.pieces) {
    said += piece.words;
    if (piece.pick.empty()) continue;
    const Cell& cell = rows.At(picked.at(piece.pick), piece.column);
    if (std::holds_alternative<std::monostate>(cell)) return std::nullopt;
    const ReportColumn* column = FindColumn(report, piece.column);
    said += column == nullptr ? CellText(cell) : FormatInSentence(*column, cell);
  }
  if (!said.empty() && said[0] >= 'a' && said[0] <= 'z') said[0] = static_cast<char>(said[0] - 'a' + 'A');
  if (!marks.empty()) {
    const bool stop = said.ends_with('.');
    if (stop) said.pop_back();
    said += " (" + marks.substr(2) + ")" + (stop ? "." : "");
  }
  return said;
}

void SayAll(const Report& report, const Rows& rows, std::span<const size_t> panel,
            const std::vector<Sentence>& sentences, std::vector<std::string>& said, bool& withheld) {
  for (const Sentence& sentence : sentences) {
    std::optional<std::string> words = Say(report, rows, panel, sentence);
    if (words && IsOfDisturbedTimes(report, rows, panel, sentence)) {
      withheld = true;
      words.reset();
    }
    if (words) {
      said.push_back(std::move(*words));
    } else {
      SayAll(report, rows, panel, sentence.otherwise, said, withheld);
    }
  }
}

}  // namespace

std::vector<std::string> Conclude(const Report& report, const Rows& rows, std::span<const size_t> panel) {
  std::vector<std::string> said;
  bool withheld = false;
  SayAll(report, rows, panel, report.conclusion, said, withheld);
  if (std::string cold = ColdSentence(rows, panel); !cold.empty()) said.push_back(std::move(cold));
  if (withheld) said.insert(said.begin(), DisturbedSentence(rows, panel));
  return said;
}

}  // namespace ridgeline::report
