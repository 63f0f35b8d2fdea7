// What a command prints or writes: its form and its place, said by the same two options in every command that has them;
// and how words get to a terminal, which nothing that comes from outside may command.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/text.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ridgeline {

// `-o FORMAT`: the form of what is printed or written, one of `forms`.
CLI::Option* AddFormatOption(CLI::App& command, std::string& format, std::initializer_list<const char*> forms);

// `--to PATH`: where a command writes; `kind` is FILE or DIR (commands.h).
CLI::Option* AddToOption(CLI::App& command, std::string& to, const char* kind, const std::string& help);

// The form that `format` (of -o) names, else that which the ending of `to` (of --to) is, else the first of `forms`.
// Throws Error(kUsage) where `to` ends in none of them.
std::string FormOf(const std::string& format, const std::string& to, std::initializer_list<const char*> forms);

// Bytes as they are, to the standard output: what a form has made safe, such as a table (base/table.h) or a page.
// Throws Error(kInfrastructure) where they cannot be written.
void Write(std::string_view bytes);

// The same to the standard error, where nothing is done about what cannot be written.
void WriteAside(std::string_view bytes);

// A format with its arguments. The format is ours; what of its arguments is text may come from anywhere, and is shown
// as PrintableLine does.
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

// Words for people: an answer to the standard output, a remark beside it to the standard error.
template <typename... Arguments>
void Say(fmt::format_string<const Arguments&...> format, const Arguments&... arguments) {
  Write(Worded(format, arguments...));
}
template <typename... Arguments>
void SayAside(fmt::format_string<const Arguments&...> format, const Arguments&... arguments) {
  WriteAside(Worded(format, arguments...));
}

}  // namespace ridgeline
