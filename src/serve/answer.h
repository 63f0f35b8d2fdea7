// A query's answer, read by the names of its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/table.h"

namespace ridgeline::serve {

class QueryAnswer {
 public:
  explicit QueryAnswer(Table table) : table_(std::move(table)) {}

  size_t size() const { return table_.rows.size(); }
  // REQUIRES: a column of the query, and an existing row.
  const Cell& At(size_t row, std::string_view column) const {
    const auto at = std::find(table_.columns.begin(), table_.columns.end(), column) - table_.columns.begin();
    return table_.rows.at(row).at(static_cast<size_t>(at));
  }
  std::string Text(size_t row, std::string_view column) const { return CellText(At(row, column)); }
  // 0 for text and for no value.
  int64_t Integer(size_t row, std::string_view column) const {
    const auto* integer = std::get_if<int64_t>(&At(row, column));
    return integer == nullptr ? 0 : *integer;
  }
  bool Has(size_t row, std::string_view column) const {
    return !std::holds_alternative<std::monostate>(At(row, column));
  }

 private:
  Table table_;
};

}  // namespace ridgeline::serve
