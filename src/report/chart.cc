#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "report/escape.h"
#include "report/svg.h"

namespace ridgeline::report {
namespace {

using svg::Colour;
using svg::Fit;
using svg::kFailureColour;
using svg::kFont;
using svg::kLine;
using svg::kPaletteSize;
using svg::kSmallFont;
using svg::TextWidth;

constexpr double kBar = 28;
constexpr double kBarGap = 3;
constexpr double kSlotGap = 10;
constexpr double kClusterGap = 12;
constexpr double kMaxLabel = 144;
constexpr double kMaxNote = 68;
constexpr double kMaxBar = 80;    // for bars that spread out
constexpr double kMaxSlot = 240;  // for slots that spread out
constexpr double kMinPlot = 290;  // over which legends and axes look right
constexpr double kRight = 8;
constexpr double kHeadroom = 20;  // above the plot, for the labels of the tallest bars

double Total(const Bar& bar) {
  double total = 0;
  for (const BarPart& part : bar.parts) total += part.value;
  return std::isfinite(total) ? std::max(total, 0.0) : 0;
}

// The upper end of its interval.
double High(const Bar& bar) { return !bar.parts.empty() && std::isfinite(bar.high) ? std::max(bar.high, 0.0) : 0; }

class Renderer {
 public:
  Renderer(const BarChart& chart, const svg::Room& room) : chart_(chart), room_(room) {
    double tallest = 0;
    double wanted = 0;
    for (const Slot& slot : chart.slots) {
      // A very wide interval must not flatten the bars, so it is cut at the top, too.
      for (const Bar& bar : slot.bars) tallest = std::max({tallest, Total(bar), std::min(High(bar), 1.6 * Total(bar))});
      wanted = std::max(wanted, slot.wanted);
    }
    // A failure that needed far more than any run must not flatten the runs, so its outline is cut at the top.
    const double max = tallest > 0 ? std::max(tallest, std::min(wanted, 1.6 * tallest)) : wanted;
    scale_ = PickUnit(chart.scale, max, chart.axis);
    ticks_ = AxisTicks(max / scale_.divisor);
    double label = kBar;
    double name = 0;
    size_t bars = 1;
    for (const Slot& slot : chart.slots) {
      bars = std::max(bars, slot.bars.size());
      for (const std::string& text : {slot.label, slot.cluster}) {
        name = std::max(name, std::min(TextWidth(text, kFont), kMaxLabel));
      }
      name = std::max(name, std::min(TextWidth(slot.note, kSmallFont), kMaxNote));  // it has several lines
      for (const Bar& bar : slot.bars) label = std::max(label, TextWidth(Number(Total(bar)), kSmallFont) + 2);
      label = std::max(label, TextWidth(Number(slot.wanted), kSmallFont) / static_cast<double>(bars));
    }
    bar_width_ = std::min(label, 1.6 * kBar);
    slot_width_ = std::max(static_cast<double>(bars) * (bar_width_ + kBarGap) - kBarGap, name) + kSlotGap;
    for (const double tick : ticks_) left_ = std::max(left_, TextWidth(Tick(tick), kSmallFont) + 14);
  }

  std::string Render() {
    const std::vector<std::span<const Slot>> rows = BreakIntoRows();
    SpreadOut(rows);
    double plot_width = room_.width - left_ - kRight;
    if (rows.size() == 1) plot_width = std::min(plot_width, std::max(RowWidth(rows[0]), kMinPlot));
    for (const auto& row : rows) plot_width = std::max(plot_width, RowWidth(row));
    width_ = left_ + plot_width + kRight;
    for (const auto& row : rows) DrawRow(row, plot_width);
    DrawLegend();
    return svg::Document(chart_.id, chart_.title, chart_.description, width_, y_, Patterns() + body_);
  }

 private:
  // As few rows as the room allows, of about equal length.
  std::vector<std::span<const Slot>> BreakIntoRows() const {
    const std::vector<std::span<const Slot>> fewest = BreakIntoRows(chart_.slots.size());
    for (size_t most = (chart_.slots.size() + fewest.size() - 1) / std::max<size_t>(fewest.size(), 1);; ++most) {
      std::vector<std::span<const Slot>> rows = BreakIntoRows(most);
      if (rows.size() <= fewest.size()) return rows;
    }
  }

