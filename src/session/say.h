// Prints to a terminal so that nothing from outside can control it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::session {

// Writes bytes unchanged to the standard output. Their form must have made them safe, as a table (base/table.h) or a
// page does. Throws Error(kInfrastructure) if they cannot be written.
void Write(std::string_view bytes);

// The same to the standard error, where failures to write are ignored.
void WriteAside(std::string_view bytes);

// Formats the arguments. The format is ours. Text among the arguments may come from outside, and is shown as by
// PrintableLine.
template <typename... Arguments>
std::string Worded(fmt::format_string<const Arguments&...> format, const Arguments&... arguments) {
  [[maybe_unused]] const auto shown = [](const auto& argument) {
    if constexpr (std::is_convertible_v<decltype(argument), std::string_view>) {
      return PrintableLine(argument);
    } else {
      return argument;
    }
  };
  const auto put = [&](const auto&... texts) { return fmt::vformat(format, fmt::make_format_args(texts...)); };
  return put(shown(arguments)...);
}

// Text for people: Say prints an answer to the standard output, SayAside a remark to the standard error.
template <typename... Arguments>
void Say(fmt::format_string<const Arguments&...> format, const Arguments&... arguments) {
  Write(Worded(format, arguments...));
}
template <typename... Arguments>
void SayAside(fmt::format_string<const Arguments&...> format, const Arguments&... arguments) {
  WriteAside(Worded(format, arguments...));
}

}  // namespace ridgeline::session
