// What all calls of a launcher use: JSON documents, and the exception for a call that failed.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace ridgeline::plugin {

using Json = nlohmann::json;

// The answer of a call that failed.
class Failure : public std::exception {
 public:
  enum class Kind {
    kUsage,
    kInvalidInput,
    kInfrastructure,
    kNotNow,  // infrastructure; asking again later may help
  };

  // `reason`: why the infrastructure keeps a job from being submitted (run.h); empty: `start`.
  Failure(Kind kind, std::string message, std::string hint = {}, std::string reason = {})
      : kind_(kind), message_(std::move(message)), hint_(std::move(hint)), reason_(std::move(reason)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Kind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }
  const std::string& reason() const { return reason_; }
  Json ToJson() const {
    const char* names[] = {"usage", "invalid_input", "infrastructure", "infrastructure"};
    Json document = {{"kind", names[static_cast<int>(kind_)]}, {"message", message_}, {"hint", hint_}};
    if (kind_ == Kind::kNotNow) document["retry"] = true;
    if (!reason_.empty()) document["reason"] = reason_;
    return document;
  }

 private:
  Kind kind_;
  std::string message_;
  std::string hint_;
  std::string reason_;
};

}  // namespace ridgeline::plugin
