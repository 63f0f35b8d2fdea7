#include "base/table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// A row may be shorter than the columns; missing cells have no value.
const Cell& At(const std::vector<Cell>& row, size_t column) {
  static const Cell kNothing;
  return column < row.size() ? row[column] : kNothing;
}

bool IsText(const Cell& cell) { return std::holds_alternative<std::string>(cell); }

// Numbers are right-aligned. A column counts as numbers if it has any and no text.
std::vector<bool> NumberColumns(const Table& table) {
  std::vector<bool> numbers(table.columns.size(), false);
  for (size_t c = 0; c < numbers.size(); ++c) {
    bool text = false;
    for (const auto& row : table.rows) {
      const Cell& cell = At(row, c);
      text = text || IsText(cell);
      numbers[c] = numbers[c] || !std::holds_alternative<std::monostate>(cell);
    }
    numbers[c] = numbers[c] && !text;
  }
  return numbers;
}

// The width of a line in columns, if it has no controls.
size_t WidthOf(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & '\xC0') != '\x80'; }));
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & '\x80') != 0; }

// Each format treats line ends and tabs in its own way.
constexpr std::string_view kKeptControls = "\n\t";

// Whether Markdown may read the mark at `i` as the begin or the end of something, if the text has another one that can
// be its partner. A star between spaces and an underscore within a word (batch_size) are plain text.
bool MayPair(std::string_view text, size_t i) {
  const char before = i == 0 ? '\n' : text[i - 1];
  const char after = i + 1 == text.size() ? '\n' : text[i + 1];
  switch (text[i]) {
    case '_':
      return !IsWord(before) || !IsWord(after);
    case '*':
      return before != ' ' || after != ' ';
    case '`':
    case '~':
    case '$':
      return true;
    default:
      return false;
  }
}

// Escapes only what Markdown would obey, because people read the file itself, too: a path such as ~/.cache and a
// list such as [1, 2] stay as they are.
std::string MarkdownText(std::string_view raw) {
  std::string text = EscapeControls(raw, kKeptControls);
  std::erase(text, '\r');
  std::array<int, 256> marks{};  // by mark: how many may pair
  for (size_t i = 0; i < text.size(); ++i) marks[static_cast<unsigned char>(text[i])] += MayPair(text, i) ? 1 : 0;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char after = i + 1 == text.size() ? '\0' : text[i + 1];
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\t':
        out += ' ';
        break;
      case '\n':
        out += "<br>";
        break;
      case '|':
        out += "\\|";
        break;
      case '\\':  // escapes punctuation alone; at the end it would escape what follows the cell
        out += std::isalnum(static_cast<unsigned char>(after)) != 0 || after == ' ' ? "\\" : "\\\\";
        break;
      case ']':  // without this, no bracket begins a link, an image, a footnote or a definition
        if (after == '(' || after == '[' || after == ':') out += '\\';
        out += c;
        break;
      default:
        // A partner may stand outside the text, such as the stars of **text**.
        if (MayPair(text, i) && (marks[static_cast<unsigned char>(c)] > 1 || (c == '*' && (i == 0 || after == '\0')))) {
          out += '\\';
        }
        out += c;
    }
  }
  return out;
}

// Whether a spreadsheet reads the text as a formula. Includes fullwidth characters, which some convert before they
// check.
bool ReadsAsFormula(std::string_view text) {
  constexpr std::string_view kFirst[] = {
      "=", "+", "-", "@", "\t", "\r", "\n", "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0"};
  return std::any_of(std::begin(kFirst), std::end(kFirst),
                     [&](std::string_view first) { return text.starts_with(first); });
}

