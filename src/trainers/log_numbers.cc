#include "trainers/log_numbers.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "trainers/amount.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostLabelOfNumber = 80;
constexpr size_t kMostSuffixBytes = 24;
constexpr size_t kMostNumbers = 200;  // of a line
constexpr std::string_view kDelimiters = "|,;{}[]<>\t";

bool IsAsciiLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsWordByte(char c) { return IsAsciiLetter(c) || IsDigit(c) || c == '_'; }

char At(std::string_view line, size_t at) { return at < line.size() ? line[at] : '\0'; }

// The end of a plain decimal number: 1,234.5e-3.
size_t NumberEnd(std::string_view line, size_t at) {
  const auto digits = [&] {
    while (IsDigit(At(line, at))) ++at;
  };
  digits();
  while (At(line, at) == ',' && IsDigit(At(line, at + 1)) && IsDigit(At(line, at + 2)) && IsDigit(At(line, at + 3)) &&
         !IsDigit(At(line, at + 4))) {
    at += 4;
  }
  if (At(line, at) == '.' && IsDigit(At(line, at + 1))) {
    ++at;
    digits();
  }
  if (At(line, at) == 'e' || At(line, at) == 'E') {
    const size_t sign = At(line, at + 1) == '-' || At(line, at + 1) == '+' ? 1 : 0;
    if (IsDigit(At(line, at + 1 + sign))) {
      at += 1 + sign;
      digits();
    }
  }
  return at;
}

// Whether digits go on in a way that no number does: 2025-11-03, 09:14:02, 0.15.4.
bool IsCompound(std::string_view line, size_t end) {
  const char next = At(line, end);
  return (next == '-' || next == ':' || next == '.') && IsDigit(At(line, end + 1));
}

size_t CompoundEnd(std::string_view line, size_t at) {
  while (IsDigit(At(line, at)) ||
         (std::string_view("-:.,T").find(At(line, at)) != std::string_view::npos && IsDigit(At(line, at + 1)))) {
    ++at;
  }
  return at;
}

// The unit that stands directly behind a number.
size_t AttachedEnd(std::string_view line, size_t at) {
  const size_t begin = at;
  while (at - begin < kMostSuffixBytes) {
    const char c = At(line, at);
    const bool goes_on =
        IsAsciiLetter(c) || c == '%' || c == '_' || (c == '/' && IsAsciiLetter(At(line, at + 1)) && at > begin);
    const bool is_micro = line.substr(at).starts_with("µ");
    if (!goes_on && !is_micro) break;
    at += is_micro ? 2 : 1;
    if (c == '%') break;
  }
  return at;
}

bool IsUnitWord(std::string_view word) {
  static constexpr std::array kWords = {"ns",   "us",  "µs",  "ms",  "s",       "sec",     "secs", "seconds",
                                        "msec", "min", "kib", "mib", "gib",     "tib",     "kb",   "mb",
                                        "gb",   "tb",  "mbs", "gbs", "billion", "million", "bytes"};
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kWords, lower) != kWords.end() || lower.starts_with("tflop") ||
         lower.find("/s") != std::string::npos || lower.ends_with("/it") || lower.ends_with("/step") ||
         lower.ends_with("/iter");
}

size_t WordEnd(std::string_view line, size_t at) {
  while (at < line.size() && (IsWordByte(line[at]) || line[at] == '/' || line[at] == '%' || (line[at] & 0x80) != 0)) {
    ++at;
  }
  return at;
}

// Whether a word that ends here is what the next number is called.
bool IsNextLabel(std::string_view line, size_t word_end) {
  while (At(line, word_end) == ' ') ++word_end;
  return At(line, word_end) == ':' || At(line, word_end) == '=';
}

