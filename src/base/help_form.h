// The form of the programs' help: at most 80 columns, so that a terminal of that width shows it whole.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class FormatterBase;
}

namespace ridgeline {

inline constexpr size_t kHelpColumns = 80;

// Breaks lines of `text` between words, so that none is longer than kHelpColumns. Lines that begin with a space are
// examples and stay as they are. Each new line begins with `indent` spaces; the first one follows `used` columns.
std::string WrapHelp(std::string_view text, size_t indent = 0, size_t used = 0);

// A formatter for CLI::App::formatter.
std::shared_ptr<CLI::FormatterBase> HelpForm();

}  // namespace ridgeline