std::string CsvText(const std::string& raw) {
  std::string text = EscapeControls(raw, kKeptControls);
  if (ReadsAsFormula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string CsvCell(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? CsvText(*text) : CellText(cell);
}

std::string JsonCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return ShowJson(*text);
  const auto* number = std::get_if<double>(&cell);
  if (std::holds_alternative<std::monostate>(cell) || (number != nullptr && !std::isfinite(*number))) return "null";
  return CellText(cell);
}

// A cell that should hold JSON, as JSON. A database from outside may hold any text there; other text becomes a string.
std::string EmbeddedJson(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return JsonCell(cell);
  try {
    return ShowJson(ParseJson(*text, "a cell"));
  } catch (const Error&) {
    return JsonCell(cell);
  }
}

// Writes objects by hand instead of with Json, so that keys stay in the order of the columns.
std::string JsonRows(const Table& table, std::string_view open, std::string_view key_start, std::string_view key_end,
                     std::string_view close, std::string_view between, const std::vector<std::string>& as_json) {
  std::vector<std::string> keys;
  std::vector<bool> is_json;
  for (const std::string& column : table.columns) {
    keys.push_back(ShowJson(column));
    is_json.push_back(std::find(as_json.begin(), as_json.end(), column) != as_json.end());
  }
  std::string out;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (r > 0) out += between;
    out += open;
    for (size_t c = 0; c < keys.size(); ++c) {
      if (c > 0) out += ',';
      out += key_start;
      out += keys[c];
      out += key_end;
      const Cell& cell = At(table.rows[r], c);
      out += is_json[c] ? EmbeddedJson(cell) : JsonCell(cell);
    }
    out += close;
  }
  return out;
}

}  // namespace

int64_t CellInteger(const Cell& cell) {
  const auto* integer = std::get_if<int64_t>(&cell);
  return integer == nullptr ? 0 : *integer;
}

size_t AddColumns(Table& table, const std::vector<std::string>& names) {
  const size_t first = table.columns.size();
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (std::vector<Cell>& row : table.rows) {
    row.reserve(table.columns.size());
    row.resize(table.columns.size());
  }
  return first;
}

std::string CellText(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&cell)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  return {};
}

std::string ToText(const Table& table) {
  const size_t columns = table.columns.size();
  const std::vector<bool> numbers = NumberColumns(table);
  std::vector<std::vector<std::string>> lines(table.rows.size() + 1, std::vector<std::string>(columns));
  std::vector<size_t> widest(columns, 0);
  for (size_t r = 0; r < lines.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      lines[r][c] = PrintableLine(r == 0 ? table.columns[c] : CellText(At(table.rows[r - 1], c)));
      widest[c] = std::max(widest[c], WidthOf(lines[r][c]));
    }
  }
  std::string out;
  for (const auto& line : lines) {
    for (size_t c = 0; c < columns; ++c) {
      const std::string padding(widest[c] - WidthOf(line[c]), ' ');
      out += numbers[c] ? padding + line[c] : line[c] + padding;
      if (c + 1 < columns) out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string ToMarkdown(const Table& table) {
  const std::vector<bool> numbers = NumberColumns(table);
  std::string out = "|";
  for (const std::string& column : table.columns) out += " " + MarkdownText(column) + " |";
  out += "\n|";
  for (const bool number : numbers) out += number ? " ---: |" : " --- |";
  out += '\n';
  for (const auto& row : table.rows) {
    out += '|';
    for (size_t c = 0; c < table.columns.size(); ++c) out += " " + MarkdownText(CellText(At(row, c))) + " |";
    out += '\n';
  }
  return out;
}

std::string ToJson(const Table& table, const std::vector<std::string>& as_json) {
  if (table.rows.empty()) return "[]\n";
  return "[\n" + JsonRows(table, "  {", "\n    ", ": ", "\n  }", ",\n", as_json) + "\n]\n";
}

std::string ToJsonLines(const Table& table, const std::vector<std::string>& as_json) {
  return JsonRows(table, "{", "", ":", "}\n", "", as_json);
}

std::string ToCsv(const Table& table) {
  std::string out;
  const auto end_record = [&](size_t start) {
    // A single column without a value is quoted, because a blank line would be no record.
    if (out.size() == start) out += "\"\"";
    out += "\r\n";
  };
  size_t start = 0;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) out += ',';
    out += CsvText(table.columns[c]);
  }
  end_record(start);
  for (const auto& row : table.rows) {
    start = out.size();
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (c > 0) out += ',';
      out += CsvCell(At(row, c));
    }
    end_record(start);
  }
  return out;
}

std::string Format(const Table& table, std::string_view format) {
  if (format == "text") return ToText(table);
  if (format == "md") return ToMarkdown(table);
  if (format == "json") return ToJson(table);
  if (format == "jsonl") return ToJsonLines(table);
  if (format == "csv") return ToCsv(table);
  const std::string name(format);
  throw Error(ErrorKind::kUsage,
              "unknown format '" + name + "'" + DidYouMean(name, {"text", "md", "json", "jsonl", "csv"}),
              "the formats are text, md, json, jsonl and csv");
}

}  // namespace ridgeline
