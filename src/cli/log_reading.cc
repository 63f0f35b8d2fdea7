#include "cli/log_reading.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "base/text.h"
#include "run/result.h"
#include "session/say.h"

namespace ridgeline {
namespace {

std::string Shown(const FoundMetric& found, double value) {
  const std::string_view unit = found.unit;
  if (std::isnan(value)) return "nan";
  if (unit == "ns") return FormatDuration(static_cast<int64_t>(value));
  if (unit == "bytes") return FormatBytes(static_cast<int64_t>(value));
  if (unit == "share") return fmt::format("{:.4g} %", 100 * value);
  const bool counts = found.metric->figure->dimension == Dimension::kCount || unit.starts_with("tokens/s");
  return fmt::format("{}{}{}", counts ? FormatCount(value) : fmt::format("{:.6g}", value), unit.empty() ? "" : " ",
                     unit);
}

// "3.86 s"; of a series "6 values, 51.4 s … 3.86 s".
std::string ValueText(const FoundMetric& found) {
  if (!found.text.empty()) return found.text;
  const std::vector<double>& values = found.values;
  if (found.values.size() == 1 && !IsSeries(found.metric->take)) return Shown(found, values.front());
  if (values.size() == 1) return fmt::format("1 value, {}", Shown(found, values.front()));
  return fmt::format("{} values, {} … {}", values.size(), Shown(found, values.front()), Shown(found, values.back()));
}

// Prints below the table what a series lacks, and which values were not numbers.
void SayLacking(const FoundMetric& found) {
  if (found.unread > 0) Say("{}\n", UnreadText(found));
  if (found.left_out > 0) Say("{}: the last {} values are not kept\n", found.metric->figure->name, found.left_out);
}

}  // namespace

void SayReading(const Reading& reading) {
  Table table{{"metric", "take", "value", "lines", "first_line", "last_line"}, {}};
  for (const FoundMetric& found : reading.found) {
    const auto line = [&](int64_t number) { return found.first_line == 0 ? Cell() : Cell(number); };
    table.rows.push_back({std::string(found.metric->figure->name), std::string(TakeName(found.metric->take)),
                          ValueText(found), line(found.matches), line(found.first_line), line(found.last_line)});
  }
  if (!table.rows.empty()) Write(Format(table, "text"));
  for (const FoundMetric& found : reading.found) SayLacking(found);
  if (!reading.missing.empty()) Say("not found: {}\n", Join(reading.missing, ", "));
  for (const std::string& note : reading.notes) Say("note: {}\n", note);
  for (const std::string& contradiction : reading.contradictions) Say("contradiction: {}\n", contradiction);
  if (!reading.end) {
    Say("end: nothing says how it ended\n");
    return;
  }
  Say("end: {}", EndName(reading.end->end));
  if (reading.end->line > 0) Say(", line {}", reading.end->line);
  if (!reading.end->message.empty()) Say(": {}", reading.end->message);
  Say("\n");
  if (!reading.end->hint.empty()) Say("  {}\n", reading.end->hint);
}

// Reads the log of this path, or the standard input, in parts.
void FeedLog(const std::string& path, const std::function<void(std::string_view)>& feed) {
  const Fd file(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) ThrowErrno("cannot open " + path);
  std::array<char, size_t{64} << 10> part;
  while (true) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno("cannot read " + path);
    if (got == 0) return;
    feed({part.data(), static_cast<size_t>(got)});
  }
}

}  // namespace ridgeline
