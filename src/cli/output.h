// What a command prints or writes: its form and its place, said by the same two options in every command that has them.
#pragma once

#include <initializer_list>
#include <string>

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

}  // namespace ridgeline
