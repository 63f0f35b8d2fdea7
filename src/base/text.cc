#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ridgeline {
namespace {

constexpr std::string_view kEllipsis = "…";

// Three significant digits, then the unit.
std::string WithUnit(double value, std::string_view unit) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, decimals, unit);
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {" B", " kB", " MB", " GB", " TB", " PB"};
  if (std::abs(bytes) < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return WithUnit(value, kUnits[unit]);
}

std::string FormatDuration(int64_t ns) {
  const double s = static_cast<double>(ns) * 1e-9;
  if (s < 0.9995e-3) return WithUnit(s * 1e6, " us");
  if (s < 0.9995) return WithUnit(s * 1e3, " ms");
  if (s < 59.95) return ns % 1'000'000'000 == 0 ? fmt::format("{} s", ns / 1'000'000'000) : WithUnit(s, " s");
  const auto whole = static_cast<int64_t>(std::llround(s));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string FormatCount(double value) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", "K", "M", "B", "T"};
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return WithUnit(value, kUnits[unit]);
}

std::string CountOf(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string FormatUnixTime(int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  // A name that differs only in case comes first: H100.
  const auto is_same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (const std::string& candidate : candidates) {
    if (std::ranges::equal(name, candidate, is_same)) return candidate;
  }
  std::string best;
  size_t best_distance = name.size() / 3 + 2;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(name, candidates);
  return nearest.empty() ? "" : ", did you mean '" + nearest + "'?";
}

char32_t NextCodePoint(std::string_view& rest) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
  bool good = lead < 0x80 || (lead >= 0xC2 && lead <= 0xF4 && rest.size() >= length);
  for (size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xC0U) == 0x80;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  // Refuses overlong forms, surrogates and code points beyond Unicode's end.
  if ((length == 3 && code < 0x800) || (length == 4 && (code < 0x10000 || code > 0x10FFFF))) good = false;
  if (code >= 0xD800 && code <= 0xDFFF) good = false;
  rest.remove_prefix(good ? length : 1);
  return good ? code : kBadCodePoint;
}

bool IsControl(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF ||
         code >= kBadCodePoint;
}

std::string Escape(char32_t control, std::string_view bytes) {
  switch (control) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    case kBadCodePoint:
      return fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes.front()));
    default:
      return control < 0x80 ? fmt::format("\\x{:02x}", static_cast<uint32_t>(control))
                            : fmt::format("\\u{:04x}", static_cast<uint32_t>(control));
  }
}

std::string EscapeControls(std::string_view text, std::string_view kept) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  std::string shown(text.begin(), std::find_if_not(text.begin(), text.end(), is_plain));
  text.remove_prefix(shown.size());
  const auto stays = [&](char32_t code) { return code < 0x80 && kept.find(static_cast<char>(code)) != kept.npos; };
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t code = NextCodePoint(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    const bool ends_line = code == '\r' && text.starts_with('\n') && stays('\n');
    if (IsControl(code) && !stays(code) && !ends_line) {
      shown += Escape(code, bytes);
    } else {
      shown += bytes;
    }
  }
  return shown;
}

std::string PrintableLine(std::string_view text) { return EscapeControls(text, ""); }

std::string PrintableText(std::string_view text) { return EscapeControls(text, "\n"); }

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    if (NextCodePoint(text) == kBadCodePoint) {
      valid += "\xEF\xBF\xBD";
    } else {
      valid += before.substr(0, before.size() - text.size());
    }
  }
  return valid;
}

std::string ShortenToBytes(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes < kEllipsis.size() ? 0 : max_bytes - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kEllipsis);
}

std::string ShortenToCodePoints(std::string_view text, size_t max_code_points) {
  std::string_view rest = text;
  size_t cut = 0;  // where the text is cut, to leave room for the ellipsis
  for (size_t count = 0; !rest.empty(); ++count) {
    if (count + 1 == max_code_points) cut = text.size() - rest.size();
    if (count == max_code_points) return std::string(text.substr(0, cut)).append(kEllipsis);
    NextCodePoint(rest);
  }
  return std::string(text);
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace ridgeline
