#include "local/parse.h"

#include <charconv>
#include <utility>

#include "ridgeline/checksum.h"
#include "ridgeline/sealed_json.h"

namespace ridgeline::local {
namespace {

using plugin::JobState;
using plugin::Phase;

// Removes and returns the text up to `separator`, or all of it if there is no separator.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

template <typename Number>
bool ToNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string FormatStarted(const Started& started) {
  return SealedLine(std::to_string(started.pid) + " " + std::to_string(started.start_ticks) + " " + started.cores);
}

std::optional<Started> ParseStarted(std::string_view line) {
  std::string_view text = Unsealed(line).value_or("");
  Started started;
  if (!ToNumber(Take(text, ' '), started.pid) || !ToNumber(Take(text, ' '), started.start_ticks)) return std::nullopt;
  if (text.find_first_not_of("0123456789,") != std::string_view::npos) return std::nullopt;
  started.cores = text;
  // With 0 or 1, a signal to the group would reach ourselves, or everybody.
  if (started.pid <= 1) return std::nullopt;
  return started;
}

std::optional<Exit> ParseExit(std::string_view line) {
  std::string_view text = Unsealed(line).value_or("");
  const std::string_view how = Take(text, ' ');
  Exit exit;
  int number = 0;
  if (!ToNumber(text, number)) return std::nullopt;
  if (how == "exit_code") {
    exit.exit_code = number;
  } else if (how == "signal") {
    exit.signal = number;
  } else {
    return std::nullopt;
  }
  return exit;
}

std::string FormatRequest(const plugin::Json& job) { return SealedText(job); }

std::optional<plugin::Json> ParseRequest(const std::string& text) {
  plugin::Json job = plugin::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return SealProblem(job).empty() ? std::optional(std::move(job)) : std::nullopt;
}

std::optional<int64_t> ParseStartTicks(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  stat.remove_prefix(name_end + 1);
  Take(stat, ' ');
  constexpr int kFieldAfterName = 3;
  constexpr int kStartTime = 22;
  for (int field = kFieldAfterName; field < kStartTime; ++field) Take(stat, ' ');
  int64_t ticks = 0;
  if (!ToNumber(Take(stat, ' '), ticks)) return std::nullopt;
  return ticks;
}

JobState StateOf(const Seen& seen) {
  if (!seen.submitted) return {};
  JobState state;
  if (seen.started) state.evidence = {{"pid", std::to_string(seen.started->pid)}, {"cpus", seen.started->cores}};
  state.phase = seen.alive ? Phase::kRunning : Phase::kQueued;
  if (seen.alive || (!seen.started && !seen.cancelled && seen.damaged.empty())) return state;
  state.phase = Phase::kEnded;
  const bool done = seen.exit && seen.exit->ok();
  if (seen.exit) {
    plugin::AddExit(seen.exit->exit_code, seen.exit->signal, state.evidence);
  } else if (!seen.damaged.empty()) {
    plugin::AddEnd("infrastructure", seen.damaged, "submitted again it is started again", state.evidence);
    state.evidence["reason"] = "lost";
  } else if (!seen.cancelled) {
    state.evidence["message"] = "the job's processes ended without a word: they were killed, or the machine went down";
  }
  if (seen.cancelled && !done) state.evidence["end"] = "cancelled";
  if (!done) plugin::AddLogTail(seen.log_tail, state.evidence);
  return state;
}

}  // namespace ridgeline::local
