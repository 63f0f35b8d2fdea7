// Dates in data files: when a price was asked, a figure read, or a trainer tested.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::yaml {

// Whether `text` is a Gregorian date from 2000 to 2099: "2026", "2026-08" or "2026-08-26".
bool IsDate(std::string_view text);

// Why a text is not a date, in words.
std::string NoDate(std::string_view text);

}  // namespace ridgeline::yaml
