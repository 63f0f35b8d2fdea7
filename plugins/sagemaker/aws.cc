#include "sagemaker/aws.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "common/url.h"
#include "sagemaker/parse.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;
using std::chrono::milliseconds;

constexpr int64_t kRenewBeforeS = 300;  // credentials are renewed so long before they expire
constexpr int64_t kMostSkewS = 240;     // a signature holds for 15 minutes either way
constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{5'000};
constexpr size_t kMostMessageBytes = 1000;

bool IsExpired(const std::string& code) {
  return code.starts_with("ExpiredToken") || code == "TokenRefreshRequired" || code == "RequestExpired";
}

bool IsOfClock(const Answer& answer) {
  return answer.code == "RequestTimeTooSkewed" ||
         (answer.code.starts_with("InvalidSignature") &&
          (Holds(answer.message, "15 min") || Holds(answer.message, "expired") ||
           Holds(answer.message, "not yet current")));
}

bool IsThrottling(const std::string& code) {
  return Holds(code, "Throttl") || code == "SlowDown" || code == "TooManyRequestsException" ||
         code == "RequestLimitExceeded" || code == "LimitExceededException";
}

// The text between <name> and </name>, from `from` on. Moves `from` behind it.
std::optional<std::string> Element(const std::string& xml, const std::string& name, size_t& from) {
  const std::string open = "<" + name + ">";
  const size_t begin = xml.find(open, from);
  if (begin == std::string::npos) return std::nullopt;
  const size_t end = xml.find("</" + name + ">", begin);
  if (end == std::string::npos) return std::nullopt;
  from = end;
  return xml.substr(begin + open.size(), end - begin - open.size());
}
std::string Element(const std::string& xml, const std::string& name) {
  size_t from = 0;
  return Element(xml, name, from).value_or("");
}

// The document of an answer. Some operations answer nothing.
Json DocumentOf(const HttpResponse& response) {
  return Json::parse(response.body.empty() ? "{}" : response.body, nullptr, false);
}

Answer ReadJsonError(const HttpResponse& response, const Json& document) {
  Answer answer{response.code, response.body, response.error_type, ""};
  if (const auto type = document.find("__type"); type != document.end()) type->get_to(answer.code);
  answer.code = answer.code.substr(answer.code.rfind('#') + 1);
  answer.code = answer.code.substr(0, answer.code.find(':'));
  for (const char* name : {"message", "Message"}) {
    if (const auto said = document.find(name); said != document.end() && !said->is_null()) {
      answer.message = plugin::OneLine(said->get<std::string>(), kMostMessageBytes);
    }
  }
  return answer;
}

// S3 gives the ETag of an object that it stores or returns.
bool IsOfS3(const HttpResponse& response) { return !response.etag.empty(); }

bool IsOfThisMachine(std::string_view host) {
  const std::string_view name = host.substr(0, host.rfind(':'));
  return name == "localhost" || name.starts_with("127.") || name == "[::1]";
}

}  // namespace

Place PlaceOf(const std::string& uri) {
  constexpr std::string_view kScheme = "s3://";
  const std::string rest = uri.substr(std::min(kScheme.size(), uri.size()));
  const size_t slash = std::min(rest.find('/'), rest.size());
  return {rest.substr(0, slash), rest.substr(std::min(slash + 1, rest.size()))};
}

Aws::Aws(std::unique_ptr<Http> http, const plugin::Clock& clock, Settings settings)
    : http_(std::move(http)), clock_(clock), settings_(std::move(settings)), random_(std::random_device()()) {}

const Aws::Endpoint& Aws::EndpointOf(const std::string& service) {
  if (const auto known = endpoints_.find(service); known != endpoints_.end()) return known->second;
  const std::map<std::string, std::pair<const char*, const char*>> names = {
      {"sagemaker", {"AWS_ENDPOINT_URL_SAGEMAKER", "api.sagemaker"}},
      {"logs", {"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "logs"}},
      {"s3", {"AWS_ENDPOINT_URL_S3", "s3"}},
      {"sts", {"AWS_ENDPOINT_URL_STS", "sts"}}};
  const auto& [variable, name] = names.at(service);
  const bool china = settings_.region.starts_with("cn-");
  std::string url = settings_.variable(variable);
  if (url.empty()) url = settings_.variable("AWS_ENDPOINT_URL");
  if (url.empty()) {
    url = fmt::format("https://{}.{}.amazonaws.com{}", name, settings_.region, china ? ".cn" : "");
  }
  while (url.ends_with('/')) url.pop_back();
  const size_t scheme = url.find("://");
  const std::string host = scheme == std::string::npos ? "" : url.substr(scheme + 3);
  const bool secure = url.starts_with("https://");
  // Without TLS, everybody on the way would read the token.
  if (host.empty() || Holds(host, "/") || (!secure && !(url.starts_with("http://") && IsOfThisMachine(host)))) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("the endpoint of {} is {}, and cannot be used", service, url),
                  fmt::format("set {} to https://HOST, without a path", variable));
  }
  return endpoints_[service] = {url, host};
}

