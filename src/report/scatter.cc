#include "report/scatter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "report/escape.h"

namespace ridgeline::report {
namespace {

// Pixels.
constexpr double kMark = 4.5;  // from a mark's middle to its edge
constexpr double kScatterRight = 16;
constexpr double kLongestLabel = 190;
constexpr double kFailureCross = 4;
constexpr std::string_view kScatterFaint = R"( fill-opacity="0.75")";

struct PlotBox {
  double left, top, right, bottom;
  bool Meets(const PlotBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Figures along one side of the plot.
class PlotAxis {
 public:
  PlotAxis(const ScatterAxis& axis, const std::vector<ScatterFigure>& figures) : log_(axis.log) {
    double min = std::numeric_limits<double>::infinity();
    double max = -min;
    for (const ScatterFigure& figure : figures) {
      min = std::min(min, Place(figure.value));
      max = std::max(max, Place(figure.value));
    }
    if (min > max) min = max = Place(1);
    const bool positive = !log_ && min >= 0;
    // Intervals have as much room again on either side of the figures, or a tenth of the largest.
    const double least_room = log_ ? std::log(1.1) : 0.1 * std::max(std::abs(min), std::abs(max));
    const double room = std::max(max - min, least_room);
    const double least = min - room;
    const double most = max + room;
    for (const ScatterFigure& figure : figures) {
      if (!(figure.low < figure.high)) continue;
      min = std::min(min, log_ && figure.low <= 0 ? least : std::max(Place(figure.low), least));
      max = std::max(max, std::min(Place(figure.high), most));
    }
    // Keeps marks off the edges.
    const double margin = 0.03 * std::max(max - min, least_room);
    min = positive ? std::max(min - margin, 0.0) : min - margin;
    max += margin;
    const double from = log_ ? std::exp(min) : min;
    const double to = log_ ? std::exp(max) : max;
    unit_ = PickUnit(axis.scale, std::max(std::abs(from), std::abs(to)), axis.name);
    if (axis.scale == AxisScale::kBytes && !axis.name.empty()) unit_.name = axis.name + ", " + unit_.name;
    ticks_ = log_ ? LogTicks(from / unit_.divisor, to / unit_.divisor)
                  : LinearTicks(from / unit_.divisor, to / unit_.divisor);
    digits_ = DigitsOfTicks(ticks_);
  }

  const std::string& name() const { return unit_.name; }
  const std::vector<double>& ticks() const { return ticks_; }  // in the axis's unit
  std::string Label(double tick) const { return TickText(tick, unit_.suffix, digits_); }
  double ShareOfTick(double tick) const {
    const double first = Place(ticks_.front());
    return (Place(tick) - first) / (Place(ticks_.back()) - first);
  }
  // The position along the axis, from 0 to 1; limited to the ends.
  double Share(double value) const {
    return ShareOfTick(std::clamp(value / unit_.divisor, ticks_.front(), ticks_.back()));
  }
  bool BeginsAfter(double value) const { return value / unit_.divisor < ticks_.front(); }
  bool EndsBefore(double value) const { return value / unit_.divisor > ticks_.back(); }

 private:
  double Place(double value) const { return log_ ? std::log(value) : value; }

  bool log_;
  AxisUnit unit_;
  std::vector<double> ticks_;
  int digits_ = kTickDigits;
};

std::vector<ScatterFigure> FiguresOf(const ScatterChart& chart, bool of_x) {
  std::vector<ScatterFigure> figures;
  for (const ScatterGroup& group : chart.groups) {
    for (const ScatterPoint& point : group.points) {
      if (of_x || point.failure.empty()) figures.push_back(of_x ? point.x : point.y);
    }
  }
  return figures;
}

class ScatterRenderer {
 public:
  ScatterRenderer(const ScatterChart& chart, const svg::Room& room)
      : chart_(chart),
        height_(room.plot_height),
        width_(room.width),
        x_(chart.x, FiguresOf(chart, true)),
        y_(chart.y, FiguresOf(chart, false)) {
    for (const double tick : y_.ticks()) {
      left_ = std::max(left_, svg::TextWidth(y_.Label(tick), svg::kSmallFont) + 14);
    }
    right_ = width_ - kScatterRight;
    for (const ScatterGroup& group : chart.groups) {
      for (const ScatterPoint& point : group.points) has_line_ = has_line_ || point.on_line;
    }
  }

  std::string Render() {
    DrawLegend();
    DrawAxes();
    DrawThrough(false);
    DrawThrough(true);
    for (const ScatterGroup& group : chart_.groups) {
      for (const ScatterPoint& point : group.points) DrawIntervals(group, point);
    }
    for (const ScatterGroup& group : chart_.groups) DrawMarks(group);
    DrawLabels();
    return svg::Document(chart_.id, chart_.title, chart_.description, width_, bottom_ + 2 * svg::kLine + 10, body_);
  }

 private:
  double X(double value) const { return left_ + x_.Share(value) * (right_ - left_); }
  double Y(double value) const { return bottom_ - y_.Share(value) * height_; }
  double Y(const ScatterPoint& point) const { return point.failure.empty() ? Y(point.y.value) : bottom_; }

  // Groups also differ by the shapes of their marks: a circle, a square, a triangle, a diamond.
  static std::string Mark(const ScatterGroup& group, double x, double y) {
    constexpr double kWide = 1.25 * kMark;
    switch (group.colour % 4) {
      case 0:
        return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}")", x, y, kMark);
      case 1:
        return fmt::format(R"(<path d="M{:.1f} {:.1f}h{}v{}h-{}Z")", x - 0.9 * kMark, y - 0.9 * kMark, 1.8 * kMark,
                           1.8 * kMark, 1.8 * kMark);
      case 2:
        return fmt::format(R"(<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}Z")", x, y - kWide, x + kWide, y + kMark,
                           x - kWide);
      default:
        return fmt::format(R"(<path d="M{:.1f} {:.1f}l{} {}l-{} {}l-{} -{}Z")", x, y - kWide, kWide, kWide, kWide,
                           kWide, kWide, kWide);
    }
  }

