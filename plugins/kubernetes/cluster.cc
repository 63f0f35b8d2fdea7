#include "kubernetes/cluster.h"
#include "ridgeline/json_fault.h"

#include <cctype>
#include <chrono>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr std::chrono::seconds kAfterOutage{60};
constexpr int64_t kTooManyRequests = 429;
constexpr const char* kNamespaceHint = "namespace: names one that there is: `kubectl create namespace NAME` makes it";

}  // namespace

Json Response::Document() const {
  try {
    return Json::parse(body);
  } catch (const Json::exception& e) {
    throw Failure(Failure::Kind::kNotNow, fmt::format("an answer that is no JSON: {}", JsonFault(e)));
  }
}

std::string Response::Message() const {
  if (code == 0) return problem;
  const Json status = Json::parse(body, nullptr, false);
  std::string text = status.is_object() ? status.value("message", "") : body.substr(0, 200);
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.empty() ? fmt::format("HTTP {}", code) : text;
}

Failure Cluster::ToFailure(const Response& response, const std::string& what) {
  const std::string message = fmt::format("cannot {}: {}", what, response.Message());
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  switch (response.code) {
    case kUnauthorized:
      LogInAgain();
      return {Failure::Kind::kInfrastructure, message,
              "the cluster does not know you: log in, so that `kubectl get jobs` works"};
    case kForbidden:
      if (says("exceeded quota")) {
        return {Failure::Kind::kNotNow, message, "it goes on when Jobs of the namespace end; or have the quota raised"};
      }
      if (says("is being terminated")) return {Failure::Kind::kInfrastructure, message, kNamespaceHint, "rights"};
      if (last_outage_ && clock_.Now() - *last_outage_ < kAfterOutage) {
        return {Failure::Kind::kNotNow, message};
      }
      return {Failure::Kind::kInfrastructure, message,
              "the rights that are needed are in driver-role.yaml, which ships with Ridgeline "
              "(share/ridgeline/kubernetes); with them, run it again",
              "rights"};
    case kNotFound:
      return {Failure::Kind::kInfrastructure, message, kNamespaceHint, "rights"};
    case kTooManyRequests:
      return {Failure::Kind::kNotNow, message};
    default:
      break;
  }
  if (response.code >= 400 && response.code < 500) return {Failure::Kind::kInvalidInput, message};
  NoteOutage();
  return {Failure::Kind::kNotNow, message, "`kubectl get --raw /readyz` says whether the cluster is there"};
}

std::string UrlEncode(std::string_view text) {
  std::string encoded;
  for (const unsigned char c : text) {
    const bool plain = c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~');
    encoded += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return encoded;
}

}  // namespace ridgeline::kubernetes
