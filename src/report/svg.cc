#include "report/svg.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "report/escape.h"

namespace ridgeline::report::svg {
namespace {

// Each has a contrast of at least 3:1 with white and with the dark page.
constexpr std::array<std::string_view, kPaletteSize> kPalette = {"#3b7dd8", "#d9730d", "#8a5cd1", "#1f9e7a",
                                                                 "#d6457f", "#a0822c", "#2a9bb5", "#7d8590"};

}  // namespace

std::string_view Colour(size_t index) { return kPalette[index % kPalette.size()]; }

double TextWidth(std::string_view text, double font) {
  double width = 0;
  while (!text.empty()) width += NextCodePoint(text) >= 0x1100 ? font : 0.62 * font;
  return width;
}

std::string Fit(std::string_view text, double width, double font) {
  // Text that got exactly the width of its own text is not cut because of a rounding error.
  return ShortenToCodePoints(PrintableLine(text), static_cast<size_t>(std::max(2.0, width / (0.62 * font) + 1e-6)));
}

std::string Text(double x, double y, std::string_view anchor, double font, std::string_view text,
                 std::string_view extra) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="{}"{}>{}</text>)"
                     "\n",
                     x, y, anchor, font, extra, EscapeHtml(text));
}

std::string Line(double x1, double y1, double x2, double y2, double opacity) {
  return fmt::format(
      R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="currentColor" stroke-opacity="{}"/>)"
      "\n",
      x1, y1, x2, y2, opacity);
}

std::string UprightInterval(double x, double low, double high, bool low_is_cut, bool high_is_cut) {
  std::string path = fmt::format("M{:.1f} {:.1f}V{:.1f}", x, low, high);
  path +=
      low_is_cut ? fmt::format("M{:.1f} {:.1f}l4 6l4 -6", x - 4, low - 6) : fmt::format("M{:.1f} {:.1f}h8", x - 4, low);
  path += high_is_cut ? fmt::format("M{:.1f} {:.1f}l4 -6l4 6", x - 4, high + 6)
                      : fmt::format("M{:.1f} {:.1f}h8", x - 4, high);
  return path;
}

std::string LyingInterval(double y, double low, double high, bool low_is_cut, bool high_is_cut) {
  std::string path = fmt::format("M{:.1f} {:.1f}H{:.1f}", low, y, high);
  path +=
      low_is_cut ? fmt::format("M{:.1f} {:.1f}l-6 4l6 4", low + 6, y - 4) : fmt::format("M{:.1f} {:.1f}v8", low, y - 4);
  path += high_is_cut ? fmt::format("M{:.1f} {:.1f}l6 4l-6 4", high - 6, y - 4)
                      : fmt::format("M{:.1f} {:.1f}v8", high, y - 4);
  return path;
}

std::string Document(std::string_view id, std::string_view title, std::string_view description, double width,
                     double height, std::string_view body) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{0}-title {0}-desc" width="{1:.0f}" )"
      R"(height="{2:.0f}" viewBox="0 0 {1:.0f} {2:.0f}" fill="currentColor" font-size="{3}" )"
      R"(font-family="system-ui, Helvetica, Arial, sans-serif">)"
      "\n<title id=\"{0}-title\">{4}</title>\n<desc id=\"{0}-desc\">{5}</desc>\n{6}</svg>\n",
      EscapeHtml(id), width, height, kFont, EscapeHtml(title), EscapeHtml(description), body);
}

}  // namespace ridgeline::report::svg
