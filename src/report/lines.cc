#include "report/lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "report/escape.h"
#include "report/svg.h"

namespace ridgeline::report {
namespace {

// Pixels.
constexpr double kInset = 22;  // from the plot's sides to the first and the last point, if points are dots
constexpr double kDot = 3.2;
constexpr double kRing = 6.5;
constexpr double kRightOfPlot = 16;
constexpr double kSwatch = 24;  // the legend's
constexpr double kCross = 4;
constexpr double kBeside = 5;
constexpr size_t kMostDots = 100;
constexpr double kLongestTick = 140;

std::string_view Dashes(Stroke stroke) {
  if (stroke == Stroke::kDashed) return R"( stroke-dasharray="6 3")";
  return stroke == Stroke::kDotted ? R"( stroke-dasharray="1.5 3")" : "";
}

class LinesRenderer {
 public:
  LinesRenderer(const LineChart& chart, const svg::Room& room) : chart_(chart), room_(room) {
    double min_y = std::numeric_limits<double>::infinity();
    double max_y = -min_y;
    const bool any_whole =
        std::any_of(chart.lines.begin(), chart.lines.end(), [](const Curve& line) { return line.failure.empty(); });
    for (const Curve& line : chart.lines) {
      if (any_whole && !line.failure.empty()) continue;
      for (const LinePoint& point : line.points) {
        for (const double y : {point.y, point.low, point.high}) {
          // The axis follows the figures, not their uncertainty.
          if (!Shows(y) || (!chart.at.empty() && y != point.y)) continue;
          min_y = std::min(min_y, y);
          max_y = std::max(max_y, y);
        }
      }
    }
    if (min_y > max_y) min_y = max_y = 1;
    if (!chart.at.empty() && chart.from_zero && !chart.log) min_y = std::min(min_y, 0.0);
    unit_ = PickUnit(chart.scale, std::max(max_y, -min_y), chart.y_axis);
    x_ticks_ = chart.at.empty() ? LinearTicks(0, chart.x_max) : chart.at;
    y_ticks_ = chart.log ? LogTicks(min_y / unit_.divisor, max_y / unit_.divisor)
                         : LinearTicks(min_y / unit_.divisor, max_y / unit_.divisor);
    digits_ = DigitsOfTicks(y_ticks_);
    for (const double tick : y_ticks_) left_ = std::max(left_, svg::TextWidth(Tick(tick), svg::kSmallFont) + 14);
    dense_ = chart.at.size() > kMostDots;
    const auto has_interval = [&](const LinePoint& point) { return !dense_ && point.low < point.high; };
    if (!chart.at.empty() && std::any_of(chart.lines.begin(), chart.lines.end(), [&](const Curve& line) {
          return std::any_of(line.points.begin(), line.points.end(), has_interval);
        })) {
      beside_ = std::min(kBeside, 2 * (kInset - kRing) / static_cast<double>(chart.lines.size()));
    }
    width_ = room.width;
    plot_width_ = width_ - left_ - kRightOfPlot;
  }

