#include "cli/output.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {

CLI::Option* AddFormatOption(CLI::App& command, std::string& format, std::initializer_list<const char*> forms) {
  CLI::Option* option = command.add_option("-o,--format", format, "the form of the output")
                            ->check(CLI::IsMember(std::vector<std::string>(forms.begin(), forms.end())));
  return format.empty() ? option : option->capture_default_str();
}

CLI::Option* AddToOption(CLI::App& command, std::string& to, const char* kind, const std::string& help) {
  CLI::Option* option = command.add_option("--to", to, help)->type_name(kind);
  return to.empty() ? option : option->capture_default_str();
}

void GroupOptions(CLI::App& command, const char* heading, std::initializer_list<const char*> options) {
  for (const char* name : options) command.get_option(name)->group(heading);
}

std::string FormOf(const std::string& format, const std::string& to, std::initializer_list<const char*> forms) {
  if (!format.empty()) return format;
  if (to.empty()) return *forms.begin();
  std::string ending = std::filesystem::path(to).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* form : forms) {
    if (ending == fmt::format(".{}", form)) return form;
  }
  throw Error(ErrorKind::kUsage, fmt::format("the ending of '{}' does not say in which form it is to be written", to),
              fmt::format("say it with -o: {}; or end the name so",
                          Join(std::vector<std::string>(forms.begin(), forms.end()), ", ")));
}

std::string CountOf(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

void Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    ThrowErrno("cannot write to the standard output");
  }
}

void WriteAside(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

}  // namespace ridgeline