  // As many slots per row as fit, but at most `most`. Breaks between clusters if that leaves the row at least half
  // full.
  std::vector<std::span<const Slot>> BreakIntoRows(size_t most) const {
    std::vector<std::span<const Slot>> rows;
    std::span<const Slot> rest(chart_.slots);
    while (!rest.empty()) {
      size_t count = 1;
      while (count < std::min(rest.size(), most) && RowWidth(rest.first(count + 1)) <= room_.width - left_ - kRight) {
        ++count;
      }
      size_t end = count;
      while (end < rest.size() && end > 0 && !StartsCluster(rest, end)) --end;
      if (end >= (count + 1) / 2) count = end;
      rows.push_back(rest.first(count));
      rest = rest.subspan(count);
    }
    return rows;
  }

  // Slots and their bars become as wide as the fullest row allows.
  void SpreadOut(const std::vector<std::span<const Slot>>& rows) {
    double factor = kMaxSlot / slot_width_;
    size_t bars = 1;
    for (const auto& row : rows) {
      factor = std::min(factor, (room_.width - left_ - kRight - RowGaps(row)) / (RowWidth(row) - RowGaps(row)));
      for (const Slot& slot : row) bars = std::max(bars, slot.bars.size());
    }
    if (factor <= 1) return;
    slot_width_ *= factor;
    const double share = (slot_width_ - kSlotGap) / static_cast<double>(bars) - kBarGap;
    bar_width_ = std::clamp(0.8 * share, bar_width_, kMaxBar);
  }

  static bool StartsCluster(std::span<const Slot> row, size_t i) {
    return i > 0 && row[i].cluster != row[i - 1].cluster;
  }

  static double RowGaps(std::span<const Slot> row) {
    double gaps = 0;
    for (size_t i = 0; i < row.size(); ++i) gaps += StartsCluster(row, i) ? kClusterGap : 0;
    return gaps;
  }

  double RowWidth(std::span<const Slot> row) const {
    return static_cast<double>(row.size()) * slot_width_ + RowGaps(row);
  }

  // Formatted as in tables, so that a bar and its row agree to the digit; bytes in the axis's unit.
  std::string Number(double value) const {
    if (chart_.scale == AxisScale::kCount) return FormatCount(value);
    if (chart_.scale == AxisScale::kPlain) return ShortNumber(value);
    const double shown = value / scale_.divisor;
    return fmt::format("{:.{}f}", shown, shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : shown >= 0.9995 ? 2 : 3);
  }
  std::string Tick(double tick) const {
    return fmt::format("{:.10g}{}", tick, tick == 0 ? std::string_view() : scale_.suffix);
  }

  void Text(double x, double y, std::string_view anchor, double font, std::string_view text,
            std::string_view extra = {}) {
    body_ += svg::Text(x, y, anchor, font, text, extra);
  }

  void Line(double x1, double y1, double x2, double y2, double opacity) { body_ += svg::Line(x1, y1, x2, y2, opacity); }

  std::string Paint(size_t colour, Fill fill, bool light) {
    const std::string_view name = Colour(colour);
    if (fill == Fill::kSolid) {
      return light ? fmt::format(R"(fill="{0}" fill-opacity="0.35" stroke="{0}")", name)
                   : fmt::format(R"(fill="{}")", name);
    }
    patterns_.emplace(colour % kPaletteSize, fill);
    return fmt::format(R"svg(fill="url(#{}-{}{})" stroke="{}"{})svg", EscapeHtml(chart_.id),
                       fill == Fill::kHatched ? "hatch" : "dots", colour % kPaletteSize, name,
                       light ? R"( fill-opacity="0.5")" : "");
  }

  std::string Patterns() const {
    if (patterns_.empty()) return {};
    std::string out = "<defs>\n";
    for (const auto& [colour, fill] : patterns_) {
      const bool hatch = fill == Fill::kHatched;
      out += fmt::format(R"(<pattern id="{}-{}{}" width="6" height="6" patternUnits="userSpaceOnUse"{}>)",
                         EscapeHtml(chart_.id), hatch ? "hatch" : "dots", colour,
                         hatch ? R"svg( patternTransform="rotate(45)")svg" : "");
      out += fmt::format(R"(<rect width="6" height="6" fill="{}" fill-opacity="0.18"/>)", Colour(colour));
      out += hatch ? fmt::format(R"(<rect width="2.5" height="6" fill="{}"/>)", Colour(colour))
                   : fmt::format(R"(<circle cx="3" cy="3" r="1.5" fill="{}"/>)", Colour(colour));
      out += "</pattern>\n";
    }
    return out + "</defs>\n";
  }

  void DrawLegend() {
    double x = left_;
    y_ += kLine;
    for (const LegendEntry& entry : chart_.legend) {
      const std::string label = Fit(entry.label, std::min(330.0, width_ - left_ - 20), kFont);
      const double advance = 18 + TextWidth(label, kFont) + 12;
      if (x > left_ && x + advance > width_) {
        x = left_;
        y_ += kLine + 3;
      }
      const std::string paint = entry.outline
                                    ? fmt::format(R"(fill="none" stroke="{}" stroke-dasharray="3 2")", kFailureColour)
                                    : Paint(entry.colour, entry.fill, entry.light);
      body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="11" height="11" rx="2" {}/>)"
                           "\n",
                           x + 0.5, y_ - 10, paint);
      Text(x + 18, y_, "start", kFont, label);
      x += advance;
    }
    y_ += 6;
  }

