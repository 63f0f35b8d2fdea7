#include "report/lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "report/chart.h"
#include "report/escape.h"
#include "report/svg.h"

namespace ridgeline {
namespace {

// Pixels.
constexpr double kPlotWidth = 540;
constexpr double kPlotHeight = 250;
constexpr double kRight = 16;
constexpr double kSwatch = 24;  // of the legend
constexpr double kCross = 4;

std::string Number(double value) {
  const double size = std::abs(value);
  return (value < 0 ? "\xE2\x88\x92" : "") + (size < 1e7 ? ShortNumber(size) : fmt::format("{:.2g}", size));
}

std::string_view Dashes(Stroke stroke) {
  if (stroke == Stroke::kDashed) return R"( stroke-dasharray="6 3")";
  return stroke == Stroke::kDotted ? R"( stroke-dasharray="1.5 3")" : "";
}

class Renderer {
 public:
  explicit Renderer(const LineChart& chart) : chart_(chart) {
    double min_y = std::numeric_limits<double>::infinity();
    double max_y = -min_y;
    const bool any_whole =
        std::any_of(chart.lines.begin(), chart.lines.end(), [](const Curve& line) { return line.failure.empty(); });
    for (const Curve& line : chart.lines) {
      if (any_whole && !line.failure.empty()) continue;
      for (const LinePoint& point : line.points) {
        for (const double y : {point.y, point.low, point.high}) {
          if (!Shows(y)) continue;
          min_y = std::min(min_y, y);
          max_y = std::max(max_y, y);
        }
      }
    }
    if (min_y > max_y) min_y = max_y = 1;
    x_ticks_ = LinearTicks(0, chart.x_max);
    y_ticks_ = chart.log ? LogTicks(min_y, max_y) : LinearTicks(min_y, max_y);
    for (const double tick : y_ticks_) left_ = std::max(left_, svg::TextWidth(Number(tick), svg::kSmallFont) + 14);
    width_ = left_ + kPlotWidth + kRight;
  }

  std::string Render() {
    DrawLegend();
    DrawAxes();
    body_ +=
        fmt::format(R"(<clipPath id="{}-plot"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/></clipPath>)"
                    "\n",
                    EscapeHtml(chart_.id), left_, bottom_ - kPlotHeight, kPlotWidth, kPlotHeight);
    body_ += fmt::format(R"svg(<g clip-path="url(#{}-plot)">)svg"
                         "\n",
                         EscapeHtml(chart_.id));
    for (const Curve& line : chart_.lines) DrawBand(line);
    for (const Curve& line : chart_.lines) DrawLine(line);
    body_ += "</g>\n";
    for (const Curve& line : chart_.lines) DrawCross(line);
    return svg::Document(chart_.id, chart_.title, chart_.description, width_, bottom_ + 2 * svg::kLine + 10, body_);
  }

 private:
  bool Shows(double y) const { return std::isfinite(y) && (!chart_.log || y > 0); }

  double X(double x) const { return left_ + x / chart_.x_max * kPlotWidth; }
  double Y(double y) const {
    const auto place = [&](double value) { return chart_.log ? std::log(value) : value; };
    const double low = place(y_ticks_.front());
    const double share = (place(y) - low) / (place(y_ticks_.back()) - low);
    // What leaves the plot is cut there, not drawn at coordinates without bounds.
    return bottom_ - std::clamp(share, -1.0, 2.0) * kPlotHeight;
  }

  void DrawLegend() {
    double x = 0;
    y_ += svg::kLine;
    for (const Curve& line : chart_.lines) {
      if (line.legend.empty()) continue;
      const std::string label = svg::Fit(line.legend, 330, svg::kFont);
      const double advance = kSwatch + 6 + svg::TextWidth(label, svg::kFont) + 12;
      if (x > 0 && x + advance > width_) {
        x = 0;
        y_ += svg::kLine + 3;
      }
      body_ += fmt::format(R"(<path d="M{:.1f} {:.1f}h{}" stroke="{}" stroke-width="2.5"{}/>)"
                           "\n",
                           x, y_ - 4, kSwatch, svg::Colour(line.colour), Dashes(line.stroke));
      body_ += svg::Text(x + kSwatch + 6, y_, "start", svg::kFont, label);
      x += advance;
    }
    y_ += 10;
  }

  void DrawAxes() {
    constexpr std::string_view kFaint = R"( fill-opacity="0.75")";
    body_ += svg::Text(0, y_ + 12, "start", svg::kSmallFont, svg::Fit(chart_.y_axis, width_, svg::kSmallFont), kFaint);
    bottom_ = y_ + 26 + kPlotHeight;
    for (const double tick : y_ticks_) {
      const bool base = tick == 0 || (!chart_.log && tick == y_ticks_.front());
      body_ += svg::Line(left_, Y(tick), left_ + kPlotWidth, Y(tick), base ? 0.6 : 0.14);
      body_ += svg::Text(left_ - 6, Y(tick) + 4, "end", svg::kSmallFont, Number(tick), kFaint);
    }
    for (const double tick : x_ticks_) {
      if (tick > chart_.x_max) continue;
      body_ += svg::Line(X(tick), bottom_, X(tick), bottom_ + 4, 0.6);
      body_ += svg::Text(X(tick), bottom_ + 16, "middle", svg::kSmallFont, Number(tick), kFaint);
    }
    body_ +=
        svg::Text(left_ + kPlotWidth / 2, bottom_ + 16 + svg::kLine, "middle", svg::kSmallFont, chart_.x_axis, kFaint);
  }

  // Calls `draw` with each stretch of neighbouring points that can be shown.
  template <typename Draw>
  void ForEachStretch(const Curve& line, const Draw& draw) const {
    std::vector<LinePoint> stretch;
    for (const LinePoint& point : line.points) {
      if (Shows(point.y)) {
        stretch.push_back(point);
      } else if (!stretch.empty()) {
        draw(stretch);
        stretch.clear();
      }
    }
    if (!stretch.empty()) draw(stretch);
  }

  void DrawBand(const Curve& line) {
    ForEachStretch(line, [&](const std::vector<LinePoint>& stretch) {
      if (std::none_of(stretch.begin(), stretch.end(), [](const LinePoint& p) { return p.low < p.high; })) return;
      std::string path;
      for (const LinePoint& p : stretch) {
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', X(p.x), Y(p.high));
      }
      for (size_t i = stretch.size(); i-- > 0;) {
        const double low = Shows(stretch[i].low) ? stretch[i].low : stretch[i].y;
        path += fmt::format("L{:.1f} {:.1f}", X(stretch[i].x), Y(low));
      }
      body_ += fmt::format(R"(<path d="{}Z" fill="{}" fill-opacity="0.16"/>)"
                           "\n",
                           path, svg::Colour(line.colour));
    });
  }

  void DrawLine(const Curve& line) {
    body_ +=
        fmt::format(R"(<g fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round" stroke-linecap="{}"{}>)"
                    "<title>{}</title>\n",
                    svg::Colour(line.colour), line.failure.empty() ? 1.8 : 1.1,
                    line.stroke == Stroke::kDashed ? "butt" : "round", Dashes(line.stroke), EscapeHtml(line.title));
    ForEachStretch(line, [&](const std::vector<LinePoint>& stretch) {
      std::string path;
      for (const LinePoint& p : stretch) {
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', X(p.x), Y(p.y));
      }
      if (stretch.size() == 1) path += "h0";  // a dot
      body_ += "<path d=\"" + path + "\"/>\n";
    });
    body_ += "</g>\n";
  }

