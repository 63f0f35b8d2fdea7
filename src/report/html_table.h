// Tables of the page: sortable if its script runs, and reduced to their key columns on a narrow screen.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "report/rows.h"

namespace ridgeline::report {

inline constexpr size_t kMaxLog = 8000;  // characters of an unfolded log
inline constexpr size_t kMaxCell = 80;   // characters of a cell; its title has the whole text

// Text that may be cut; its title then has all of it. `attributes` begin with a space.
std::string Titled(std::string_view tag, std::string_view attributes, const std::string& text, size_t limit);

// One row per run, kMaxTableRows at most. The caption says what is left out. `id` is unique in the page.
std::string TableHtml(const Rows& rows, const std::vector<const ReportColumn*>& columns,
                      std::span<const size_t> all_rows, std::string caption, const std::string& id);

}  // namespace ridgeline::report
