// JSON documents that carry their own checksum: jobs, our trainer's results, manifests, launchers' records.
#ifndef RIDGELINE_SEALED_JSON_H_
#define RIDGELINE_SEALED_JSON_H_

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "ridgeline/checksum.h"

namespace ridgeline {

inline constexpr const char* kChecksumKey = "checksum";

// Returns the document on one line, with bytes that are not UTF-8 replaced.
inline std::string Dumped(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns the document as text with its checksum as the first member. The checksum is that of the text without it.
// REQUIRES: an object with members, none of them kChecksumKey.
inline std::string SealedText(const nlohmann::json& document) {
  std::string text = Dumped(document);
  text.insert(1, std::string("\"") + kChecksumKey + "\":\"" + Checksum(text) + "\",");
  return text;
}

// Returns false if the document carries a checksum that does not match. A document without one is whole: people and
// other programs write such documents.
inline bool IsWhole(const nlohmann::json& document) {
  if (!document.is_object()) return true;
  const auto checksum = document.find(kChecksumKey);
  if (checksum == document.end()) return true;
  std::string text;  // the document without its checksum, as SealedText saw it
  for (const auto& [key, value] : document.items()) {
    if (key != kChecksumKey) text += (text.empty() ? '{' : ',') + Dumped(key) + ':' + Dumped(value);
  }
  return *checksum == Checksum(text + '}');
}
inline constexpr std::string_view kNotWhole = "was changed since it was written: its checksum is of something else";

// For a document that only Ridgeline writes: what is wrong with it, "has no checksum"; empty: nothing is.
inline std::string_view SealProblem(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains(kChecksumKey)) return "has no checksum";
  return IsWhole(document) ? "" : kNotWhole;
}

}  // namespace ridgeline

#endif  // RIDGELINE_SEALED_JSON_H_