  std::string Render() {
    DrawLegend();
    DrawAxes();
    body_ +=
        fmt::format(R"(<clipPath id="{}-plot"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/></clipPath>)"
                    "\n",
                    EscapeHtml(chart_.id), left_, bottom_ - room_.plot_height, plot_width_, room_.plot_height);
    body_ += fmt::format(R"svg(<g clip-path="url(#{}-plot)">)svg"
                         "\n",
                         EscapeHtml(chart_.id));
    for (const Curve& line : chart_.lines) DrawBand(line);
    for (const Curve& line : chart_.lines) DrawLine(line);
    body_ += "</g>\n";
    for (const Curve& line : chart_.lines) DrawDots(line);
    for (const Curve& line : chart_.lines) DrawCross(line);
    DrawMarks();
    return svg::Document(chart_.id, chart_.title, chart_.description, width_, bottom_ + 2 * svg::kLine + 10, body_);
  }

 private:
  bool Shows(double y) const { return std::isfinite(y) && (!chart_.log || y > 0); }

  std::string Tick(double tick) const { return TickText(tick, unit_.suffix, digits_); }

  double X(double x) const {
    if (chart_.at.empty()) return left_ + x / chart_.x_max * plot_width_;
    const auto place = [&](double value) { return chart_.log_x ? std::log(value) : value; };
    const double span = place(chart_.at.back()) - place(chart_.at.front());
    const double share = span > 0 ? (place(x) - place(chart_.at.front())) / span : 0.5;
    return left_ + kInset + share * (plot_width_ - 2 * kInset);
  }
  double X(const Curve& line, double x) const {
    const auto place = static_cast<double>(&line - chart_.lines.data());
    return X(x) + beside_ * (place - (static_cast<double>(chart_.lines.size()) - 1) / 2);
  }
  double Y(double y) const { return YOfTick(y / unit_.divisor); }
  double YOfTick(double y) const {
    const auto place = [&](double value) { return chart_.log ? std::log(value) : value; };
    const double low = place(y_ticks_.front());
    const double share = (place(y) - low) / (place(y_ticks_.back()) - low);
    // Lines that leave the plot are cut there, so that coordinates stay bounded.
    return bottom_ - std::clamp(share, -1.0, 2.0) * room_.plot_height;
  }

  void DrawLegend() {
    double x = 0;
    y_ += svg::kLine;
    for (const Curve& line : chart_.lines) {
      if (line.legend.empty()) continue;
      const std::string label = svg::Fit(line.legend, std::min(330.0, width_ - kSwatch - 20), svg::kFont);
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
    body_ += svg::Text(0, y_ + 12, "start", svg::kSmallFont, svg::Fit(unit_.name, width_, svg::kSmallFont), kFaint);
    bottom_ = y_ + 26 + (chart_.marks.empty() ? 0 : svg::kLine) + room_.plot_height;
    for (const double tick : y_ticks_) {
      const bool base = tick == 0 || (!chart_.log && tick == y_ticks_.front());
      const double y = YOfTick(tick);
      body_ += svg::Line(left_, y, left_ + plot_width_, y, base ? 0.6 : 0.14);
      body_ += svg::Text(left_ - 6, y + 4, "end", svg::kSmallFont, Tick(tick), kFaint);
    }
    double end = -4;  // the end of the previous label
    for (const double& tick : x_ticks_) {
      if (chart_.at.empty() && tick > chart_.x_max) continue;
      const auto place = static_cast<size_t>(&tick - x_ticks_.data());
      const std::string label =
          chart_.at_labels.empty() ? TickText(tick) : svg::Fit(chart_.at_labels[place], kLongestTick, svg::kSmallFont);
      const double half = svg::TextWidth(label, svg::kSmallFont) / 2;
      const auto draw = [&] { body_ += svg::Line(X(tick), bottom_, X(tick), bottom_ + 4, 0.6); };
      if (!dense_) draw();
      // Words at the ends are moved inside the plot.
      const double middle = chart_.at_labels.empty() ? X(tick) : std::clamp(X(tick), half, width_ - half);
      if (middle - half < end + 4 || middle + half > width_) continue;
      if (dense_) draw();
      body_ += svg::Text(middle, bottom_ + 16, "middle", svg::kSmallFont, label, kFaint);
      end = middle + half;
    }
    body_ += svg::Text(left_ + plot_width_ / 2, bottom_ + 16 + svg::kLine, "middle", svg::kSmallFont,
                       svg::Fit(chart_.x_axis, plot_width_, svg::kSmallFont), kFaint);
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

  // Over a column: each point's interval, as far as the axis goes. An arrowhead shows that it continues.
  void DrawErrorBars(const Curve& line) {
    std::string path;
    for (const LinePoint& point : line.points) {
      if (!Shows(point.y) || !(point.low < point.high)) continue;
      const double bottom = y_ticks_.front() * unit_.divisor;
      const double top = y_ticks_.back() * unit_.divisor;
      const double from = Y(std::clamp(point.low, bottom, top));
      const double to = Y(std::clamp(point.high, bottom, top));
      path += svg::UprightInterval(X(line, point.x), from, to, point.low<bottom, point.high> top);
    }
    if (path.empty()) return;
    body_ += fmt::format(R"(<path class="error" d="{}" fill="none" stroke="{}"/>)"
                         "\n",
                         path, svg::Colour(line.colour));
  }

  void DrawBand(const Curve& line) {
    if (dense_) return;
    if (!chart_.at.empty()) return DrawErrorBars(line);
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
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', X(line, p.x), Y(p.y));
      }
      if (stretch.size() == 1) path += "h0";  // a dot
      body_ += "<path d=\"" + path + "\"/>\n";
    });
    body_ += "</g>\n";
  }

