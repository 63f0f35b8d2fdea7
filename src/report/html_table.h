// Tables of the page: sortable where its script runs, and folded to their key columns where a screen is narrow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "report/rows.h"

namespace ridgeline {

inline constexpr size_t kMaxLog = 8000;  // characters of a log that is unfolded
inline constexpr size_t kMaxCell = 80;   // characters of a cell; its title has them all

// Text that may be cut, with all of it in the title then. `attributes` have a space before them.
std::string Titled(std::string_view tag, std::string_view attributes, const std::string& text, size_t limit);

// A row a run, kMaxTableRows at most, and the caption says what is left out. `id` is unique in the page.
std::string TableHtml(const Rows& rows, const std::vector<const ReportColumn*>& columns,
                      std::span<const size_t> all_rows, std::string caption, const std::string& id);

}  // namespace ridgeline
