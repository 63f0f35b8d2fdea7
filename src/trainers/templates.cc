#include "trainers/templates.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "run/fields.h"
#include "run/presets.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostDepth = 16;   // of an `if` within another
constexpr size_t kShownBytes = 80;  // of a faulty text
constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";
constexpr std::string_view kModelName = "model";  // several names may mean one

[[noreturn]] void Wrong(const std::string& message) { throw Error(ErrorKind::kInvalidInput, message); }

bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

bool IsWholeNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Parses the inside of a tag from its front.
class Tag {
 public:
  explicit Tag(std::string_view inside) : rest_(inside), whole_(inside) {}

  bool AtEnd() {
    rest_ = Trim(rest_);
    return rest_.empty();
  }

  bool Take(std::string_view sign) {
    rest_ = Trim(rest_);
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }

  std::string Name() {
    rest_ = Trim(rest_);
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), [](char c) { return IsName({&c, 1}); });
    std::string name(rest_.begin(), end);
    if (name.empty()) WrongHere("a name is missing");
    rest_.remove_prefix(name.size());
    return name;
  }

  // Returns text "in quotes", with \" and \\ in them, or the text before any of `ends`.
  std::string Text(std::string_view ends) {
    rest_ = Trim(rest_);
    std::string text;
    if (!Take("\"")) {
      text = Trim(rest_.substr(0, rest_.find_first_of(ends)));
      rest_.remove_prefix(std::min(rest_.find_first_of(ends), rest_.size()));
      return text;
    }
    for (; !rest_.starts_with('"'); rest_.remove_prefix(1)) {
      if (rest_.starts_with('\\')) rest_.remove_prefix(1);
      if (rest_.empty()) WrongHere("a quote is not closed");
      text += rest_.front();
    }
    rest_.remove_prefix(1);
    return text;
  }

  [[noreturn]] void WrongHere(const std::string& what) const {
    Wrong(fmt::format("{{{{{}}}}}: {}", ShortenToBytes(std::string(Trim(whole_)), kShownBytes), what));
  }

 private:
  std::string_view rest_;
  std::string_view whole_;
};

// Returns a number's text so that TOML, YAML and JSON all read a number. YAML 1.1, as PyYAML reads it, takes 1e-08,
// which has no point, for text.
std::string ForFiles(std::string number) {
  const size_t exponent = number.find('e');
  if (exponent != std::string::npos && number.find('.') == std::string::npos) number.insert(exponent, ".0");
  return number;
}

// Returns the inside of a double-quoted string that TOML, YAML and JSON all read.
std::string Escaped(const std::string& text) {
  const std::string dumped = DumpJson(Json(text));
  std::string out;
  for (const char c : std::string_view(dumped).substr(1, dumped.size() - 2)) {
    if (c == '\x7f') {
      out += "\\u007f";
    } else {
      out += c;
    }
  }
  return out;
}

