#include "trainers/json_values.h"

#include <charconv>
#include <span>
#include <vector>

#include "base/error.h"

namespace ridgeline::trainers {
namespace {

constexpr int kMostObjects = 64;  // of a line, including those that only look like one

using Tokens = std::span<const std::string>;

std::vector<std::string> TokensOf(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < pointer.size();) {
    const size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    std::string token;
    for (size_t i = at + 1; i < end; ++i) {
      const std::string_view pair = pointer.substr(i, 2);
      const bool escaped = pair == "~0" || pair == "~1";
      token += escaped ? (pair == "~0" ? '~' : '/') : pointer[i];
      i += escaped ? 1 : 0;
    }
    tokens.push_back(std::move(token));
    at = end;
  }
  return tokens;
}

// Returns the value of the longest leading run of tokens that is a key, and in `taken` how many tokens that key has.
const Json* Child(const Json& object, Tokens tokens, size_t& taken) {
  std::string key;
  const Json* found = nullptr;
  for (size_t i = 0; i < tokens.size(); ++i) {
    key += (i == 0 ? "" : "/") + tokens[i];
    const auto it = object.find(key);
    if (it == object.end()) continue;
    found = &*it;
    taken = i + 1;
  }
  return found;
}

const Json* Item(const Json& list, const std::string& token) {
  size_t place = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), place);
  const bool is_place = error == std::errc() && end == token.data() + token.size();
  return is_place && place < list.size() ? &list[place] : nullptr;
}

std::optional<std::string> TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? std::optional(DumpJson(value)) : std::nullopt;
}

// A position on the way from the document to a value, with the tokens left.
struct Way {
  const Json* at = nullptr;
  Tokens left;

  // Goes with `other` to a child, if both are at the same place and this way's tokens agree.
  void Follow(const Way& other, const Json* child, size_t taken) {
    if (at != other.at || left.size() < taken) return;
    for (size_t i = 0; i < taken; ++i) {
      if (left[i] != other.left[i]) return;
    }
    at = child;
    left = left.subspan(taken);
  }

  const Json* Resolve() const {
    const Json* now = at;
    for (Tokens rest = left; !rest.empty();) {
      size_t taken = 1;
      now = now->is_object() ? Child(*now, rest, taken) : now->is_array() ? Item(*now, rest[0]) : nullptr;
      if (now == nullptr) return nullptr;
      rest = rest.subspan(taken);
    }
    return now;
  }
};

class Collector {
 public:
  explicit Collector(const std::function<void(const JsonValue&)>& take) : take_(take) {}

  void Collect(const Way& value, const Way& step, const Way& rank) {
    if (value.left.empty()) {
      AtEnd(*value.at, step, rank);
    } else if (value.at->is_object()) {
      size_t taken = 0;
      if (const Json* child = Child(*value.at, value.left, taken)) Go(value, child, taken, step, rank);
    } else if (value.at->is_array()) {
      if (const Json* item = Item(*value.at, value.left[0])) return Go(value, item, 1, step, rank);
      for (const Json& item : *value.at) Go(value, &item, 0, step, rank);
    }
  }

 private:
  void Go(const Way& value, const Json* child, size_t taken, Way step, Way rank) {
    step.Follow(value, child, taken);
    rank.Follow(value, child, taken);
    Collect({child, value.left.subspan(taken)}, step, rank);
  }

  static std::optional<std::string> Beside(const Way& way, const Json& list, size_t place) {
    if (way.at == nullptr) return std::nullopt;
    const Json* found = way.Resolve();
    if (found == nullptr) return std::nullopt;
    if (!found->is_array()) return list.is_array() ? std::nullopt : TextOf(*found);
    return list.is_array() && found->size() == list.size() ? TextOf((*found)[place]) : std::nullopt;
  }

  void AtEnd(const Json& value, const Way& step, const Way& rank) {
    const size_t count = value.is_array() ? value.size() : 1;
    for (size_t place = 0; place < count; ++place) {
      const auto text = TextOf(value.is_array() ? value[place] : value);
      if (text) take_({*text, Beside(step, value, place), Beside(rank, value, place)});
    }
  }

  const std::function<void(const JsonValue&)>& take_;
};

// Returns the position behind the object that begins at `at`; npos if it does not end.
size_t EndOfObject(std::string_view line, size_t at) {
  int depth = 0;
  bool in_text = false;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (in_text) {
      if (c == '\\') ++at;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// Puts Python's NaN, Infinity and -Infinity in quotes.
std::string WithQuoted(std::string_view text) {
  std::string quoted;
  bool in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_text && rest.starts_with(word)) length = word.size();
    }
    if (length > 0) {
      quoted += '"' + std::string(rest.substr(0, length)) + '"';
      at += length - 1;
      continue;
    }
    if (in_text && text[at] == '\\' && rest.size() > 1) quoted += text[at++];
    if (text[at] == '"') in_text = !in_text;
    quoted += text[at];
  }
  return quoted;
}

Json Parsed(std::string_view text, const std::string& source) {
  const bool plain = text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos;
  return plain ? ParseJson(text, source) : ParseJson(WithQuoted(text), source);
}

std::optional<Json> ObjectOf(std::string_view text) {
  try {
    Json json = Parsed(text, "a line");
    if (json.is_object()) return json;
  } catch (const Error&) {
    // It only looked like an object.
  }
  return std::nullopt;
}

}  // namespace

void CollectJson(const Json& document, const JsonPaths& paths, const std::function<void(const JsonValue&)>& take) {
  const std::vector<std::string> value = TokensOf(paths.value);
  const std::vector<std::string> step = TokensOf(paths.step);
  const std::vector<std::string> rank = TokensOf(paths.rank);
  const auto way = [&](const std::vector<std::string>& tokens) {
    return tokens.empty() ? Way() : Way{&document, tokens};
  };
  Collector(take).Collect({&document, value}, way(step), way(rank));
}

void ForEachObject(std::string_view line, const std::function<void(const Json&)>& take) {
  int tries = 0;
  for (size_t at = line.find('{'); at < line.size() && tries < kMostObjects; ++tries) {
    const size_t inside = line.find_first_not_of(" \t", at + 1);
    const bool may_be = inside < line.size() && line[inside] == '"';
    const size_t end = may_be ? EndOfObject(line, at) : std::string_view::npos;
    if (const auto object = end < std::string_view::npos ? ObjectOf(line.substr(at, end - at)) : std::nullopt) {
      take(*object);
      at = line.find('{', end);
    } else {
      at = line.find('{', at + 1);
    }
  }
}

Json ParseJsonOrLines(std::string_view text, const std::string& source) {
  const size_t end = text.find('\n');
  const std::string_view first = text.substr(0, end);
  const bool of_lines = end < text.size() && text.find_first_not_of(" \t\r\n", end) < text.size() && ObjectOf(first);
  if (!of_lines) return Parsed(text, source);
  Json list = Json::array();
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    if (auto object = ObjectOf(text.substr(0, length))) list.push_back(*std::move(object));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return list;
}

}  // namespace ridgeline::trainers
