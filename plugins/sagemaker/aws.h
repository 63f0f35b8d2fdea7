// Calls of AWS's services: signed, repeated after failures that pass, and answered by JSON or text.
//
// An answer is read where it is received. One that cannot be read (a proxy's page, half an answer, a number where the
// service's description has text) is no answer: the call is repeated, and ends with Failure(kNotNow) if that goes on.
//
// Thread safety: use from one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/failure.h"
#include "sagemaker/http.h"
#include "sagemaker/signature.h"

namespace ridgeline::sagemaker {

// An answer that is final: other failures were repeated.
struct Answer {
  int64_t http_code = 0;
  std::string body;
  std::string code;     // of the error: "ValidationException"; empty: none
  std::string message;  // in the service's words
  bool ok() const { return http_code >= 200 && http_code < 300 && code.empty(); }
};

// An object's place in S3.
struct Place {
  std::string bucket, key;
};
// Splits "s3://bucket/some/key".
Place PlaceOf(const std::string& uri);

class Aws {
 public:
  struct Settings {
    std::string region;
    std::function<Credentials()> find_credentials;
    std::function<std::string(const std::string& variable)> variable;  // of the environment; empty: not set
    std::function<void(std::chrono::milliseconds)> sleep;              // replaced in tests
    std::chrono::milliseconds patience{10'000};                        // of one call, with its repetitions
  };

  Aws(std::unique_ptr<Http> http, const plugin::Clock& clock, Settings settings);

  // Takes what it needs of an answer. Throws JSON's exceptions if something is missing or of another type. It may be
  // called again with another answer to the same question, so it replaces what it took.
  using Take = std::function<void(const plugin::Json& document)>;

  // `operation`: "sagemaker:CreateTrainingJob". `take` gets the answer, unless that is an error, which is returned.
  // Throws Failure(kNotNow) if the service does not answer or has too much to do. Then it is not known whether the call
  // was carried out.
  Answer Call(const std::string& operation, const plugin::Json& request, const Take& take = {});
  // Throws Failure as Call does.
  Answer Put(const Place& place, const std::string& body, const std::map<std::string, std::string>& headers = {});
  Answer Get(const Place& place);
  // The keys below a prefix, at most `most`. Throws Failure if they cannot be read.
  std::vector<std::string> List(const Place& prefix, size_t most);
  // The ARN of the caller. Throws Failure if the service does not know us.
  std::string WhoAmI();

  // Makes a Failure of an answer that is not ok to the request to do `what` ("create training job x").
  static plugin::Failure ToFailure(const Answer& answer, const std::string& what);

  const std::string& region() const { return settings_.region; }
  // The service's time, from its last answer; until then this machine's.
  int64_t UnixS() const { return clock_.UnixS() + skew_s_; }

 private:
  struct Wish {
    std::string what;  // for messages
    std::string service, method, path;
    std::map<std::string, std::string> query, headers;
    std::string body;
    bool is_json = true;
    // Returns whether the answer, which is no error, is one of this service. May throw JSON's exceptions for "no".
    std::function<bool(const HttpResponse&)> take = {};
  };
  struct Endpoint {
    std::string url;   // "https://host", without a slash at the end
    std::string host;  // as in the header Host
  };

  const Endpoint& EndpointOf(const std::string& service);
  const Credentials& CredentialsNow();
  static std::optional<Answer> Read(const HttpResponse& response, const Wish& wish);
  HttpResponse SendOnce(const Wish& wish);
  Answer Send(const Wish& wish);
  void NoteTime(const HttpResponse& response);

  const std::unique_ptr<Http> http_;
  const plugin::Clock& clock_;
  const Settings settings_;
  std::map<std::string, Endpoint> endpoints_;
  std::optional<Credentials> credentials_;
  int64_t skew_s_ = 0;           // the service's time minus ours
  int tries_after_failure_ = 0;  // shared by all calls: a service that has too much to do is left alone by all
  std::minstd_rand random_;
};

}  // namespace ridgeline::sagemaker
