#include "driver/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::driver {
namespace {

constexpr int64_t kRedrawNs = 100'000'000;
constexpr unsigned kFewestColumns = 20;

// Returns nothing if `out` is no terminal, or a terminal that does not report its width.
std::optional<size_t> ColumnsOf(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < kFewestColumns) return std::nullopt;
  return size.ws_col;
}

}  // namespace

void RunDisplay::Started(const RunStart& start) {
  std::string text = fmt::format("{}: {}", PrintableLine(options_.sweep), CountOf(start.points, "point"));
  if (start.finished > 0)
    text += fmt::format(", {} {} already measured", start.finished, start.finished == 1 ? "was" : "were");
  if (start.elsewhere > 0) text += fmt::format(", {} of them by another machine or build", start.elsewhere);
  if (start.retried > 0) text += fmt::format(", {} failed before (run again)", start.retried);
  if (start.predicted_oom > 0)
    text += fmt::format(", {} predicted not to fit (skipped: {})", start.predicted_oom, start.predicted_oom_why);
  if (start.adopted_jobs > 0) text += fmt::format(", {} of an earlier run adopted", CountOf(start.adopted_jobs, "job"));
  Line(text);
}

void RunDisplay::PointEnded(const std::string& label, const std::string& outcome, const RunProgress& progress) {
  Line(fmt::format("{} {}: {}", EndedOf(progress), PrintableLine(label), Coloured(PrintableLine(outcome))));
}

void RunDisplay::Note(const std::string& text) { Line(PrintableLine(text)); }

bool RunDisplay::WantsProgress(int64_t monotonic_ns) {
  if (!options_.live || monotonic_ns < next_ns_) return false;
  next_ns_ = monotonic_ns + kRedrawNs;
  return true;
}

void RunDisplay::Progress(const RunProgress& progress) {
  Redraw([&](size_t columns) { return ProgressLine(progress, columns); });
}

void RunDisplay::Working(const std::string& line) {
  if (line.empty()) return Erase();
  if (options_.live) Redraw([&](size_t columns) { return ShortenToCodePoints(line, columns); });
}

void RunDisplay::Redraw(const std::function<std::string(size_t columns)>& of_columns) {
  // Windows are resized, so the width is asked for each time.
  if (const auto columns = ColumnsOf(out_)) options_.columns = *columns;
  // One column less than the width: a full line would make some terminals scroll.
  std::string line = of_columns(options_.columns - 1);
  if (line == shown_) return;
  fmt::print(out_, "{}{}", kEraseLine, line);
  std::fflush(out_);
  shown_ = std::move(line);
}

void RunDisplay::Erase() {
  if (shown_.empty()) return;
  fmt::print(out_, "{}", kEraseLine);
  std::fflush(out_);
  shown_.clear();
}

// Colours the first word: green if the run went well, yellow if it ran out of memory, red for all else.
std::string RunDisplay::Coloured(const std::string& outcome) const {
  if (!options_.colour) return outcome;
  const size_t end = std::min(outcome.find(' '), outcome.size());
  const std::string word = outcome.substr(0, end);
  const int colour = word == "ok" ? 32 : word.starts_with("oom_") ? 33 : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m{}", colour, word, outcome.substr(end));
}

void RunDisplay::Line(const std::string& text) {
  Erase();
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

bool CanRedraw(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

RunDisplay::Options DisplayOptions(std::FILE* out, const std::string& sweep) {
  RunDisplay::Options options;
  options.sweep = sweep;
  options.live = CanRedraw(out);
  const char* no_colour = std::getenv("NO_COLOR");
  options.colour = options.live && (no_colour == nullptr || *no_colour == '\0');
  return options;
}

}  // namespace ridgeline::driver
