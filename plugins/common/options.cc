#include "common/options.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ridgeline::plugin {
namespace {

constexpr int64_t kMostUnderLaunch = 100'000;

// Parses Slurm's MM:SS, HH:MM:SS, D-HH, D-HH:MM and D-HH:MM:SS. Returns nothing for any other text.
std::optional<double> ParseClock(const std::string& text) {
  static const std::regex kClock("(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?");
  std::smatch match;
  if (!std::regex_match(text, match, kClock)) return std::nullopt;
  const auto part = [&](size_t i) { return match[i].matched ? std::stod(match[i]) : 0.0; };
  const bool has_days = match[1].matched;
  if (!has_days && !match[3].matched) return std::nullopt;
  if (has_days || match[4].matched) return ((part(1) * 24 + part(2)) * 60 + part(3)) * 60 + part(4);
  return part(2) * 60 + part(3);
}

// Parses the units of sweeps (docs/sweeps.md), and Slurm's times.
std::optional<double> ParseTime(std::string_view text) {
  const std::optional<double> seconds = ParseAmount(text, kTimeUnits);
  return seconds ? seconds : ParseClock(std::string(text));
}

std::optional<double> ParseSize(std::string_view text) { return ParseAmount(text, kSizeUnits); }

constexpr Notation kTime = {"a time such as 90s, 30m, 2h or 1-12:00:00",
                            "write a number and s, m (or min), h or d; a number alone is seconds", ParseTime};
constexpr Notation kSize = {"a size such as 64GB or 512MiB",
                            "write a number and B, kB, MB, GB or TB, or KiB, MiB, GiB or TiB; a number alone is bytes",
                            ParseSize};

}  // namespace

std::string Option::Words() const {
  if (value_.is_string()) return value_.get<std::string>();
  return value_.is_number() ? value_.dump() : "";
}

std::string Option::Text() const {
  if (value_.is_number_integer()) return value_.dump();
  std::string text = value_.is_string() ? value_.get<std::string>() : "";
  if (text.empty() || std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    Refuse("one line of text", "write it in quotes where YAML takes it for something else");
  }
  return text;
}

bool Option::Flag() const {
  if (!value_.is_boolean()) Refuse("true or false", "without quotes");
  return value_.get<bool>();
}

const Json& Option::Mapping() const {
  if (!value_.is_object()) Refuse("a mapping");
  return value_;
}

int64_t Option::Count(int64_t least, int64_t most) const {
  const bool is_beyond_signed = value_.is_number_unsigned() && value_.get<uint64_t>() > INT64_MAX;
  if (!value_.is_number_integer() || is_beyond_signed || value_.get<int64_t>() < least ||
      value_.get<int64_t>() > most) {
    Refuse(fmt::format("a whole number from {} to {}", least, most), "write it in digits, without quotes or a unit");
  }
  return value_.get<int64_t>();
}

int64_t Option::Seconds(const char* least, const char* most) const { return std::llround(Amount(kTime, least, most)); }

int64_t Option::Bytes(const char* least, const char* most) const { return std::llround(Amount(kSize, least, most)); }

double Option::Amount(const Notation& notation, const char* least, const char* most) const {
  const std::optional<double> amount = notation.parse(Words());
  if (!amount) Refuse(notation.form, notation.hint);
  if (*amount < notation.parse(least)) Refuse(fmt::format("at least {}", least), notation.hint);
  if (*amount > notation.parse(most)) Refuse(fmt::format("at most {}", most), notation.hint);
  return *amount;
}

void Option::Refuse(const std::string& must, const std::string& hint) const {
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("launch: {} is {}, and must be {}", name_,
                            value_.dump(-1, ' ', false, Json::error_handler_t::replace), must),
                hint);
}

int64_t CountUnderLaunch(const Json& config, const char* name) {
  const auto value = config.find(name);
  return value == config.end() ? 0 : Option(name, *value).Count(0, kMostUnderLaunch);
}

void RefuseOfTheSession(const std::string& name) {
  throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: {} is the same for all points of a sweep", name),
                "say it under launch: itself, not in a rule; or make two sweeps");
}

void RefuseUnknown(const std::string& launcher, const std::string& name, const std::vector<std::string>& known,
                   const std::string& elsewhere) {
  throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: {}: there is no setting '{}'", launcher, name),
                fmt::format("settings: {}; {}", fmt::join(known, ", "), elsewhere));
}

void Refusals::ThrowIfAny() const {
  if (failures_.empty()) return;
  if (failures_.size() == 1) throw Failure(failures_.front());
  std::vector<std::string> lines;
  for (const Failure& failure : failures_) {
    lines.push_back(failure.hint().empty() ? failure.message()
                                           : fmt::format("{} ({})", failure.message(), failure.hint()));
  }
  throw Failure(Failure::Kind::kInvalidInput, fmt::format("{}", fmt::join(lines, "\n")));
}

}  // namespace ridgeline::plugin