const Credentials& Aws::CredentialsNow() {
  const bool expires =
      credentials_ && credentials_->expires_unix_s > 0 && credentials_->expires_unix_s - UnixS() < kRenewBeforeS;
  if (!credentials_ || expires) credentials_ = settings_.find_credentials();
  return *credentials_;
}

// Nothing if the answer is not one of the service.
std::optional<Answer> Aws::Read(const HttpResponse& response, const Wish& wish) {
  if (response.code == 0) return std::nullopt;
  try {
    const Json document = wish.is_json ? DocumentOf(response) : Json::object();
    if (!document.is_object()) return std::nullopt;
    if (response.code >= 200 && response.code < 300) {
      if (wish.take && !wish.take(response)) return std::nullopt;
      return Answer{response.code, response.body, "", ""};
    }
    Answer answer = wish.is_json ? ReadJsonError(response, document)
                                 : Answer{response.code, response.body,
                                          plugin::OneLine(Element(response.body, "Code"), kMostMessageBytes),
                                          plugin::OneLine(Element(response.body, "Message"), kMostMessageBytes)};
    if (answer.code.empty()) return std::nullopt;
    return answer;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

HttpResponse Aws::SendOnce(const Wish& wish) {
  const Endpoint& endpoint = EndpointOf(wish.service);
  HttpRequest request;
  request.method = wish.method;
  request.url = endpoint.url + wish.path;
  if (const std::string query = EncodeQuery(wish.query); !query.empty()) request.url += "?" + query;
  request.headers = Sign({wish.method, endpoint.host, wish.path, wish.query, wish.headers, wish.body},
                         {wish.service, settings_.region}, CredentialsNow(), UnixS());
  request.body = wish.body;
  return http_->Send(request);
}

// A clock that is wrong by more than a signature bears is corrected by the service's.
void Aws::NoteTime(const HttpResponse& response) {
  if (response.date_unix_s == 0) return;
  const int64_t skew_s = response.date_unix_s - clock_.UnixS();
  if (std::abs(skew_s - skew_s_) > kMostSkewS) skew_s_ = skew_s;
}

Answer Aws::Send(const Wish& wish) {
  const plugin::Clock::Time begin = clock_.Now();
  bool renewed = false;
  bool set_clock = false;
  std::string why;
  for (;;) {
    const HttpResponse response = SendOnce(wish);
    if (std::optional<Answer> answer = Read(response, wish)) {
      if (IsOfClock(*answer) && !std::exchange(set_clock, true)) {
        NoteTime(response);
        continue;
      }
      if (IsExpired(answer->code) && !std::exchange(renewed, true)) {
        credentials_.reset();
        continue;
      }
      const bool passes = response.code >= 500 || response.code == 429 || IsThrottling(answer->code);
      if (!passes) {
        tries_after_failure_ = 0;
        return *std::move(answer);
      }
      why = fmt::format("{}: {}", answer->code, answer->message);
    } else {
      why =
          response.code != 0 ? fmt::format("the answer (HTTP {}) is not one of AWS", response.code) : response.problem;
    }
    const milliseconds most = std::min(kLongestPause, kFirstPause * (1 << std::min(tries_after_failure_, 5)));
    ++tries_after_failure_;
    const milliseconds pause(std::uniform_int_distribution<int64_t>(most.count() / 2, most.count())(random_));
    if (clock_.Now() - begin + pause > settings_.patience) {
      throw Failure(Failure::Kind::kNotNow, fmt::format("cannot {}: {}", wish.what, why));
    }
    settings_.sleep(pause);
  }
}

Answer Aws::Call(const std::string& operation, const Json& request, const Take& take) {
  const size_t colon = operation.find(':');
  const std::string service = operation.substr(0, colon);
  const std::string prefix = service == "logs" ? "Logs_20140328." : "SageMaker.";
  return Send({operation.substr(colon + 1),
               service,
               "POST",
               "/",
               {},
               {{"content-type", "application/x-amz-json-1.1"}, {"x-amz-target", prefix + operation.substr(colon + 1)}},
               request.dump(-1, ' ', false, Json::error_handler_t::replace),
               true,
               [&take](const HttpResponse& response) {
                 if (take) take(DocumentOf(response));
                 return true;
               }});
}

Answer Aws::Put(const Place& place, const std::string& body, const std::map<std::string, std::string>& headers) {
  std::map<std::string, std::string> all = headers;
  all["content-type"] = "application/octet-stream";
  return Send({fmt::format("put s3://{}/{}", place.bucket, place.key),
               "s3",
               "PUT",
               plugin::UrlEncode("/" + place.bucket + "/" + place.key, "/"),
               {},
               std::move(all),
               body,
               false,
               IsOfS3});
}

Answer Aws::Get(const Place& place) {
  return Send({fmt::format("get s3://{}/{}", place.bucket, place.key),
               "s3",
               "GET",
               plugin::UrlEncode("/" + place.bucket + "/" + place.key, "/"),
               {},
               {},
               "",
               false,
               IsOfS3});
}

std::vector<std::string> Aws::List(const Place& prefix, size_t most) {
  std::vector<std::string> keys;
  for (;;) {
    std::map<std::string, std::string> query = {{"list-type", "2"}, {"prefix", prefix.key}};
    // The next page begins after a key, since libraries disagree on how to sign a token.
    if (!keys.empty()) query["start-after"] = keys.back();
    const std::string what = fmt::format("list s3://{}/{}", prefix.bucket, prefix.key);
    const Answer answer =
        Send({what,
              "s3",
              "GET",
              plugin::UrlEncode("/" + prefix.bucket, "/"),
              query,
              {},
              "",
              false,
              [](const HttpResponse& response) {
                return Holds(response.body, "<ListBucketResult") && Holds(response.body, "</ListBucketResult>");
              }});
    if (!answer.ok()) throw ToFailure(answer, what);
    const size_t had = keys.size();
    size_t from = 0;
    while (keys.size() < most) {
      std::optional<std::string> key = Element(answer.body, "Key", from);
      if (!key) break;
      keys.push_back(*std::move(key));
    }
    if (Element(answer.body, "IsTruncated") != "true" || keys.size() == had || keys.size() >= most) return keys;
  }
}

std::string Aws::WhoAmI() {
  const Answer answer = Send({"ask who we are",
                              "sts",
                              "POST",
                              "/",
                              {},
                              {{"content-type", "application/x-www-form-urlencoded"}},
                              "Action=GetCallerIdentity&Version=2011-06-15",
                              false,
                              [](const HttpResponse& response) { return !Element(response.body, "Arn").empty(); }});
  if (!answer.ok()) throw ToFailure(answer, "ask AWS who we are");
  return plugin::OneLine(Element(answer.body, "Arn"), kMostMessageBytes);
}

Failure Aws::ToFailure(const Answer& answer, const std::string& what) {
  const std::string message = fmt::format("cannot {}: {}: {}", what, answer.code, answer.message);
  const auto is = [&](std::string_view words) { return Holds(answer.code, words); };
  if (IsExpired(answer.code)) {
    return {Failure::Kind::kNotNow, message, "log in again; jobs go on meanwhile, and the same command finds them"};
  }
  if (is("AccessDenied") || is("NotAuthorized") || is("OptInRequired")) {
    return {Failure::Kind::kInfrastructure, message, "the rights that are needed are in docs/sagemaker.md", "rights"};
  }
  if (is("UnrecognizedClient") || is("InvalidClientTokenId") || is("InvalidAccessKeyId") || is("InvalidToken") ||
      is("Signature") || is("MissingAuthentication") || is("AuthorizationHeaderMalformed")) {
    return {Failure::Kind::kInfrastructure, message, "`aws sts get-caller-identity` must work here, in this region",
            "rights"};
  }
  if (is("NoSuchBucket")) {
    return {Failure::Kind::kInfrastructure, message, "output: names a bucket that exists in this region", "rights"};
  }
  if (is("ResourceLimitExceeded")) {
    return {Failure::Kind::kNotNow, message, "it goes on when jobs of the account end; or have the quota raised"};
  }
  return {Failure::Kind::kInvalidInput, message};
}

}  // namespace ridgeline::sagemaker
