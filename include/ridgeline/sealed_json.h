// JSON documents that carry a checksum over themselves: jobs, results of our trainer, manifests, launchers' records.
#ifndef RIDGELINE_SEALED_JSON_H_
#define RIDGELINE_SEALED_JSON_H_

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "ridgeline/checksum.h"

namespace ridgeline {

inline constexpr const char* kChecksumKey = "checksum";

// On one line; bytes that are not UTF-8 are replaced.
inline std::string Dumped(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// An object that has members, and none of that key, as text that has one: the checksum of the text without it.
inline std::string SealedText(const nlohmann::json& document) {
  std::string text = Dumped(document);
  text.insert(1, std::string("\"") + kChecksumKey + "\":\"" + Checksum(text) + "\",");
  return text;
}

// False where it carries one, and is not what that is of. What a person or another program writes need not carry one,
// nor does what earlier versions wrote.
inline bool IsWhole(const nlohmann::json& document) {
  if (!document.is_object()) return true;
  const auto checksum = document.find(kChecksumKey);
  if (checksum == document.end()) return true;
  std::string text;  // as the others' would be
  for (const auto& [key, value] : document.items()) {
    if (key != kChecksumKey) text += (text.empty() ? '{' : ',') + Dumped(key) + ':' + Dumped(value);
  }
  return *checksum == Checksum(text + '}');
}
inline constexpr std::string_view kNotWhole = "was changed since it was written: its checksum is of something else";

}  // namespace ridgeline

#endif  // RIDGELINE_SEALED_JSON_H_
