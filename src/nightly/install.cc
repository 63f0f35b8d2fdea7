#include "nightly/install.h"

#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/quoting.h"
#include "base/text.h"

namespace ridgeline::nightly {
namespace {

// A crontab line ends at a % or a line break, even within quotes.
std::string CrontabCommand(const NightlySchedule& schedule) {
  for (const std::string& word : schedule.command) {
    if (word.find_first_of("%\r\n") != std::string::npos) {
      throw Error(ErrorKind::kUsage, fmt::format("nightly: a crontab has no way to write '{}'", PrintableLine(word)),
                  "use paths without % and ends of lines, or --systemd");
    }
  }
  return ShellWords(schedule.command);
}

// Quotes as systemd.service requires: double quotes, with % and $ doubled.
std::string SystemdWord(const std::string& word) {
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '\n' || c == '\r') {
      quoted += c == '\n' ? "\\n" : "\\r";
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '%' || c == '$') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

// Text for a line of a unit file. A sweep's name has no characters with a meaning there.
std::string Described(const NightlySchedule& schedule) { return "Ridgeline's night of " + schedule.name; }

}  // namespace

void SetTimeOfDay(const std::string& text, NightlySchedule& schedule) {
  const char* end = text.data() + text.size();
  const auto hour = std::from_chars(text.data(), end, schedule.hour);
  const bool has_minute = hour.ec == std::errc() && hour.ptr != end && *hour.ptr == ':' && end - hour.ptr == 3;
  if (has_minute && schedule.hour >= 0 && schedule.hour < 24) {
    const auto minute = std::from_chars(hour.ptr + 1, end, schedule.minute);
    if (minute.ec == std::errc() && minute.ptr == end && schedule.minute >= 0 && schedule.minute < 60) return;
  }
  throw Error(ErrorKind::kUsage, fmt::format("nightly: '{}' is not a time of day", PrintableLine(text)),
              "say it as 1:00 or 23:30");
}

std::string CronText(const NightlySchedule& schedule) {
  return fmt::format("# {}. Install it with `crontab -e`; cron mails its output.\n{} {} * * * {}\n",
                     Described(schedule), schedule.minute, schedule.hour, CrontabCommand(schedule));
}

std::string ScrontabText(const NightlySchedule& schedule) {
  return fmt::format(
      "# {}. Install it with `scrontab -e`. It waits nearly all the time: the sweep's own jobs do the work.\n"
      "#SCRON --job-name=rl-nightly --cpus-per-task=1 --mem=1G --time=22:00:00\n{} {} * * * {}\n",
      Described(schedule), schedule.minute, schedule.hour, CrontabCommand(schedule));
}

SystemdUnits SystemdText(const NightlySchedule& schedule) {
  std::string command;
  for (const std::string& word : schedule.command) command += (command.empty() ? "" : " ") + SystemdWord(word);
  return {
      fmt::format("# ridgeline-nightly.service: {0}. With the timer, into ~/.config/systemd/user; then\n"
                  "# `systemctl --user daemon-reload && systemctl --user enable --now ridgeline-nightly.timer`, and\n"
                  "# `loginctl enable-linger` for nights in which nobody is logged in.\n"
                  "[Unit]\nDescription={0}\n\n[Service]\nType=oneshot\nExecStart={1}\n"
                  "# Told to stop, it ends its jobs first.\nTimeoutStopSec=120\n",
                  Described(schedule), command),
      fmt::format("# ridgeline-nightly.timer\n[Unit]\nDescription={}\n\n[Timer]\nOnCalendar=*-*-* {:02}:{:02}:00 UTC\n"
                  "# A night that the machine slept through is made up for.\nPersistent=true\n\n"
                  "[Install]\nWantedBy=timers.target\n",
                  Described(schedule), schedule.hour, schedule.minute)};
}

std::string KubernetesText(const NightlySchedule& schedule, const std::string& shipped) {
  constexpr std::string_view kSweep = "  sweep.yaml: |\n";
  constexpr std::string_view kTime = "  schedule: \"0 1 * * *\"\n";
  const size_t sweep = shipped.find(kSweep);
  const size_t end = sweep == std::string::npos ? sweep : shipped.find("\n---\n", sweep);
  const size_t time = shipped.find(kTime);
  if (end == std::string::npos || time == std::string::npos || time < end) {
    throw Error(ErrorKind::kInvalidInput, "nightly: the CronJob that ships has another form than this program knows");
  }
  // A YAML block cannot hold controls: the manifest's sweep would differ from ours.
  for (const char c : schedule.sweep_text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r') {
      throw Error(ErrorKind::kInvalidInput, "nightly: the sweep has controls in it, which no manifest can hold");
    }
  }
  std::string block;
  std::istringstream lines(schedule.sweep_text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    block += line.empty() ? "\n" : "    " + line + "\n";
  }
  std::string text = shipped.substr(0, sweep);
  // States the indentation, because the sweep's first line may itself be indented.
  text += "  sweep.yaml: |2\n" + block + "---\n";
  text += shipped.substr(end + 5, time - end - 5);
  text += fmt::format("  schedule: \"{} {} * * *\"\n", schedule.minute, schedule.hour);
  return text + shipped.substr(time + kTime.size());
}

}  // namespace ridgeline::nightly