  static std::string Cross(double x, double y) {
    return fmt::format(R"(<path d="M{0:.1f} {1:.1f}l{2} {2}m0 -{2}l-{2} {2}")", x - kFailureCross, y - kFailureCross,
                       2 * kFailureCross);
  }

  static std::string Paint(const ScatterGroup& group) {
    return fmt::format(R"(fill="{}" stroke="{}" stroke-width="1.6")", group.hollow ? "none" : svg::Colour(group.colour),
                       svg::Colour(group.colour));
  }

  void DrawLegend() {
    constexpr double kRoom = 16;  // room for a mark
    double x = 0;
    y_now_ += svg::kLine;
    for (const ScatterGroup& group : chart_.groups) {
      if (group.legend.empty()) continue;
      const std::string label = svg::Fit(group.legend, std::min(330.0, width_ - kRoom - 20), svg::kFont);
      const double advance = kRoom + svg::TextWidth(label, svg::kFont) + 14;
      if (x > 0 && x + advance > width_) {
        x = 0;
        y_now_ += svg::kLine + 3;
      }
      const bool failed = !group.points.empty() && !group.points.front().failure.empty();
      body_ += (failed ? Cross(x + kMark + 2, y_now_ - 4) : Mark(group, x + kMark + 2, y_now_ - 4)) + " " +
               Paint(group) + "/>\n";
      body_ += svg::Text(x + kRoom, y_now_, "start", svg::kFont, label);
      x += advance;
    }
    y_now_ += 10;
  }

  void DrawAxes() {
    body_ += svg::Text(0, y_now_ + 12, "start", svg::kSmallFont, svg::Fit(y_.name(), width_, svg::kSmallFont),
                       kScatterFaint);
    top_ = y_now_ + 26;
    bottom_ = top_ + height_;
    for (const double tick : y_.ticks()) {
      const double y = bottom_ - y_.ShareOfTick(tick) * height_;
      body_ += svg::Line(left_, y, right_, y, tick == y_.ticks().front() ? 0.6 : 0.14);
      body_ += svg::Text(left_ - 6, y + 4, "end", svg::kSmallFont, y_.Label(tick), kScatterFaint);
    }
    double end = 0;  // the end of the previous label
    for (const double tick : x_.ticks()) {
      const double x = left_ + x_.ShareOfTick(tick) * (right_ - left_);
      const std::string label = x_.Label(tick);
      const double half = svg::TextWidth(label, svg::kSmallFont) / 2;
      body_ += svg::Line(x, top_, x, bottom_ + 4, tick == x_.ticks().front() ? 0.6 : 0.14);
      if (x - half < end + 4 || x + half > width_) continue;
      body_ += svg::Text(x, bottom_ + 16, "middle", svg::kSmallFont, label, kScatterFaint);
      end = x + half;
    }
    body_ += svg::Text((left_ + right_) / 2, bottom_ + 16 + svg::kLine, "middle", svg::kSmallFont,
                       svg::Fit(x_.name(), right_ - left_, svg::kSmallFont), kScatterFaint);
  }

