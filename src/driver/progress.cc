#include "driver/progress.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "base/text.h"
#include "run/result.h"

namespace ridgeline::driver {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Cuts between code points.
std::string Fit(std::string_view text, size_t columns) {
  std::string out;
  size_t width = 0;
  std::string_view rest = text;
  while (!rest.empty() && width < columns) {
    const std::string_view before = rest;
    NextCodePoint(rest);
    out += before.substr(0, before.size() - rest.size());
    ++width;
  }
  return out;
}

size_t Width(std::string_view text) {
  size_t width = 0;
  for (; !text.empty(); ++width) NextCodePoint(text);
  return width;
}

// More digits would promise too much of an estimate.
int64_t WholeSeconds(int64_t ns) { return (ns + kSecondNs - 1) / kSecondNs * kSecondNs; }

}  // namespace

std::optional<PointProgress> ParseProgress(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  text = Trim(text.substr(0, text.size() - 1));
  const auto take = [&](auto& number) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc() && (text.empty() || text.front() == ' ');
  };
  PointProgress progress;
  if (!take(progress.step) || !take(progress.steps) || !take(progress.tokens_per_s)) return std::nullopt;
  if (double loss = 0; !text.empty()) {
    if (!take(loss) || !text.empty()) return std::nullopt;
    if (std::isfinite(loss)) progress.loss = loss;
  }
  const bool sane = progress.step >= 0 && progress.steps > 0 && progress.step <= progress.steps &&
                    progress.tokens_per_s >= 0 && std::isfinite(progress.tokens_per_s);
  return sane ? std::optional(progress) : std::nullopt;
}

std::string ProgressLine(const RunProgress& p, size_t columns) {
  std::string left = p.left_ns > 0 ? "  left " + FormatDuration(WholeSeconds(p.left_ns)) : "";
  if (columns <= left.size()) left.clear();
  const size_t room = columns - left.size();
  std::string line = Fit(EndedOf(p), room);
  // Shows a figure whole or not at all, because a part of it reads as another figure.
  const auto add = [&](const std::string& text) {
    if (Width(line) + Width(text) <= room) line += text;
  };
  if (p.failed > 0) add(fmt::format(" {} failed", p.failed));
  for (const LivePoint& point : p.live) {
    line += Fit("  " + PrintableLine(point.label), room - Width(line));
    if (!point.progress) continue;
    add(fmt::format("  step {}/{}", point.progress->step, point.progress->steps));
    if (point.progress->tokens_per_s > 0) add("  " + FormatCount(point.progress->tokens_per_s) + " tokens/s");
  }
  if (p.queued_jobs > 0) add(fmt::format("  {} queued", p.queued_jobs));
  if (!p.queued_for.empty()) line += Fit(fmt::format(" ({})", p.queued_for), room - Width(line));
  return line + left;
}

std::string EndedOf(const RunProgress& p) {
  return p.runs > p.total ? fmt::format("[{}/{} runs]", p.runs - p.runs_left, p.runs)
                          : fmt::format("[{}/{}]", p.done + p.failed, p.total);
}

std::string QueueText(std::string_view pending, int64_t expected_unix_s) {
  std::string text = PrintableLine(pending);
  if (expected_unix_s <= 0) return text;
  const time_t time = expected_unix_s;
  tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 32> when{};
  ::strftime(when.data(), when.size(), "%b %e %H:%M", &parts);
  return fmt::format("{}{}from {}", text, text.empty() ? "" : ", ", when.data());
}

std::string OutcomeText(const collect::Collected& result, int64_t repeats) {
  const bool ok = result.end.status == RunStatus::kOk;
  std::string text = EndName(result.end);
  if (ok && result.steady_tokens_per_s > 0) text += "  " + FormatCount(result.steady_tokens_per_s) + " tokens/s";
  if (!ok && !result.message.empty()) text += "  " + PrintableLine(result.message);
  if (result.repeat > 0 && repeats > 1) text += fmt::format("; repeat {} of {}", result.repeat, repeats);
  // A run that failed has no figure that others could have disturbed.
  if (ok && !result.disturbance.empty()) text += "; disturbed: " + PrintableLine(result.disturbance);
  return text;
}

}  // namespace ridgeline::driver
