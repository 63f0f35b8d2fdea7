#include "report/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "report/escape.h"

namespace ridgeline::report {
namespace {

// Pixels.
constexpr double kForestRow = 24;
constexpr double kForestDot = 4;
constexpr double kForestSide = 16;
constexpr double kTwoLinesBelow = 500;  // for narrower rooms, labels have a line of their own
constexpr std::string_view kForestFaint = R"( fill-opacity="0.75")";

class ForestRenderer {
 public:
  ForestRenderer(const ForestChart& chart, const svg::Room& room)
      : chart_(chart), width_(room.width), two_lines_(room.width < kTwoLinesBelow) {
    double min = std::numeric_limits<double>::infinity();
    double max = -min;
    const auto take = [&](double value) {
      min = std::min(min, value);
      max = std::max(max, value);
    };
    for (const ForestRow& row : chart.rows) {
      if (row.failure.empty()) take(row.value);
    }
    if (chart.at) take(*chart.at);
    if (min > max) min = max = 1;
    // Intervals have as much room again on either side of the figures, or a tenth of the largest.
    const double room_for_intervals = std::max(max - min, 0.1 * std::max(std::abs(min), std::abs(max)));
    const double least = min - room_for_intervals;
    const double most = max + room_for_intervals;
    for (const ForestRow& row : chart.rows) {
      if (row.failure.empty() && row.low < row.high) {
        take(std::max(row.low, least));
        take(std::min(row.high, most));
      }
    }
    unit_ = PickUnit(chart.scale, std::max(std::abs(min), std::abs(max)), chart.axis);
    ticks_ = LinearTicks(min / unit_.divisor, max / unit_.divisor);
    if (two_lines_) {
      left_ = kForestSide;
      right_ = width_ - kForestSide;
      return;
    }
    double label = 0;
    double text = 0;
    for (const ForestRow& row : chart.rows) {
      label = std::max(label, svg::TextWidth(row.label, svg::kFont));
      text = std::max(text, svg::TextWidth(row.text, svg::kSmallFont));
    }
    left_ = std::min(label, 0.35 * width_) + kForestSide;
    right_ = width_ - std::min(text, 0.25 * width_) - kForestSide;
  }

  std::string Render() {
    const double top = svg::kLine + 8;
    const double row_height = two_lines_ ? kForestRow + svg::kLine : kForestRow;
    const double bottom = top + row_height * static_cast<double>(chart_.rows.size());
    body_ += svg::Text(0, 12, "start", svg::kSmallFont, svg::Fit(unit_.name, width_, svg::kSmallFont), kForestFaint);
    for (const double tick : ticks_) {
      body_ += svg::Line(XOfTick(tick), top, XOfTick(tick), bottom, 0.14);
      body_ +=
          svg::Text(XOfTick(tick), bottom + 16, "middle", svg::kSmallFont, TickText(tick, unit_.suffix), kForestFaint);
    }
    double y = top;
    for (const ForestRow& row : chart_.rows) {
      DrawRow(row, y);
      y += row_height;
    }
    return svg::Document(chart_.id, chart_.title, chart_.description, width_, bottom + svg::kLine + 10, body_);
  }

 private:
  double XOfTick(double value) const {
    return left_ + (value - ticks_.front()) / (ticks_.back() - ticks_.front()) * (right_ - left_);
  }
  double X(double value) const { return XOfTick(value / unit_.divisor); }

  void DrawRow(const ForestRow& row, double top) {
    body_ += fmt::format("<g><title>{}</title>\n", EscapeHtml(row.title));
    double middle = top + kForestRow / 2;
    if (two_lines_) {
      const double text = svg::TextWidth(row.text, svg::kSmallFont);
      body_ += svg::Text(0, middle + 4, "start", svg::kFont, svg::Fit(row.label, width_ - text - 12, svg::kFont));
      body_ += svg::Text(width_, middle + 4, "end", svg::kSmallFont, row.text, kForestFaint);
      middle += svg::kLine;
    } else {
      body_ += svg::Text(0, middle + 4, "start", svg::kFont, svg::Fit(row.label, left_ - kForestSide, svg::kFont));
      body_ += svg::Text(width_, middle + 4, "end", svg::kSmallFont,
                         svg::Fit(row.text, width_ - right_ - kForestSide / 2, svg::kSmallFont), kForestFaint);
    }
    if (!row.failure.empty()) {
      body_ += svg::Text((left_ + right_) / 2, middle + 4, "middle", svg::kSmallFont,
                         svg::Fit(row.failure, right_ - left_, svg::kSmallFont),
                         fmt::format(R"( fill="{}")", svg::kFailureColour));
    } else {
      DrawFigure(row, middle);
    }
    body_ += "</g>\n";
  }

  void DrawFigure(const ForestRow& row, double y) {
    // Only beside figures, because it would cross words.
    if (chart_.at) body_ += svg::Line(X(*chart_.at), y - kForestRow / 2, X(*chart_.at), y + kForestRow / 2, 0.6);
    const std::string_view colour = row.bad ? svg::kFailureColour : svg::Colour(0);
    const double first = ticks_.front() * unit_.divisor;
    const double last = ticks_.back() * unit_.divisor;
    if (row.low < row.high) {
      const double from = X(std::clamp(row.low, first, last));
      const double to = X(std::clamp(row.high, first, last));
      const std::string path = svg::LyingInterval(y, from, to, row.low<first, row.high> last);
      body_ += fmt::format(R"(<path class="error" d="{}" fill="none" stroke="{}" stroke-width="1.6"/>)"
                           "\n",
                           path, colour);
    }
    body_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>)"
                         "\n",
                         X(row.value), y, kForestDot, colour);
  }

  const ForestChart& chart_;
  const double width_;
  const bool two_lines_;
  AxisUnit unit_;
  std::vector<double> ticks_;  // in the unit
  double left_ = 0;            // the plot's left edge
  double right_ = 0;
  std::string body_;
};

}  // namespace

std::string RenderForestChart(const ForestChart& chart, const svg::Room& room) {
  return ForestRenderer(chart, room).Render();
}

}  // namespace ridgeline::report
