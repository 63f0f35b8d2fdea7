// A table of values, and the plain formats every command prints one in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ridgeline {

using Cell = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: no value

struct Table {
  std::vector<std::string> columns;  // with units: "peak_bytes"
  std::vector<std::vector<Cell>> rows;
};

std::string CellText(const Cell& cell);  // as a plain value: no thousands separators, doubles in shortest form
int64_t CellInteger(const Cell& cell);   // 0 where it is none

// In every format, whatever a terminal or a page would obey is shown as an escape (base/text.h); JSON has its own.
std::string ToText(const Table& table);      // aligned columns for a terminal
std::string ToMarkdown(const Table& table);  // a GitHub table; `|` and line ends escaped
// An array of objects, indented. A text in one of the columns `as_json` is JSON, and is written as it is.
std::string ToJson(const Table& table, const std::vector<std::string>& as_json = {});
std::string ToJsonLines(const Table& table, const std::vector<std::string>& as_json = {});  // an object a line
// RFC 4180: CRLF, quotes doubled; line feeds and tabs stay. A text cell that begins with = + - @, as they are or
// fullwidth, or with a tab or a line's end, is prefixed with ', so that a spreadsheet shows it and does not compute it;
// numbers are left alone.
std::string ToCsv(const Table& table);

// "text", "md", "json", "jsonl", "csv"; throws Error(kUsage) naming the formats for anything else.
std::string Format(const Table& table, std::string_view format);

}  // namespace ridgeline
