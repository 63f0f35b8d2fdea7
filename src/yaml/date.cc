#include "yaml/date.h"

#include <charconv>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::yaml {
namespace {

// Returns -1 if the part has anything but digits.
int DigitsOf(std::string_view part) {
  int value = -1;
  if (part.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

}  // namespace

bool IsDate(std::string_view text) {
  constexpr size_t kYear = 4;
  constexpr size_t kMonth = 7;
  constexpr size_t kDay = 10;
  if (text.size() != kYear && text.size() != kMonth && text.size() != kDay) return false;
  const int year = DigitsOf(text.substr(0, 4));
  const int month = text.size() >= kMonth ? DigitsOf(text.substr(5, 2)) : 1;
  const int day = text.size() == kDay ? DigitsOf(text.substr(8, 2)) : 1;
  if (year < 2000 || year > 2099 || month < 1 || day < 1) return false;
  if (text.size() >= kMonth && text[4] != '-') return false;
  if (text.size() == kDay && text[7] != '-') return false;
  return std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day)))
      .ok();
}

std::string NoDate(std::string_view text) {
  return fmt::format("'{}' is not a date from 2000 to 2099: write 2026, 2026-08 or 2026-08-26",
                     PrintableLine(ShortenToBytes(text, 40)));
}

}  // namespace ridgeline::yaml