  double Y(double value) const {  // value in the chart's own unit
    const double share = std::min(value / scale_.divisor / ticks_.back(), 1.0);
    return bottom_ - share * room_.plot_height;
  }

  void DrawRow(std::span<const Slot> row, double plot_width) {
    Text(0, y_ + 12, "start", kSmallFont, Fit(scale_.name, left_ + 120, kSmallFont), R"( fill-opacity="0.75")");
    y_ += kHeadroom + 10;
    bottom_ = y_ + room_.plot_height;
    for (const double tick : ticks_) {
      const double y = bottom_ - tick / ticks_.back() * room_.plot_height;
      if (tick > 0) Line(left_, y, left_ + plot_width, y, 0.14);
      Text(left_ - 6, y + 4, "end", kSmallFont, Tick(tick), R"( fill-opacity="0.75")");
    }
    Line(left_, bottom_, left_ + plot_width, bottom_, 0.6);
    double x = left_;
    size_t note_lines = 0;
    bool clusters = false;
    for (const Slot& slot : row) {
      note_lines = std::max(note_lines, Words(slot.note, slot_width_ - 4).size());
      clusters = clusters || !slot.cluster.empty();
    }
    double cluster_start = x;
    const double cluster_y = bottom_ + 17 + static_cast<double>(note_lines) * kLine;
    for (size_t i = 0; i < row.size(); ++i) {
      if (StartsCluster(row, i)) {
        DrawCluster(row[i - 1].cluster, cluster_start, x, cluster_y);
        x += kClusterGap;
        cluster_start = x;
      }
      DrawSlot(row[i], x + slot_width_ / 2);
      x += slot_width_;
    }
    if (!row.empty()) DrawCluster(row.back().cluster, cluster_start, x, cluster_y);
    y_ = cluster_y + (clusters ? kLine + 10 : 0) + 6;
  }

  void DrawCluster(const std::string& cluster, double from, double to, double y) {
    if (cluster.empty()) return;
    Line(from + 6, y + 6, to - 6, y + 6, 0.4);
    Text((from + to) / 2, y + 6 + kLine, "middle", kFont, Fit(cluster, to - from, kFont), R"( font-weight="600")");
  }

  void DrawSlot(const Slot& slot, double centre) {
    body_ += fmt::format("<g><title>{}</title>\n", EscapeHtml(slot.title));
    const auto bars = static_cast<double>(slot.bars.size());
    double x = centre - (bars * (bar_width_ + kBarGap) - kBarGap) / 2;
    for (const Bar& bar : slot.bars) {
      DrawBar(bar, x);
      x += bar_width_ + kBarGap;
    }
    if (!slot.failure.empty()) DrawFailure(slot, centre);
    Text(centre, bottom_ + 16, "middle", kFont, Fit(slot.label, slot_width_, kFont));
    double y = bottom_ + 16;
    for (const std::string& line : Words(slot.note, slot_width_ - 4)) {
      y += kLine;
      Text(centre, y, "middle", kSmallFont, Fit(line, slot_width_ - 4, kSmallFont), R"( font-style="italic")");
    }
    body_ += "</g>\n";
  }

