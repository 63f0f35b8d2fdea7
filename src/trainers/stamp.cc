#include "trainers/stamp.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "trainers/amount.h"

namespace ridgeline::trainers {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDayNs = 86'400 * kSecondNs;
constexpr int64_t kMostSeconds = 9'000'000'000;  // for %s: their nanoseconds fit into an int64_t
constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
constexpr std::string_view kKnown = "YymbdHIpMSfszTF%";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the format with %T and %F spelled out.
std::string Spelled(std::string_view format) {
  std::string whole;
  for (size_t at = 0; at < format.size(); ++at) {
    const std::string_view pair = format.substr(at, 2);
    if (pair == "%T" || pair == "%F") {
      whole += pair == "%T" ? "%H:%M:%S" : "%Y-%m-%d";
      ++at;
    } else if (pair == "%%") {
      whole += pair;
      ++at;
    } else {
      whole += format[at];
    }
  }
  return whole;
}

class StampReader {
 public:
  explicit StampReader(std::string_view text) : text_(text) {}

  bool Read(std::string_view format) {
    for (size_t at = 0; at < format.size(); ++at) {
      if (format[at] == ' ') {
        SkipSpaces();
      } else if (format[at] != '%') {
        if (!Take(format[at])) return false;
      } else if (!Field(format[++at])) {
        return false;
      }
    }
    return text_.empty();
  }

  std::optional<Stamp> Stamped() const {
    Stamp stamp;
    stamp.resolution_ns = resolution_ns_;
    if (seconds_) {
      stamp.ns = *seconds_ * kSecondNs + fraction_ns_;
      return stamp;
    }
    int64_t hour = hour_;
    if (afternoon_) hour = hour_ % 12 + (*afternoon_ ? 12 : 0);
    if (hour > 23 || minute_ > 59 || second_ > 60) return std::nullopt;
    stamp.ns = (hour * 3600 + minute_ * 60 + second_) * kSecondNs + fraction_ns_ - zone_s_ * kSecondNs;
    if (month_ == 0 && day_ == 0 && !year_) {
      stamp.wraps_ns = kDayNs;
      return stamp;
    }
    // A missing year is taken for a leap year, which has every day.
    const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year_.value_or(2000))),
                                           std::chrono::month(static_cast<unsigned>(month_)),
                                           std::chrono::day(static_cast<unsigned>(day_)));
    if (!date.ok()) return std::nullopt;
    stamp.ns += std::chrono::sys_days(date).time_since_epoch().count() * kDayNs;
    if (!year_) stamp.wraps_ns = 366 * kDayNs;
    return stamp;
  }

 private:
  void SkipSpaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t')) text_.remove_prefix(1);
  }

  bool Take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  // Reads a number of at least one digit and at most `most`.
  bool Number(size_t most, int64_t& to, size_t* digits = nullptr) {
    size_t count = 0;
    int64_t value = 0;
    while (count < most && count < text_.size() && IsDigit(text_[count])) value = 10 * value + (text_[count++] - '0');
    if (count == 0) return false;
    text_.remove_prefix(count);
    to = value;
    if (digits != nullptr) *digits = count;
    return true;
  }

  bool Month() {
    if (text_.size() < 3) return false;
    const std::string name = {Lower(text_[0]), Lower(text_[1]), Lower(text_[2])};
    const size_t at = kMonths.find(name);
    if (at == std::string_view::npos || at % 3 != 0) return false;
    month_ = static_cast<int64_t>(at / 3 + 1);
    text_.remove_prefix(3);
    return true;
  }

  bool Half() {
    if (text_.size() < 2 || Lower(text_[1]) != 'm' || (Lower(text_[0]) != 'a' && Lower(text_[0]) != 'p')) return false;
    afternoon_ = Lower(text_[0]) == 'p';
    text_.remove_prefix(2);
    return true;
  }

  bool Fraction() {
    size_t digits = 0;
    if (!Number(9, fraction_ns_, &digits)) return false;
    resolution_ns_ = 1;
    for (; digits < 9; ++digits) {
      fraction_ns_ *= 10;
      resolution_ns_ *= 10;
    }
    return true;
  }

  bool Zone() {
    if (Take('Z')) return true;
    const bool west = !text_.empty() && text_[0] == '-';
    if (!west && !Take('+')) return false;
    if (west) text_.remove_prefix(1);
    int64_t hours = 0;
    int64_t minutes = 0;
    if (!Number(2, hours)) return false;
    Take(':');
    if (!text_.empty() && IsDigit(text_[0]) && !Number(2, minutes)) return false;
    zone_s_ = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
  }

  bool Field(char kind) {
    if (kind != '%' && kind != 'f') SkipSpaces();  // days and hours are padded with spaces
    int64_t number = 0;
    switch (kind) {
      case '%':
        return Take('%');
      case 'b':
        return Month();
      case 'p':
        return Half();
      case 'f':
        return Fraction();
      case 'z':
        return Zone();
      case 's':
        if (!Number(10, number) || number > kMostSeconds) return false;
        seconds_ = number;
        return true;
      case 'Y':
      case 'y':
        if (!Number(kind == 'Y' ? 4 : 2, number)) return false;
        year_ = number + (kind == 'Y' ? 0 : 2000);
        return *year_ >= 1970 && *year_ < 2200;
      case 'm':
        return Number(2, month_);
      case 'd':
        return Number(2, day_);
      case 'H':
      case 'I':
        return Number(2, hour_);
      case 'M':
        return Number(2, minute_);
      default:
        return Number(2, second_);
    }
  }

  std::string_view text_;
  std::optional<int64_t> seconds_;
  std::optional<int64_t> year_;
  int64_t month_ = 0;
  int64_t day_ = 0;
  int64_t hour_ = 0;
  int64_t minute_ = 0;
  int64_t second_ = 0;
  int64_t fraction_ns_ = 0;
  int64_t resolution_ns_ = kSecondNs;
  int64_t zone_s_ = 0;
  std::optional<bool> afternoon_;
};

bool HasField(std::string_view format, std::string_view field) {
  for (size_t at = 0; at + 1 < format.size(); ++at) {
    if (format[at] != '%') continue;
    if (format.substr(at, 2) == field) return true;
    ++at;
  }
  return false;
}

}  // namespace

const char* StampFormatProblem(std::string_view format) {
  const std::string whole = Spelled(format);
  for (size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] != '%') continue;
    if (++at == whole.size() || kKnown.find(whole[at]) == std::string_view::npos) {
      return "a format has %Y, %y, %m, %b, %d, %H, %I, %p, %M, %S, %f, %s, %z, %T, %F and %%";
    }
  }
  const bool hour = HasField(whole, "%H") || (HasField(whole, "%I") && HasField(whole, "%p"));
  const bool clock = hour && HasField(whole, "%M") && HasField(whole, "%S");
  if (!clock && !HasField(whole, "%s")) return "a format says seconds: %H, %M and %S, or %s";
  const bool day = HasField(whole, "%d");
  const bool month = HasField(whole, "%m") || HasField(whole, "%b");
  if (day != month || ((HasField(whole, "%Y") || HasField(whole, "%y")) && !day))
    return "a format's date has month and day";
  return nullptr;
}

std::optional<Stamp> ReadStamp(std::string_view text, std::string_view format) {
  StampReader reader(text);
  return reader.Read(Spelled(format)) ? reader.Stamped() : std::nullopt;
}

}  // namespace ridgeline::trainers
