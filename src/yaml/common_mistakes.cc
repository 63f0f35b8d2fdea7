#include "yaml/common_mistakes.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace ridgeline::yaml {
namespace {

std::string_view LineOf(std::string_view text, int line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

bool IsWordCharacter(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Returns how many characters of `text` are a name and a colon that something other than a space or a path follows; 0
// if there are none.
size_t NameAndColon(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsWordCharacter(text[end])) ++end;
  const bool joined = end > 0 && std::isdigit(static_cast<unsigned char>(text.front())) == 0 && end + 1 < text.size() &&
                      text[end] == ':' && std::string_view(" \t/:\\").find(text[end + 1]) == std::string_view::npos;
  return joined ? end + 1 : 0;
}

std::optional<Fault> JoinedColonIn(std::string_view line, int number) {
  const auto fault = [&](size_t at, size_t end) {
    const std::string_view word = line.substr(at, end == std::string_view::npos ? end : end - at);
    return Fault{{number, static_cast<int>(at) + 1}, JoinedColon(word)};
  };
  const size_t first = line.find_first_not_of(" -{");
  if (first == std::string_view::npos) return std::nullopt;
  if (NameAndColon(line.substr(first)) > 0) return fault(first, line.find_first_of(" ,}", first));
  // Within braces, only a list or a mapping behind the colon is a mistake: a word there would form one word with the
  // name.
  for (size_t brace = line.find_first_of("{,"); brace != std::string_view::npos;
       brace = line.find_first_of("{,", brace + 1)) {
    const size_t at = line.find_first_not_of(' ', brace + 1);
    if (at == std::string_view::npos) break;
    const size_t length = NameAndColon(line.substr(at));
    if (length == 0 || std::string_view("[{").find(line[at + length]) == std::string_view::npos) continue;
    const size_t close = line.find(line[at + length] == '[' ? ']' : '}', at);
    return fault(at, close == std::string_view::npos ? close : close + 1);
  }
  return std::nullopt;
}

std::optional<Fault> ComparisonIn(std::string_view line, int number) {
  for (size_t at = line.find('>'); at != std::string_view::npos; at = line.find('>', at + 1)) {
    const size_t before = line.find_last_not_of(' ', at == 0 ? 0 : at - 1);
    const bool is_value = at > 0 && before != std::string_view::npos &&
                          std::string_view(":-[,").find(line[before]) != std::string_view::npos;
    if (!is_value) continue;
    if (const std::string_view comparison = LeadingComparison(line.substr(at)); !comparison.empty()) {
      return Fault{{number, static_cast<int>(at) + 1}, BareComparison(comparison)};
    }
  }
  return std::nullopt;
}

// Looks outside quotes and comments.
std::optional<Fault> TemplateIn(std::string_view line, int number) {
  char quote = '\0';
  for (size_t at = 0; at + 1 < line.size(); ++at) {
    const char c = line[at];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && at > 0 && line[at - 1] == ' ') {
      break;
    } else if (line.substr(at).starts_with("{{")) {
      const size_t begin = line.find_last_of(" [,", at) + 1;  // npos + 1 is 0
      const size_t close = line.find("}}", at);
      const std::string_view word = line.substr(begin, close == std::string_view::npos ? close : close + 2 - begin);
      return Fault{{number, static_cast<int>(begin) + 1},
                   fmt::format("write \"{}\" in quotes: braces within [ ] are YAML's own", word)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> MistakeAt(std::string_view text, Place stopped) {
  const std::string_view line = LineOf(text, stopped.line);
  const std::string_view indentation = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (const size_t tab = indentation.find('\t'); tab != std::string_view::npos) {
    return Fault{{stopped.line, static_cast<int>(tab) + 1},
                 "this line is indented with a tab; YAML is indented with spaces alone"};
  }
  if (auto mistake = ComparisonIn(line, stopped.line)) return mistake;
  if (auto mistake = TemplateIn(line, stopped.line)) return mistake;
  // If a line lacks its space, it runs on into the next one, where the parser stops.
  if (stopped.line > 1) {
    if (auto mistake = JoinedColonIn(LineOf(text, stopped.line - 1), stopped.line - 1)) return mistake;
  }
  return JoinedColonIn(line, stopped.line);
}

std::string_view LeadingComparison(std::string_view rest) {
  if (rest.empty() || rest.front() != '>') return {};
  const size_t digits = rest.find_first_not_of(">= ");
  if (digits == std::string_view::npos || std::isdigit(static_cast<unsigned char>(rest[digits])) == 0) return {};
  return rest.substr(0, rest.find_first_not_of("0123456789.eE", digits));
}

std::string JoinedColon(std::string_view scalar) {
  const size_t name = NameAndColon(scalar);
  if (name == 0) return {};
  return fmt::format("'{}' needs a space after its colon: '{} {}'", scalar, scalar.substr(0, name),
                     scalar.substr(name));
}

std::string NotAMapping(const std::string& expected, const YamlNode& node) {
  const std::string joined = node.scalar.is_string() ? JoinedColon(node.scalar.get<std::string>()) : "";
  return joined.empty() ? expected + ", not " + Describe(node) : joined;
}

std::string BareComparison(std::string_view comparison) {
  return fmt::format("write the comparison in quotes, \"{}\": YAML gives > and ! a meaning of their own", comparison);
}

}  // namespace ridgeline::yaml
