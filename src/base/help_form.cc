#include "base/help_form.h"

#include <string>

#include <CLI/CLI.hpp>

namespace ridgeline {
namespace {

constexpr size_t kNameColumns = 26;  // names of options and commands; longer ones have a line of their own

// "  name    text", wrapped.
std::string HelpRow(const std::string& name, const std::string& text) {
  std::string row = "  " + name;
  if (text.empty()) return row + "\n";
  if (row.size() + 2 > kNameColumns) {
    row += "\n" + std::string(kNameColumns, ' ');
  } else {
    row.append(kNameColumns - row.size(), ' ');
  }
  return row + WrapHelp(text, kNameColumns, kNameColumns) + "\n";
}

class NarrowFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return HelpRow(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return HelpRow(command->get_name(), command->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    return WrapHelp(Formatter::make_description(app));
  }

  std::string make_footer(const CLI::App* app) const override { return WrapHelp(Formatter::make_footer(app)); }
};

}  // namespace

std::string WrapHelp(std::string_view text, size_t indent, size_t used) {
  std::string wrapped;
  size_t column = used;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    const bool is_example = line.starts_with(' ');
    while (!line.empty()) {
      // Up to the next space, the spaces before it included.
      const size_t word = line.find_first_not_of(' ');
      const size_t end = word == std::string_view::npos ? line.size() : std::min(line.find(' ', word), line.size());
      if (!is_example && column > indent && column + end > kHelpColumns) {
        wrapped += "\n" + std::string(indent, ' ');
        column = indent;
        line.remove_prefix(std::min(word, line.size()));
        continue;
      }
      wrapped += line.substr(0, end);
      column += end;
      line.remove_prefix(end);
    }
    if (!text.empty()) {
      text.remove_prefix(1);
      wrapped += '\n';
      column = 0;
      if (indent > 0 && !text.empty()) wrapped += std::string(indent, ' ');
    }
  }
  return wrapped;
}

std::shared_ptr<CLI::FormatterBase> HelpForm() { return std::make_shared<NarrowFormatter>(); }

}  // namespace ridgeline