// Finds label and context in the text between the previous number and this one, which begins at `end`.
void SetLabel(std::string_view line, size_t from, LogNumber& number) {
  size_t end = number.begin;
  while (end > from && std::string_view(" \t:='\"([{").find(line[end - 1]) != std::string_view::npos) --end;
  if (end == from) {  // no words; the separators identify it
    size_t at = number.begin;
    while (at > from && std::string_view(" \t").find(line[at - 1]) != std::string_view::npos) --at;
    number.context = at > from ? at - 1 : from;
    return;
  }
  size_t begin = end;
  size_t closed = 0;
  for (; begin > from && end - begin < kMostLabelOfNumber; --begin) {
    const char c = line[begin - 1];
    if (c == ')') {
      ++closed;
    } else if (c == '(') {
      if (closed == 0) break;
      --closed;
    } else if (kDelimiters.find(c) != std::string_view::npos && closed == 0) {
      break;
    } else if (c == ' ' && closed == 0) {
      const char before = begin >= 2 ? line[begin - 2] : '\0';
      if (before == ' ' || before == ':' || (before == '-' && begin >= 3 && line[begin - 3] == ' ')) break;
    }
  }
  // A parenthesis that opens before the label is no part of it.
  if (closed > 0) {
    const size_t close = line.substr(begin, end - begin).rfind(')');
    if (close != std::string_view::npos && begin + close + 1 < end) begin += close + 1;
  }
  size_t context = begin;
  while (context > from && line[context - 1] == ' ') --context;
  const bool is_after_mark = context > from && (line[context - 1] == ':' || line[context - 1] == '-');
  const bool is_spaced = begin - context >= 2;
  if (is_after_mark || context == begin) {
    number.context = context > from ? context - 1 : context;
  } else {
    number.context = is_spaced ? context : begin - 1;
  }
  while (begin < end && std::string_view(" '\":=-").find(line[begin]) != std::string_view::npos) ++begin;
  number.label = line.substr(begin, end - begin);
}

}  // namespace

std::vector<LogNumber> NumbersOf(std::string_view line) {
  std::vector<LogNumber> numbers;
  size_t from = 0;  // the end of the previous number or date
  for (size_t at = 0; at < line.size() && numbers.size() < kMostNumbers;) {
    const std::string_view rest = line.substr(at);
    const bool follows_word = at > 0 && (IsWordByte(line[at - 1]) || line[at - 1] == '.');
    const auto is_word = [&](std::string_view word) {
      if (!rest.starts_with(word) && !rest.starts_with(word == "nan" ? "NaN" : "Inf")) return false;
      return !IsWordByte(At(line, at + word.size()));
    };
    const bool is_not_finite = !follows_word && (is_word("nan") || is_word("inf"));
    if (!IsDigit(line[at]) && !is_not_finite) {
      ++at;
      continue;
    }
    if (follows_word) {
      while (IsWordByte(At(line, at))) ++at;
      continue;
    }
    const size_t end = is_not_finite ? at + 3 : NumberEnd(line, at);
    if (!is_not_finite && IsCompound(line, end)) {
      at = from = CompoundEnd(line, at);
      continue;
    }
    LogNumber number;
    const bool has_sign = at > from && (line[at - 1] == '-' || line[at - 1] == '+');
    number.begin = has_sign ? at - 1 : at;
    number.end = end;
    SetLabel(line, from, number);
    size_t suffix_end = AttachedEnd(line, end);
    if (suffix_end == end && At(line, end) == ' ') {
      const size_t word_end = WordEnd(line, end + 1);
      if (!IsNextLabel(line, word_end) && IsUnitWord(line.substr(end + 1, word_end - end - 1))) suffix_end = word_end;
    }
    number.suffix = Trim(line.substr(end, suffix_end - end));
    size_t after = WordEnd(line, suffix_end);
    for (int words = 0; words < 2 && At(line, after) == ' '; ++words) {
      const size_t word_end = WordEnd(line, after + 1);
      if (word_end == after + 1 || IsNextLabel(line, word_end)) break;
      after = word_end;
    }
    number.after = Trim(line.substr(end, after - end));
    size_t slash = end;
    while (At(line, slash) == ' ') ++slash;
    const bool has_slash = At(line, slash) == '/';
    if (has_slash) ++slash;
    while (At(line, slash) == ' ') ++slash;
    number.of_more = has_slash && IsDigit(At(line, slash));
    numbers.push_back(number);
    at = from = std::max(suffix_end, end);
  }
  return numbers;
}

std::vector<std::string> WordsOf(std::string_view label) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < label.size(); ++i) {
    const char c = label[i];
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(label[i - 1])) != 0;
    const bool is_alnum = IsAsciiLetter(c) || IsDigit(c);
    if (!is_alnum || (is_upper && after_lower)) words.emplace_back();
    if (is_alnum) words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

}  // namespace ridgeline::trainers
