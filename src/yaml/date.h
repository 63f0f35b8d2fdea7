// Dates as data files write them: when a price was asked, when a figure was read, when a trainer was tested.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

// "2026", "2026-08" or "2026-08-26": of the Gregorian calendar, from 2000 to 2099.
bool IsDate(std::string_view text);

// Why a text is none, in words.
std::string NoDate(std::string_view text);

}  // namespace ridgeline