// Returns the position of the tag's closing }}, searched from `at`; npos if there is none. Quoted text may contain }}.
size_t EndOfTag(std::string_view text, size_t at) {
  bool quoted = false;
  for (; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && text.substr(at).starts_with(kClose)) {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

class Template::Parser {
 public:
  Parser(std::string_view text, Quoting quoting) : rest_(text), quoting_(quoting) {}

  std::vector<Part> Whole() {
    if (quoting_ == Quoting::kPython) RefuseLongStrings();
    std::vector<Part> parts = Parts(0);
    if (splits_ && (parts.size() != 1 || !parts.front().value)) {
      Wrong("`words` makes several arguments of a value that is all of its item");
    }
    if (!closed_by_.empty()) Wrong(fmt::format("{{{{{}}}}} without an {{{{if}}}} before it", closed_by_));
    return parts;
  }

 private:
  // A Python string that continues on the next line would hide its content from FollowQuotes.
  void RefuseLongStrings() const {
    for (const std::string_view sign : {"\"\"\"", "'''"}) {
      if (rest_.find(sign) != std::string_view::npos) Wrong(fmt::format("Python has no {} here: use \"…\"", sign));
    }
    if (rest_.find("\\\n") != std::string_view::npos) Wrong("a line of Python ends with no backslash here");
  }

  // Reads up to the end, or up to an `else` or `end`, which it stores in closed_by_.
  std::vector<Part> Parts(size_t depth) {
    if (depth > kMostDepth) Wrong(fmt::format("more than {} {{{{if}}}} in each other", kMostDepth));
    std::vector<Part> parts;
    for (closed_by_.clear(); !rest_.empty();) {
      const size_t open = rest_.find(kOpen);
      if (open != 0) {
        FollowQuotes(rest_.substr(0, open));
        parts.push_back({std::string(rest_.substr(0, open)), {}, {}});
      }
      if (open == std::string_view::npos) return rest_ = {}, parts;
      const size_t close = EndOfTag(rest_, open + kOpen.size());
      if (close == std::string_view::npos) Wrong("a {{ is not closed by }}");
      const std::string_view inside = rest_.substr(open + kOpen.size(), close - open - kOpen.size());
      rest_.remove_prefix(close + kClose.size());
      const std::string_view word = Trim(inside);
      if (word == "end" || word == "else") {
        closed_by_ = word;
        return parts;
      }
      if (word.starts_with("if ")) {
        parts.push_back({{}, {}, {If(word.substr(3), depth)}});
      } else {
        parts.push_back({{}, ReadValue(inside), {}});
      }
    }
    return parts;
  }

  Branch If(std::string_view condition, size_t depth) {
    Branch branch;
    Tag tag(condition);
    branch.name = tag.Name();
    if (!tag.AtEnd()) {
      branch.compares = true;
      branch.equal = tag.Take("==");
      if (!branch.equal && !tag.Take("!=")) tag.WrongHere("a condition is NAME, NAME == VALUE or NAME != VALUE");
      branch.operand = tag.Text("");
      if (branch.name == kModelName) branch.operand = MeantModel(branch.operand);
      if (!tag.AtEnd()) tag.WrongHere("there is more behind the value");
    }
    const bool quoted = quoted_;
    branch.then = Parts(depth + 1);
    if (closed_by_ == "else") {
      quoted_ = quoted;
      branch.otherwise = Parts(depth + 1);
      if (closed_by_ == "else") Wrong("two {{else}} of one {{if}}");
    }
    if (closed_by_ != "end") Wrong(fmt::format("{{{{if {}}}}} without its {{{{end}}}}", Trim(condition)));
    closed_by_.clear();
    return branch;
  }

  Value ReadValue(std::string_view inside) {
    Tag tag(inside);
    Value value;
    value.name = tag.Name();
    value.in_quotes = quoted_;
    if (single_quoted_) tag.WrongHere("a value cannot stand between single quotes: use double quotes, or none");
    while (tag.Take("|")) {
      const std::string filter = tag.Name();
      if (filter == "words" && quoting_ == Quoting::kNone) {
        value.words = splits_ = true;
      } else if (filter == "float") {
        value.with_point = true;
      } else if (filter == "default" && tag.Take(":")) {
        value.standard = tag.Text("|");
      } else if (filter == "map" && tag.Take(":")) {
        do {
          std::string from = tag.Text("=");
          if (!tag.Take("=")) tag.WrongHere("a map has entries such as bf16=--bf16, with commas between them");
          if (value.name == kModelName) from = MeantModel(from);
          value.map.push_back({std::move(from), tag.Text(",|")});
        } while (tag.Take(","));
      } else {
        tag.WrongHere(
            fmt::format("there is no filter '{}' here: filters are `map: A=X, B=Y`, `default: X`, `float` and, of "
                        "arguments, `words`",
                        filter));
      }
    }
    if (!tag.AtEnd()) tag.WrongHere("there is more behind the name; filters begin with |");
    if (quoting_ == Quoting::kPython && quoted_ && value.map.empty()) {
      tag.WrongHere("in Python a value cannot stand between quotes: text brings its own");
    }
    return value;
  }

  // Tracks whether the next text stands in double quotes. Values are refused in single quotes, because each format
  // escapes there in its own way.
  void FollowQuotes(std::string_view text) {
    if (quoting_ == Quoting::kNone) return;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') quoted_ = single_quoted_ = false;
      if (text[i] == '\'' && !quoted_) single_quoted_ = !single_quoted_;
      if (quoted_ && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"' && !single_quoted_) {
        quoted_ = !quoted_;
      }
    }
  }

  std::string_view rest_;
  Quoting quoting_;
  std::string closed_by_;
  bool quoted_ = false;
  bool single_quoted_ = false;
  bool splits_ = false;  // has a `words`
};

Template::Template(std::string_view text, Quoting quoting) : parts_(Parser(text, quoting).Whole()), quoting_(quoting) {}

void Template::AddNames(const std::vector<Part>& parts, std::vector<std::string>& names) {
  for (const Part& part : parts) {
    if (part.value) names.push_back(part.value->name);
    for (const Branch& branch : part.branch) {
      names.push_back(branch.name);
      AddNames(branch.then, names);
      AddNames(branch.otherwise, names);
    }
  }
}

std::vector<std::string> Template::Names() const {
  std::vector<std::string> names;
  AddNames(parts_, names);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string Template::Quoted(const std::string& text, bool in_quotes) const {
  if (quoting_ == Quoting::kNone) return text;
  if (quoting_ == Quoting::kPython) return "(\"" + Escaped(text) + "\")";
  return in_quotes ? Escaped(text) : '"' + Escaped(text) + '"';
}

std::string Template::NoValue(std::string_view name) { return fmt::format("{} has no value here", name); }

std::string Template::ValueOf(const Value& value, const Lookup& lookup, const Lookup& stand_in) const {
  std::optional<FieldValue> found = lookup(value.name);
  const bool is_text = !found || std::holds_alternative<std::string>(*found);
  std::string text = found ? ValueText(*found) : "";
  if (text.empty() && value.standard) text = *value.standard;
  if (!found && !value.standard) {
    const std::optional<FieldValue> instead = stand_in ? stand_in(value.name) : std::nullopt;
    if (!instead) Wrong(NoValue(value.name));
    return Quoted(ValueText(*instead), value.in_quotes);
  }
  if (!value.map.empty()) {
    const auto at = std::find_if(value.map.begin(), value.map.end(), [&](const Mapped& m) { return m.from == text; });
    if (at == value.map.end()) {
      std::vector<std::string> known;
      for (const Mapped& m : value.map) known.push_back(m.from);
      Wrong(fmt::format("{} is {}, and it takes {}", value.name, ShortenToBytes(text, kShownBytes), Join(known, ", ")));
    }
    return at->to;  // the definition's own words
  }
  if (value.with_point && IsWholeNumber(text)) text += ".0";
  if (is_text) return Quoted(text, value.in_quotes);
  if (quoting_ == Quoting::kPython && std::holds_alternative<bool>(*found)) return text == "true" ? "True" : "False";
  return quoting_ != Quoting::kNone && std::holds_alternative<double>(*found) ? ForFiles(std::move(text)) : text;
}

bool Template::Holds(const Branch& branch, const Lookup& lookup) {
  const std::optional<FieldValue> found = lookup(branch.name);
  const std::string text = found ? ValueText(*found) : "";
  if (!branch.compares) return !text.empty() && text != "false";
  return (text == branch.operand) == branch.equal;
}

void Template::Append(const std::vector<Part>& parts, const Lookup& lookup, const Lookup& stand_in,
                      std::string& out) const {
  for (const Part& part : parts) {
    out += part.text;
    if (part.value) out += ValueOf(*part.value, lookup, stand_in);
    for (const Branch& branch : part.branch) {
      Append(Holds(branch, lookup) ? branch.then : branch.otherwise, lookup, stand_in, out);
    }
  }
}

std::string Template::Text(const Lookup& lookup, const Lookup& stand_in) const {
  std::string out;
  Append(parts_, lookup, stand_in, out);
  return out;
}

std::vector<std::string> Template::Arguments(const Lookup& lookup, const Lookup& stand_in) const {
  const std::string text = Text(lookup, stand_in);
  if (text.empty()) return {};
  const bool words = parts_.size() == 1 && parts_.front().value && parts_.front().value->words;
  if (!words) return {text};
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace ridgeline::trainers
