#include "report/heat_map.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "report/escape.h"

namespace ridgeline::report {
namespace {

// Pixels.
constexpr double kCellHeight = 30;
constexpr double kCellWidest = 120;
constexpr double kCellGap = 2;
constexpr double kCellCross = 5;
// Chosen so that text over the darkest fill stays readable, on light and dark pages.
constexpr double kCellPalest = 0.10;
constexpr double kCellDarkest = 0.50;
constexpr std::string_view kCellFaint = R"( fill-opacity="0.75")";

}  // namespace

std::string RenderHeatMap(const HeatMap& map, const svg::Room& room) {
  double left = 0;
  for (const std::string& label : map.rows) left = std::max(left, svg::TextWidth(label, svg::kSmallFont));
  left = std::min(left, 0.3 * room.width) + 10;
  const double width =
      std::min(kCellWidest, (room.width - left) / static_cast<double>(std::max<size_t>(1, map.columns.size())));
  const double top = svg::kLine + 8;
  const double bottom = top + kCellHeight * static_cast<double>(map.rows.size());
  std::string body =
      svg::Text(0, 12, "start", svg::kSmallFont, svg::Fit(map.y_axis, room.width, svg::kSmallFont), kCellFaint);
  for (size_t row = 0; row < map.rows.size(); ++row) {
    body += svg::Text(left - 8, top + (static_cast<double>(row) + 0.5) * kCellHeight + 4, "end", svg::kSmallFont,
                      svg::Fit(map.rows[row], left - 8, svg::kSmallFont), kCellFaint);
  }
  for (size_t column = 0; column < map.columns.size(); ++column) {
    body += svg::Text(left + (static_cast<double>(column) + 0.5) * width, bottom + 14, "middle", svg::kSmallFont,
                      svg::Fit(map.columns[column], width, svg::kSmallFont), kCellFaint);
  }
  const double plot_width = width * static_cast<double>(map.columns.size());
  body += svg::Text(left + plot_width / 2, bottom + 14 + svg::kLine, "middle", svg::kSmallFont,
                    svg::Fit(map.x_axis, std::max(plot_width, room.width / 2), svg::kSmallFont), kCellFaint);
  for (const HeatCell& cell : map.cells) {
    const double x = left + static_cast<double>(cell.column) * width + kCellGap / 2;
    const double y = top + static_cast<double>(cell.row) * kCellHeight + kCellGap / 2;
    const bool failed = !cell.failure.empty();
    const std::string_view colour = failed ? svg::kFailureColour : svg::Colour(0);
    const double fill =
        failed || cell.hollow ? 0 : kCellPalest + std::clamp(cell.share, 0.0, 1.0) * (kCellDarkest - kCellPalest);
    body += fmt::format(R"(<g><title>{}</title>)"
                        "\n"
                        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="3" fill="{}" )"
                        R"(fill-opacity="{:.2f}" stroke="{}" stroke-opacity="{}"{}/>)"
                        "\n",
                        EscapeHtml(cell.title), x, y, width - kCellGap, kCellHeight - kCellGap, colour, fill, colour,
                        failed || cell.hollow ? 0.9 : 0, failed ? R"( stroke-dasharray="3 3")" : "");
    const double middle_x = x + (width - kCellGap) / 2;
    const double middle_y = y + (kCellHeight - kCellGap) / 2;
    if (failed) {
      body += fmt::format(R"(<path d="M{0:.1f} {1:.1f}l{2} {2}m0 -{2}l-{2} {2}" fill="none" stroke="{3}" )"
                          R"(stroke-width="2"/>)"
                          "\n",
                          middle_x - kCellCross, middle_y - kCellCross, 2 * kCellCross, colour);
    } else {
      body += svg::Text(middle_x, middle_y + 4, "middle", svg::kSmallFont,
                        svg::Fit(cell.text, width - kCellGap - 4, svg::kSmallFont));
    }
    body += "</g>\n";
  }
  return svg::Document(map.id, map.title, map.description, std::max(left + plot_width, room.width / 2),
                       bottom + 14 + svg::kLine + 10, body);
}

}  // namespace ridgeline::report
