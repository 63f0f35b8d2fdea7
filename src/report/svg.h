// Elements for drawing charts: colours, fonts, the width of text, and the parts that all charts share.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::report::svg {

// The size of a chart, in pixels. A chart is drawn again for each size that a page may have, instead of being scaled,
// so its text has the same size in all of them.
struct Room {
  double width;        // the most that the drawing takes, except for names longer than any line
  double plot_height;  // between the axes
};
inline constexpr Room kWide = {1320, 260};   // the whole of a large screen
inline constexpr Room kMedium = {644, 220};  // half a large screen, a tablet, a printed page
inline constexpr Room kNarrow = {340, 190};  // a phone

// Pixels.
inline constexpr double kFont = 12;
inline constexpr double kSmallFont = 11;
inline constexpr double kLine = 15;  // from one line of text to the next

inline constexpr size_t kPaletteSize = 8;
std::string_view Colour(size_t index);  // taken modulo the palette's size
inline constexpr std::string_view kFailureColour = "#d1432b";

// Assumes 0.62 em per character, which no common sans-serif exceeds on average.
double TextWidth(std::string_view text, double font);
std::string Fit(std::string_view text, double width, double font);  // cut if it is wider

// Elements. `extra` has attributes that begin with a space. Text is escaped here.
std::string Text(double x, double y, std::string_view anchor, double font, std::string_view text,
                 std::string_view extra = {});
std::string Line(double x1, double y1, double x2, double y2, double opacity);

// The path of an interval's line, in pixels. It has a bar where the interval ends, and an arrowhead where it continues
// beyond the axis.
std::string UprightInterval(double x, double low, double high, bool low_is_cut, bool high_is_cut);
std::string LyingInterval(double y, double low, double high, bool low_is_cut, bool high_is_cut);

// The whole <svg>, with a name and a description for screen readers. Text takes the page's colour.
std::string Document(std::string_view id, std::string_view title, std::string_view description, double width,
                     double height, std::string_view body);

}  // namespace ridgeline::report::svg
