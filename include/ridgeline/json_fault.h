// Says what is wrong with a JSON document in words for people. nlohmann-json's own begin with a class and a number.
#pragma once

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

namespace ridgeline {

// Returns one line of at most 400 bytes, which may quote the document: "']' cannot stand at line 1, column 2", "it ends
// too early, at line 3, column 1", "it is malformed at line 2, column 8, at the end of 'nan'", "'ranks' is missing",
// "the number 1e999 is too large", "it is a string where a number is expected".
inline std::string JsonFault(const nlohmann::json::exception& error) {
  constexpr size_t kMostBytes = 400;
  std::string words = error.what();
  if (const size_t end = words.find("] "); words.starts_with("[json.exception.") && end != std::string::npos) {
    words.erase(0, end + 2);
  }
  const auto between = [&words](const std::string& before, const std::string& after) {
    const size_t begin = before.size();
    const size_t end = words.find(after, begin);
    return end == std::string::npos ? std::string() : words.substr(begin, end - begin);
  };
  switch (error.id) {
    case 101: {
      // "parse error at PLACE: syntax error while parsing value - invalid literal; last read: 'x'; expected '}'", or
      // "... - unexpected ']'; expected string literal".
      const auto behind = [&words](const std::string& mark) {
        const size_t begin = words.find(mark);
        if (begin == std::string::npos) return std::string();
        const size_t end = words.rfind("; expected ");
        return words.substr(begin + mark.size(), end == std::string::npos ? end : end - begin - mark.size());
      };
      const std::string place = between("parse error at ", ": ");
      const std::string unexpected = behind(" - unexpected ");
      std::string read = behind("; last read: ");
      constexpr size_t kMostRead = 40;
      if (size_t begin = read.size() - std::min(read.size(), kMostRead); begin > 0) {
        while (begin < read.size() && (read[begin] & '\xC0') == '\x80') ++begin;  // cuts no UTF-8 character in two
        read = "'..." + read.substr(begin);
      }
      if (unexpected == "end of input") {
        words = "it ends too early, at " + place;
      } else if (!unexpected.empty()) {
        // "string literal", or a sign in quotes
        const bool is_sign = unexpected.front() == '\'';
        words =
            (is_sign ? unexpected : "a " + unexpected.substr(0, unexpected.find(' '))) + " cannot stand at " + place;
      } else {
        words = "it is malformed at " + place + (read.empty() ? "" : ", at the end of " + read);
      }
      break;
    }
    case 302: {  // "type must be number, but is string"
      const std::string wanted = between("type must be ", ", but is ");
      const size_t is = words.rfind(" is ");
      if (!wanted.empty()) words = "it is a " + words.substr(is + 4) + " where a " + wanted + " is expected";
      break;
    }
    case 304:
    case 305:
    case 306: {  // "cannot use at() with string"
      const size_t with = words.rfind(" with ");
      if (with != std::string::npos)
        words = "it is a " + words.substr(with + 6) + " where a list or an object is expected";
      break;
    }
    case 403: {  // "key 'ranks' not found"
      const std::string key = between("key ", " not found");
      if (!key.empty()) words = key + " is missing";
      break;
    }
    case 406: {  // "number overflow parsing '1e999'"
      const std::string number = between("number overflow parsing '", "'");
      if (!number.empty()) words = "the number " + number + " is too large";
      break;
    }
    default:
      break;
  }
  if (words.size() > kMostBytes) {
    size_t end = kMostBytes;
    while (end > 0 && (words[end] & '\xC0') == '\x80') --end;  // cuts no UTF-8 character in two
    words = words.substr(0, end) + "...";
  }
  return words;
}

}  // namespace ridgeline
