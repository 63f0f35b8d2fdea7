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

namespace ridgeline::cli {
namespace {

std::string Shown(const trainers::FoundMetric& found, double value) {
  const std::string_view unit = found.unit;
  if (std::isnan(value)) return "nan";
  if (unit == "ns") return FormatDuration(static_cast<int64_t>(value));
  if (unit == "bytes") return FormatBytes(static_cast<int64_t>(value));
  if (unit == "share") return fmt::format("{:.4g} %", 100 * value);
  const bool counts = found.metric->figure->dimension == trainers::Dimension::kCount || unit.starts_with("tokens/s");
  return fmt::format("{}{}{}", counts ? FormatCount(value) : fmt::format("{:.6g}", value), unit.empty() ? "" : " ",
                     unit);
}

// "3.86 s"; of a series "6 values, 51.4 s … 3.86 s".
std::string ValueText(const trainers::FoundMetric& found) {
  if (!found.text.empty()) return found.text;
  const std::vector<double>& values = found.values;
  if (found.values.size() == 1 && !trainers::IsSeries(found.metric->take)) return Shown(found, values.front());
  if (values.size() == 1) return fmt::format("1 value, {}", Shown(found, values.front()));
  return fmt::format("{} values, {} … {}", values.size(), Shown(found, values.front()), Shown(found, values.back()));
}

// Prints below the table what a series lacks, and which values were not numbers.
void SayLacking(const trainers::FoundMetric& found) {
  if (found.unread > 0) session::Say("{}\n", trainers::UnreadText(found));
  if (found.left_out > 0)
    session::Say("{}: the last {} values are not kept\n", found.metric->figure->name, found.left_out);
}

}  // namespace

void SayReading(const trainers::Reading& reading) {
  Table table{{"metric", "take", "value", "lines", "first_line", "last_line"}, {}};
  for (const trainers::FoundMetric& found : reading.found) {
    const auto line = [&](int64_t number) { return found.first_line == 0 ? Cell() : Cell(number); };
    table.rows.push_back({std::string(found.metric->figure->name), std::string(trainers::TakeName(found.metric->take)),
                          ValueText(found), line(found.matches), line(found.first_line), line(found.last_line)});
  }
  if (!table.rows.empty()) session::Write(Format(table, "text"));
  for (const trainers::FoundMetric& found : reading.found) SayLacking(found);
  if (!reading.missing.empty()) session::Say("not found: {}\n", Join(reading.missing, ", "));
  for (const std::string& note : reading.notes) session::Say("note: {}\n", note);
  for (const std::string& contradiction : reading.contradictions) session::Say("contradiction: {}\n", contradiction);
  if (!reading.end) {
    session::Say("end: nothing says how it ended\n");
    return;
  }
  session::Say("end: {}", EndName(reading.end->end));
  if (reading.end->line > 0) session::Say(", line {}", reading.end->line);
  if (!reading.end->message.empty()) session::Say(": {}", reading.end->message);
  session::Say("\n");
  if (!reading.end->hint.empty()) session::Say("  {}\n", reading.end->hint);
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

}  // namespace ridgeline::cli
