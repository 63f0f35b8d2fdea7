#include "base/plain_json.h"

#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/json.h"

namespace ridgeline {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Every function returns false if the text is not plain; the position is meaningless then.
class Parser {
 public:
  explicit Parser(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool Document(Json& value) {
    if (!Value(value, 0)) return false;
    SkipSpace();
    return at_ == end_;
  }

 private:
  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool Word(std::string_view word) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool Value(Json& value, int depth) {
    SkipSpace();
    if (at_ == end_ || depth > kMaxJsonDepth) return false;
    switch (*at_) {
      case '{':
        return Object(value, depth);
      case '[':
        return Array(value, depth);
      case '"': {
        std::string text;
        if (!Text(text)) return false;
        value = std::move(text);
        return true;
      }
      case 't':
        value = true;
        return Word("true");
      case 'f':
        value = false;
        return Word("false");
      case 'n':
        value = nullptr;
        return Word("null");
      default:
        return Number(value);
    }
  }

  bool Object(Json& value, int depth) {
    Json::object_t members;
    ++at_;
    SkipSpace();
    if (!Take('}')) {
      do {
        std::string key;
        SkipSpace();
        if (!Text(key)) return false;
        SkipSpace();
        Json member;
        if (!Take(':') || !Value(member, depth + 1)) return false;
        // The hint is right for our own documents, whose keys are sorted.
        members.insert_or_assign(members.end(), std::move(key), std::move(member));
        SkipSpace();
      } while (Take(','));
      if (!Take('}')) return false;
    }
    value = std::move(members);
    return true;
  }

  bool Array(Json& value, int depth) {
    Json::array_t elements;
    ++at_;
    SkipSpace();
    if (!Take(']')) {
      do {
        if (!Value(elements.emplace_back(), depth + 1)) return false;
        SkipSpace();
      } while (Take(','));
      if (!Take(']')) return false;
    }
    value = std::move(elements);
    return true;
  }

  bool Text(std::string& text) {
    if (!Take('"')) return false;
    for (;;) {
      const char* run = at_;
      while (at_ != end_ && *at_ >= 0x20 && *at_ < 0x7f && *at_ != '"' && *at_ != '\\') ++at_;
      text.append(run, at_);
      if (Take('"')) return true;
      if (!Take('\\') || at_ == end_) return false;
      constexpr std::string_view kEscapes = "\"\\/bfnrt";
      const size_t escape = kEscapes.find(*at_++);
      if (escape == std::string_view::npos) return false;
      text += "\"\\/\b\f\n\r\t"[escape];
    }
  }

  bool Digits() {
    const char* first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != first;
  }

  bool Number(Json& value) {
    const char* first = at_;
    const bool negative = Take('-');
    const char* digits = at_;
    if (!Digits() || (*digits == '0' && at_ - digits > 1)) return false;
    bool whole = true;
    if (Take('.')) {
      whole = false;
      if (!Digits()) return false;
    }
    if (Take('e') || Take('E')) {
      whole = false;
      if (!Take('+')) Take('-');
      if (!Digits()) return false;
    }
    if (!whole) return Convert<double>(first, value);
    return negative ? Convert<Json::number_integer_t>(first, value) : Convert<Json::number_unsigned_t>(first, value);
  }

  template <typename T>
  bool Convert(const char* first, Json& value) const {
    T number{};
    const auto [end, error] = std::from_chars(first, at_, number);
    if (error != std::errc() || end != at_) return false;
    value = number;
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

bool ParsePlainJson(std::string_view text, Json& value) { return Parser(text).Document(value); }

}  // namespace ridgeline
