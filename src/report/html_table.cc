#include "report/html_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/escape.h"
#include "report/page.h"

namespace ridgeline::report {
namespace {

// The class of the cells of a column that is hidden if there is no room for all.
std::string ClassOf(const ReportColumn& column, bool folds, std::string_view other = {}) {
  std::string names(other);
  if (folds && !column.key) names += names.empty() ? "more" : " more";
  return names.empty() ? names : fmt::format(R"( class="{}")", names);
}

bool IsOfNumbers(const ReportColumn& column) {
  return column.style != ValueStyle::kText && column.style != ValueStyle::kLog;
}

// Repeats the text of the heading above, which several columns share, in case that is not shown.
std::string HeadingCell(const ReportColumn& column, bool folds) {
  std::string text = column.label;
  if (!column.unit.empty() && column.group.empty()) text += ", " + column.unit;
  std::string attributes = R"( scope="col")" + ClassOf(column, folds);
  attributes += IsOfNumbers(column) ? R"( align="right")" : R"( align="left")";
  if (!column.group.empty()) {
    attributes += fmt::format(R"( data-group="{}")", EscapeHtml(column.group));
    if (!column.unit.empty()) attributes += fmt::format(R"( data-unit="{}")", EscapeHtml(column.unit));
  }
  if (!column.help.empty()) attributes += fmt::format(R"( title="{}")", EscapeHtml(column.help));
  return fmt::format("<th{}>{}</th>", attributes, EscapeHtml(text));
}

std::string ValueCell(const ReportColumn& column, bool folds, const Rows& rows, size_t row) {
  const Cell& cell = rows.At(row, column.name);
  const std::string text = FormatFigure(column, rows, row);
  if (std::holds_alternative<std::monostate>(cell)) {
    return fmt::format("<td data-none=\"\"{}{}>{}</td>", ClassOf(column, folds),
                       IsOfNumbers(column) ? R"( align="right")" : "", text);
  }
  if (column.style == ValueStyle::kLog) {
    const std::string all = CellText(cell);
    const std::string shown = ShortenToCodePoints(text, kMaxCell);
    if (all != shown) {
      return fmt::format("<td{}><details><summary>{}</summary><pre>{}</pre></details></td>",
                         ClassOf(column, folds, "words"), EscapeHtml(shown),
                         EscapeHtml(ShortenToCodePoints(all, kMaxLog)));
    }
  }
  if (std::holds_alternative<std::string>(cell)) {
    return Titled("td", ClassOf(column, folds, text.size() > 40 ? "words" : ""), text, kMaxCell);
  }
  return fmt::format(R"(<td align="right"{} data-v="{}">{}</td>)", ClassOf(column, folds), CellText(cell),
                     EscapeHtml(text));
}

// Neighbours with the same group, and so the same unit, share a heading above theirs. Without any group, there is no
// such row.
std::string GroupRow(const std::vector<const ReportColumn*>& columns) {
  std::string row;
  bool any = false;
  for (size_t c = 0; c < columns.size();) {
    size_t end = c + 1;
    while (end < columns.size() && columns[end]->group == columns[c]->group) ++end;
    std::string group = columns[c]->group;
    if (!group.empty() && !columns[c]->unit.empty()) group += ", " + columns[c]->unit;
    any = any || !group.empty();
    row += group.empty() ? fmt::format("<td colspan=\"{}\"></td>", end - c)
                         : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>", end - c, EscapeHtml(group));
    c = end;
  }
  return any ? "<tr class=\"groups\">" + row + "</tr>\n" : "";
}

}  // namespace

std::string Titled(std::string_view tag, std::string_view attributes, const std::string& text, size_t limit) {
  const std::string shown = ShortenToCodePoints(text, limit);
  std::string title;
  if (shown != text) title = fmt::format(R"( title="{}")", EscapeHtml(text));
  return fmt::format("<{0}{1}{2}>{3}</{0}>", tag, attributes, title, EscapeHtml(shown));
}

std::string TableHtml(const Rows& rows, const std::vector<const ReportColumn*>& columns,
                      std::span<const size_t> all_rows, std::string caption, const std::string& id) {
  const size_t shown = std::min(all_rows.size(), kMaxTableRows);
  const auto keys = std::count_if(columns.begin(), columns.end(), [](const ReportColumn* c) { return c->key; });
  const bool folds = keys > 0 && keys < std::ssize(columns);
  std::string out = "<div>\n";
  if (folds) {
    out += fmt::format(R"(<input class="fold" type="checkbox" id="{0}" hidden=""/><label class="fold" for="{0}" )"
                       R"(hidden="">all {1} columns</label>)"
                       "\n",
                       id, columns.size());
  }
  out += R"(<div class="scroll"><table data-sort="" border="1" cellpadding="5" cellspacing="0">)"
         "\n";
  if (shown < all_rows.size()) {
    caption += fmt::format(" The first {} of {}; the CSV and the JSON of this report hold all of them.", shown,
                           rows.Counted(all_rows.size()));
  }
  out += "<caption>" + EscapeHtml(caption) + "</caption>\n<thead>\n" + GroupRow(columns) + "<tr>";
  for (const ReportColumn* column : columns) out += HeadingCell(*column, folds);
  out += "</tr>\n</thead>\n<tbody>\n";
  for (const size_t row : all_rows.first(shown)) {
    out += rows.Failed(row) ? R"(<tr class="failed">)" : "<tr>";
    for (const ReportColumn* column : columns) out += ValueCell(*column, folds, rows, row);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n</div>\n";
}

}  // namespace ridgeline::report
