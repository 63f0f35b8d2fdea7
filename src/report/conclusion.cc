// Sentences with figures in them, said only where there is something to say.
#include <algorithm>
#include <optional>

#include "report/rows.h"

namespace ridgeline {
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
            const std::vector<Sentence>& sentences, std::vector<std::string>& said) {
  for (const Sentence& sentence : sentences) {
    if (std::optional<std::string> words = Say(report, rows, panel, sentence)) {
      said.push_back(std::move(*words));
    } else {
      SayAll(report, rows, panel, sentence.otherwise, said);
    }
  }
}

}  // namespace

std::vector<std::string> Conclude(const Report& report, const Rows& rows, std::span<const size_t> panel) {
  std::vector<std::string> said;
  SayAll(report, rows, panel, report.conclusion, said);
  return said;
}

}  // namespace ridgeline