  void DrawBar(const Bar& bar, double x) {
    if (bar.parts.empty()) return;
    body_ += fmt::format("<g><title>{}</title>\n", EscapeHtml(bar.title));
    double sum = 0;
    double y = bottom_;
    for (const BarPart& part : bar.parts) {
      if (!std::isfinite(part.value) || part.value <= 0) continue;
      sum += part.value;
      const double top = Y(sum);
      const double gap = sum > part.value ? std::min(1.0, (y - top) / 2) : 0;  // separates neighbours
      body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}" {})", x, top, bar_width_,
                           std::max(y - top - gap, 0.0), Paint(part.colour, bar.fill, bar.light));
      body_ += part.title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", EscapeHtml(part.title));
      y = top;
    }
    if (High(bar) > 0) {
      DrawErrorBar(bar, x + bar_width_ / 2);
      y = std::min(y, Y(bar.high));
    }
    Text(x + bar_width_ / 2, y - 5, "middle", kSmallFont, Number(sum));
    body_ += "</g>\n";
  }

  // An interval that continues beyond the axis ends in an arrowhead.
  void DrawErrorBar(const Bar& bar, double x) {
    const double top = Y(bar.high);
    const double bottom = Y(std::max(bar.low, 0.0));
    Line(x, top, x, bottom, 0.9);
    if (bar.high / scale_.divisor > ticks_.back()) {
      Line(x - 4, top + 6, x, top, 0.9);
      Line(x + 4, top + 6, x, top, 0.9);
    } else {
      Line(x - 4, top, x + 4, top, 0.9);
    }
    Line(x - 4, bottom, x + 4, bottom, 0.9);
  }

  void DrawFailure(const Slot& slot, double centre) {
    const std::string colour = fmt::format(R"( fill="{}")", kFailureColour);
    double y = bottom_;
    const double inside = slot_width_ - 8;  // width inside the outline
    const double room = slot.wanted > 0 ? inside - 4 : slot_width_;
    const std::vector<std::string> lines = Words(slot.failure, room);
    const double words_height = static_cast<double>(lines.size()) * kLine + 8;
    if (slot.wanted > 0) {
      const bool cut = slot.wanted / scale_.divisor > ticks_.back();
      const double top = Y(slot.wanted);
      const double half = inside / 2;
      body_ += fmt::format(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}{3}{4:.1f}{5}V{1:.1f}" fill="{6}" fill-opacity="0.06" )"
                           R"(stroke="{6}" stroke-dasharray="4 3"/>)"
                           "\n",
                           centre - half, bottom_, top, cut ? "M" : "H", centre + half,
                           cut ? fmt::format(" {:.1f}", top) : "", kFailureColour);
      // An arrow marks what continues beyond the axis.
      Text(centre, top - 5, "middle", kSmallFont, cut ? "\xE2\x86\x91 " + slot.wanted_text : Number(slot.wanted),
           colour);
      if (bottom_ - top < words_height) y = top - kLine;
    }
    for (size_t i = lines.size(); i-- > 0; y -= kLine) {
      Text(centre, y - 7, "middle", kSmallFont, Fit(lines[i], room, kSmallFont), colour);
    }
  }

  // Lines of whole words. Only the title has a fourth line and more.
  static std::vector<std::string> Words(std::string_view text, double width) {
    std::vector<std::string> lines;
    while (!text.empty()) {
      const size_t space = text.find(' ');
      const std::string word(text.substr(0, space));
      text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
      if (!lines.empty() && TextWidth(lines.back() + " " + word, kSmallFont) <= width) {
        lines.back() += " " + word;
      } else if (lines.size() < 3) {
        lines.push_back(word);
      } else {
        lines.back() += "\xE2\x80\xA6";
        break;
      }
    }
    return lines;
  }

  const BarChart& chart_;
  const svg::Room room_;
  AxisUnit scale_;
  std::vector<double> ticks_;  // in the scale's unit
  double bar_width_ = 0;
  double slot_width_ = 0;
  double left_ = 0;  // where the plot begins
  double width_ = 0;
  double y_ = 0;       // how far down has been drawn
  double bottom_ = 0;  // the base line of the row being drawn
  std::set<std::pair<size_t, Fill>> patterns_;
  std::string body_;
};

}  // namespace

std::string RenderBarChart(const BarChart& chart, const svg::Room& room) { return Renderer(chart, room).Render(); }

}  // namespace ridgeline::report
