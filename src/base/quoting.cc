#include "base/quoting.h"

#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline {

std::string ShellWord(const std::string& word) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  const bool escapes = EscapeControls(word, "") != word;
  std::string quoted;
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view before = rest;
    const char32_t code_point = NextCodePoint(rest);
    const std::string_view bytes = before.substr(0, before.size() - rest.size());
    if (IsControl(code_point)) {
      for (const char c : bytes) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (bytes == "'") {
      quoted += escapes ? "\\'" : "'\\''";
    } else {
      quoted += escapes && bytes == "\\" ? "\\\\" : bytes;
    }
  }
  return (escapes ? "$'" : "'") + quoted + "'";
}

std::string ShellWords(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + ShellWord(word);
  return text;
}

std::string SqlText(const std::string& text) {
  std::string literal = "'";
  for (const char c : text) literal += c == '\'' ? std::string("''") : std::string(1, c);
  return literal + "'";
}

}  // namespace ridgeline
