#include "kubernetes/cluster.h"
#include "ridgeline/json_fault.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr std::chrono::seconds kAfterOutage{60};
constexpr int64_t kTooManyRequests = 429;
constexpr int64_t kMostRetryAfterS = 300;
constexpr const char* kNamespaceHint = "set namespace: to an existing one; `kubectl create namespace NAME` creates it";

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

Resource ResourceOf(const Json& object) {
  Resource resource;
  const auto version = object.at("apiVersion").get<std::string>();
  if (const size_t slash = version.find('/'); slash != std::string::npos) resource.group = version.substr(0, slash);
  for (const char c : object.at("kind").get<std::string>()) {
    resource.plural += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  resource.plural += 's';
  return resource;
}

std::string Cluster::PathOf(const Json& object) const {
  const Resource resource = ResourceOf(object);
  if (resource.group.empty()) return CorePath(resource.plural);
  return fmt::format("/apis/{}/namespaces/{}/{}", object.at("apiVersion").get<std::string>(), name_space(),
                     resource.plural);
}

std::vector<Response> Cluster::CallAll(const std::vector<Request>& requests) {
  if (requests.empty()) return {};
  ThrowIfLeftAlone();
  std::vector<Response> responses = AskAll(requests);
  for (const Response& response : responses) NoteTimes(response);
  return responses;
}

std::unique_ptr<Stream> Cluster::Open(const std::string& path) {
  ThrowIfLeftAlone();
  return OpenStream(path);
}

int64_t Cluster::UnixS() const {
  if (date_unix_s_ == 0) return clock_.UnixS();
  return date_unix_s_ + std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - date_at_).count();
}

void Cluster::NoteTimes(const Response& response) {
  const plugin::Clock::Time now = clock_.Now();
  if (response.date_unix_s > 0) {
    date_unix_s_ = response.date_unix_s;
    date_at_ = now;
  }
  if (response.retry_after_s <= 0 || response.ok()) return;
  const std::chrono::seconds pause(std::min(response.retry_after_s, kMostRetryAfterS));
  left_alone_until_ = std::max(left_alone_until_, now + pause);
}

void Cluster::ThrowIfLeftAlone() const {
  if (clock_.Now() >= left_alone_until_) return;
  throw Failure(Failure::Kind::kNotNow, "the API server has too much to do, and is left alone for as long as it says");
}

Failure Cluster::ToFailure(const Response& response, const std::string& what) {
  NoteTimes(response);
  const std::string message = fmt::format("cannot {}: {}", what, response.Message());
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  switch (response.code) {
    case kUnauthorized:
      LogInAgain();
      return {Failure::Kind::kInfrastructure, message,
              fmt::format("the cluster does not know you: log in until `kubectl get {}` works", kind_.plural)};
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

}  // namespace ridgeline::kubernetes
