// Time stamps in logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ridgeline::trainers {

struct Stamp {
  int64_t ns = 0;             // since 1970 if it has a full date, else since midnight or the beginning of the year
  int64_t wraps_ns = 0;       // it starts over after so long, for want of a date or year; 0: never
  int64_t resolution_ns = 0;  // value of its last digit
};

// What is wrong with a stamp's format; nullptr if nothing is.
//
//   %Y %y %m %b %d   year, year of this century, month, its English name, day
//   %H %I %p %M %S   hour, hour of twelve, AM or PM, minute, second
//   %f               fraction of a second: one to nine digits
//   %s               seconds since 1970
//   %z               offset from UTC: Z, +01:00, -0800
//   %T %F            %H:%M:%S, %Y-%m-%d
//   %%               a percent sign
// A space matches any number of spaces, or none. Other characters match themselves.
const char* StampFormatProblem(std::string_view format);

// Parses a stamp. Nothing if the text does not match. A time without a zone counts as UTC; changes of local clocks are
// not considered.
std::optional<Stamp> ReadStamp(std::string_view text, std::string_view format);

}  // namespace ridgeline::trainers
