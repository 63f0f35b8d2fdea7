// What all calls of a launcher use: JSON documents, and the exception for a call that failed.
#pragma once

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ridgeline::plugin {

using Json = nlohmann::json;

// The answer of a call that failed.
class Failure : public Error {
 public:
  enum class Kind {
    kUsage,
    kInvalidInput,
    kInfrastructure,
    kNotNow,  // infrastructure; asking again later may help
  };

  // `reason`: why the infrastructure keeps a job from being submitted (run.h); empty: `start`.
  Failure(Kind kind, std::string message, std::string hint = {}, std::string reason = {})
      : Error(OfBase(kind), std::move(message), std::move(hint)), kind_(kind), reason_(std::move(reason)) {}

  // The failure that an error of src/base means.
  static Failure Of(const Error& error) {
    if (const auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
    const bool is_ours = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kInvalidInput;
    return {is_ours ? Kind::kInvalidInput : Kind::kInfrastructure, error.message(), error.hint()};
  }

  const char* what() const noexcept override { return message().c_str(); }
  Kind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  Json ToJson() const {
    const char* names[] = {"usage", "invalid_input", "infrastructure", "infrastructure"};
    Json document = {{"kind", names[static_cast<int>(kind_)]}, {"message", message()}, {"hint", hint()}};
    if (kind_ == Kind::kNotNow) document["retry"] = true;
    if (!reason_.empty()) document["reason"] = reason_;
    return document;
  }

 private:
  static ErrorKind OfBase(Kind kind) {
    if (kind == Kind::kUsage) return ErrorKind::kUsage;
    return kind == Kind::kInvalidInput ? ErrorKind::kInvalidInput : ErrorKind::kInfrastructure;
  }

  Kind kind_;
  std::string reason_;
};

}  // namespace ridgeline::plugin
