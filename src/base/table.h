// A table of values, and the plain formats in which commands print it.
#pragma once

#include <cstddef>
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

std::string CellText(const Cell& cell);  // plain value: no thousands separators, doubles in shortest form
int64_t CellInteger(const Cell& cell);   // 0 if it is no integer

// Adds columns without values behind the others, and returns the index of the first. Rows take no more memory than
// their cells, as a vector that grows by itself would.
size_t AddColumns(Table& table, const std::vector<std::string>& names);

// In every format, characters that a terminal or a page would obey become escapes (base/text.h); JSON uses its own.
std::string ToText(const Table& table);      // aligned columns for a terminal
std::string ToMarkdown(const Table& table);  // a GitHub table; `|` and line ends escaped
// An array of objects, indented. Text in one of the columns `as_json` is JSON, and is written unchanged.
std::string ToJson(const Table& table, const std::vector<std::string>& as_json = {});
std::string ToJsonLines(const Table& table, const std::vector<std::string>& as_json = {});  // one object per line
// RFC 4180: CRLF, quotes doubled; line feeds and tabs stay. A text cell that begins with = + - @, plain or fullwidth,
// or with a tab or a line end, gets the prefix ', so that a spreadsheet shows it instead of computing it. Numbers stay
// unchanged.
std::string ToCsv(const Table& table);

// "text", "md", "json", "jsonl", "csv". Throws Error(kUsage), which names the formats, for anything else.
std::string Format(const Table& table, std::string_view format);

}  // namespace ridgeline