  // Measured points and other points have separate lines, because they are not compared.
  void DrawThrough(bool hollow) {
    std::vector<std::pair<double, double>> places;
    for (const ScatterGroup& group : chart_.groups) {
      if (group.hollow != hollow) continue;
      for (const ScatterPoint& point : group.points) {
        if (point.on_line && point.failure.empty()) places.emplace_back(X(point.x.value), Y(point.y.value));
      }
    }
    if (places.size() < 2) return;
    std::sort(places.begin(), places.end());
    std::string path;
    for (const auto& [x, y] : places) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x, y);
    body_ += fmt::format(R"(<path class="through" d="{}" fill="none" stroke="currentColor" stroke-opacity="0.5"{}/>)"
                         "\n",
                         path, hollow ? R"( stroke-dasharray="1.5 3")" : "");
  }

  void DrawIntervals(const ScatterGroup& group, const ScatterPoint& point) {
    std::string path;
    if (const ScatterFigure& x = point.x; x.low < x.high) {
      path += svg::LyingInterval(Y(point), X(x.low), X(x.high), x_.BeginsAfter(x.low), x_.EndsBefore(x.high));
      taken_.push_back({X(x.low), Y(point) - 3, X(x.high), Y(point) + 3});
    }
    if (const ScatterFigure& y = point.y; y.low < y.high && point.failure.empty()) {
      const double at = X(point.x.value);
      path += svg::UprightInterval(at, Y(y.low), Y(y.high), y_.BeginsAfter(y.low), y_.EndsBefore(y.high));
      taken_.push_back({at - 3, Y(y.high), at + 3, Y(y.low)});
    }
    if (path.empty()) return;
    body_ += fmt::format(R"(<path class="error" d="{}" fill="none" stroke="{}"/>)"
                         "\n",
                         path, svg::Colour(group.colour));
  }

  void DrawMarks(const ScatterGroup& group) {
    body_ += "<g " + Paint(group) + ">\n";
    for (const ScatterPoint& point : group.points) {
      const double x = X(point.x.value);
      const double y = Y(point);
      taken_.push_back({x - kMark - 1, y - kMark - 1, x + kMark + 1, y + kMark + 1});
      body_ += point.failure.empty() ? Mark(group, x, y) : Cross(x, y);
      if (has_line_ && !point.on_line && point.failure.empty()) body_ += R"( opacity="0.35")";
      body_ += fmt::format("><title>{}</title>{}", EscapeHtml(point.title),
                           point.failure.empty() && group.colour % 4 == 0 ? "</circle>\n" : "</path>\n");
    }
    body_ += "</g>\n";
  }

  // Places a label right of a mark, left of it, above or below: where no mark, no interval and no other label is.
  // Labels of marks on the line come first.
  void DrawLabels() {
    for (const bool on_line : {true, false}) {
      for (const ScatterGroup& group : chart_.groups) {
        for (const ScatterPoint& point : group.points) {
          if (point.on_line == on_line && !point.label.empty()) DrawLabel(point);
        }
      }
    }
  }

  void DrawLabel(const ScatterPoint& point) {
    const std::string label = svg::Fit(point.label, std::min(kLongestLabel, 0.45 * width_), svg::kSmallFont);
    const double wide = svg::TextWidth(label, svg::kSmallFont);
    const double x = X(point.x.value);
    const double y = Y(point);
    struct Place {
      double left, base, x;
      const char* anchor;
    };
    const double beside = kMark + 4;
    for (const Place& place : std::array<Place, 4>{{{x + beside, y + 4, x + beside, "start"},
                                                    {x - beside - wide, y + 4, x - beside, "end"},
                                                    {x - wide / 2, y - beside - 1, x, "middle"},
                                                    {x - wide / 2, y + beside + 9, x, "middle"}}}) {
      const PlotBox box{place.left, place.base - svg::kSmallFont, place.left + wide, place.base + 2};
      if (box.left < left_ || box.right > width_ || box.top < top_ - 8 || box.bottom > bottom_) continue;
      if (std::any_of(taken_.begin(), taken_.end(), [&](const PlotBox& other) { return box.Meets(other); })) continue;
      body_ += svg::Text(place.x, place.base, place.anchor, svg::kSmallFont, label);
      taken_.push_back(box);
      return;
    }
  }

  const ScatterChart& chart_;
  const double height_;  // of the plot
  const double width_;
  const PlotAxis x_;
  const PlotAxis y_;
  double left_ = 0;  // of the plot
  double right_ = 0;
  double top_ = 0;
  double bottom_ = 0;
  double y_now_ = 0;            // the vertical position of the drawing so far
  bool has_line_ = false;       // marks off the line are pale
  std::vector<PlotBox> taken_;  // areas that are closed to labels
  std::string body_;
};

}  // namespace

std::string RenderScatterChart(const ScatterChart& chart, const svg::Room& room) {
  return ScatterRenderer(chart, room).Render();
}

}  // namespace ridgeline::report
