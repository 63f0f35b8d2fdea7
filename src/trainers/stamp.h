// Time stamps as logs print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ridgeline {

struct Stamp {
  int64_t ns = 0;             // since some moment: 1970 where it has a date, else midnight, or a year's begin
  int64_t wraps_ns = 0;       // after so long it begins again, having no date, or no year; 0: it does not
  int64_t resolution_ns = 0;  // of its last digit
};

// What is wrong with a stamp's format; nullptr where nothing is.
//
//   %Y %y %m %b %d   year (two digits: of this century), month, its English name, day
//   %H %I %p %M %S   hour, of twelve with AM or PM, minute, second
//   %f               a second's fraction: one to nine digits
//   %s               seconds since 1970
//   %z               distance from UTC: Z, +01:00, -0800
//   %T %F            %H:%M:%S, %Y-%m-%d
//   %%               a percent sign
// A space stands for any, or none. What else it has, a stamp has.
const char* StampFormatProblem(std::string_view format);

// Nothing where the text is no such stamp. A time without zone is taken as it is, whatever the clocks do there.
std::optional<Stamp> ReadStamp(std::string_view text, std::string_view format);

}  // namespace ridgeline