  // A failed run's end, at the edge of the plot where it had left it.
  void DrawCross(const Curve& line) {
    if (line.failure.empty() || line.points.empty()) return;
    const auto last =
        std::find_if(line.points.rbegin(), line.points.rend(), [&](const LinePoint& point) { return Shows(point.y); });
    const double x = X(last == line.points.rend() ? line.points.front().x : last->x);
    const double top = bottom_ - kPlotHeight;
    const double y = last == line.points.rend() ? top : std::clamp(Y(last->y), top, bottom_);
    body_ +=
        fmt::format(R"(<path d="M{0:.1f} {1:.1f}l{2} {2}m0 -{2}l-{2} {2}" fill="none" stroke="{3}" stroke-width="2.2">)"
                    "<title>{4}</title></path>\n",
                    x - kCross, y - kCross, 2 * kCross, svg::Colour(line.colour), EscapeHtml(line.failure));
  }

  const LineChart& chart_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  double left_ = 0;  // where the plot begins
  double width_ = 0;
  double y_ = 0;       // how far down has been drawn
  double bottom_ = 0;  // of the plot
  std::string body_;
};

}  // namespace

std::string RenderLineChart(const LineChart& chart) { return Renderer(chart).Render(); }

std::vector<double> LinearTicks(double min, double max) {
  if (!(max - min > 1e-12 * std::max(std::abs(min), std::abs(max)))) {
    const double around = std::max(std::abs(min) / 2, 1e-3);
    min -= around;
    max += around;
  }
  const double power = std::pow(10, std::floor(std::log10((max - min) / 4)));
  double step = power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    step = factor * power;
    if ((max - min) / step <= 5) break;
  }
  // Counted, not added up, so that zero is zero.
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::floor(min / step + 1e-9));
  for (int64_t i = first;; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
    if (ticks.size() > 1 && ticks.back() >= max - 1e-9 * step) return ticks;
  }
}

std::vector<double> LogTicks(double min, double max) {
  const auto first = static_cast<int>(std::floor(std::log10(min) + 1e-9));
  const auto last = static_cast<int>(std::ceil(std::log10(max) - 1e-9));
  const bool decades = last - first > 3;
  std::vector<double> all;
  for (int power = first; power <= std::max(last, first + 1); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor == 1 || !decades) all.push_back(factor * std::pow(10, power));
    }
  }
  // From the last at or below min to the first at or above max.
  auto begin = std::upper_bound(all.begin(), all.end(), min * (1 + 1e-9));
  if (begin != all.begin()) --begin;
  auto end = std::lower_bound(begin, all.end(), max * (1 - 1e-9));
  if (end == begin) ++end;
  return {begin, end == all.end() ? end : end + 1};
}

}  // namespace ridgeline