  // The dots of a line over a column. They are whole also at the edges of the plot. A point without a line has a ring,
  // so that it is visible behind another's dot.
  void DrawDots(const Curve& line) {
    if (chart_.at.empty() || dense_ || !line.failure.empty()) return;
    for (const LinePoint& point : line.points) {
      if (!Shows(point.y)) continue;
      // An outline marks a figure that was not measured.
      const bool hollow = line.stroke == Stroke::kDotted;
      body_ +=
          fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" {}="{}"{}><title>{}</title></circle>)"
                      "\n",
                      X(line, point.x), Y(point.y), kDot, hollow ? R"(fill="none" stroke-width="1.5" stroke)" : "fill",
                      svg::Colour(line.colour), hollow ? R"( class="hollow")" : "",
                      EscapeHtml(point.title.empty() ? line.title : point.title));
      if (line.points.size() > 1) continue;
      body_ += fmt::format(
          R"(<circle class="alone" cx="{:.1f}" cy="{:.1f}" r="{}" fill="none" stroke="{}" stroke-width="1.8"/>)"
          "\n",
          X(line, point.x), Y(point.y), kRing, svg::Colour(line.colour));
    }
  }

  // Words that would overlap earlier ones are shown only under a pointer.
  void DrawMarks() {
    const double top = bottom_ - room_.plot_height;
    double end = 0;
    for (const LineMark& mark : chart_.marks) {
      const double x = X(mark.x);
      body_ += fmt::format(R"(<path class="mark" d="M{:.1f} {:.1f}V{:.1f}" stroke="currentColor" )"
                           R"(stroke-dasharray="4 3"><title>{}</title></path>)"
                           "\n",
                           x, top - 4, bottom_, EscapeHtml(mark.text));
      const std::string text = svg::Fit(mark.text, width_ - left_, svg::kSmallFont);
      const double wide = svg::TextWidth(text, svg::kSmallFont);
      const double from = std::min(x - 3, width_ - wide);
      if (from < end + 8) continue;
      body_ += svg::Text(from, top - 8, "start", svg::kSmallFont, text);
      end = from + wide;
    }
  }

  // A failed run's end, at the edge of the plot if it had left it.
  void DrawCross(const Curve& line) {
    if (line.failure.empty() || line.points.empty()) return;
    const auto last =
        std::find_if(line.points.rbegin(), line.points.rend(), [&](const LinePoint& point) { return Shows(point.y); });
    const double x = X(line, last == line.points.rend() ? line.points.front().x : last->x);
    const double top = bottom_ - room_.plot_height;
    const double y = last == line.points.rend() ? bottom_ : std::clamp(Y(last->y), top, bottom_);
    body_ +=
        fmt::format(R"(<path d="M{0:.1f} {1:.1f}l{2} {2}m0 -{2}l-{2} {2}" fill="none" stroke="{3}" stroke-width="2.2">)"
                    "<title>{4}</title></path>\n",
                    x - kCross, y - kCross, 2 * kCross, svg::Colour(line.colour), EscapeHtml(line.failure));
  }

  const LineChart& chart_;
  const svg::Room room_;
  AxisUnit unit_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;  // in the unit
  int digits_ = kTickDigits;     // digits of their labels
  double plot_width_ = 0;
  double left_ = 0;  // the left edge of the plot
  double width_ = 0;
  double y_ = 0;        // the vertical position of the drawing so far
  double bottom_ = 0;   // the bottom edge of the plot
  bool dense_ = false;  // more places than dots can show separately
  double beside_ = 0;   // offset between lines, so that error bars do not hide each other
  std::string body_;
};

}  // namespace

std::string RenderLineChart(const LineChart& chart, const svg::Room& room) {
  return LinesRenderer(chart, room).Render();
}

}  // namespace ridgeline::report
