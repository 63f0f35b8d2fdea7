#include "sagemaker/http.h"

#include <curl/curl.h>

#include <algorithm>

#include "common/failure.h"

namespace ridgeline::sagemaker {
namespace {

constexpr long kConnectTimeoutMs = 5'000;
constexpr long kTimeoutMs = 60'000;
constexpr long kSlowS = 15;  // an answer that does not come on for so long has failed

class CurlHttp final : public Http {
 public:
  CurlHttp() : easy_(::curl_easy_init()) {
    if (easy_ == nullptr) throw plugin::Failure(plugin::Failure::Kind::kInfrastructure, "libcurl cannot be used");
  }
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;
  ~CurlHttp() override { ::curl_easy_cleanup(easy_); }

  HttpResponse Send(const HttpRequest& request) override {
    ::curl_easy_reset(easy_);  // keeps connections
    HttpResponse response;
    Taking taking{&response.body, request.most_bytes};
    char error[CURL_ERROR_SIZE] = {};
    Set(CURLOPT_URL, request.url.c_str());
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    Set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
    Set(CURLOPT_LOW_SPEED_TIME, kSlowS);
    Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_ERRORBUFFER, error);
    Set(CURLOPT_WRITEFUNCTION, &Take);
    Set(CURLOPT_WRITEDATA, &taking);
    curl_slist* headers = ::curl_slist_append(nullptr, "Expect:");  // send the body without asking first
    for (const auto& [name, value] : request.headers) {
      headers = ::curl_slist_append(headers, (name + ": " + value).c_str());
    }
    Set(CURLOPT_HTTPHEADER, headers);
    if (request.method != "GET") {
      Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      Set(CURLOPT_POSTFIELDS, request.body.data());
    }
    const CURLcode result = ::curl_easy_perform(easy_);
    ::curl_slist_free_all(headers);
    if (result != CURLE_OK) {
      response.body.clear();
      response.problem = error[0] != '\0' ? error : ::curl_easy_strerror(result);
      return response;
    }
    long code = 0;
    ::curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
    response.code = code;
    response.date_unix_s = std::max<int64_t>(0, ::curl_getdate(Header("Date").c_str(), nullptr));
    response.error_type = Header("x-amzn-ErrorType");
    response.etag = Header("ETag");
    return response;
  }

 private:
  struct Taking {
    std::string* to;
    size_t most_bytes;
  };

  template <typename Value>
  void Set(CURLoption option, Value value) {
    ::curl_easy_setopt(easy_, option, value);
  }
  std::string Header(const char* name) const {
    curl_header* header = nullptr;
    if (::curl_easy_header(easy_, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return "";
    return header->value;
  }
  static size_t Take(const char* data, size_t size, size_t count, void* self) {
    auto& taking = *static_cast<Taking*>(self);
    if (taking.to->size() + size * count > taking.most_bytes) return 0;
    taking.to->append(data, size * count);
    return size * count;
  }

  CURL* easy_;
};

}  // namespace

std::unique_ptr<Http> MakeHttp() {
  static const CURLcode kReady = ::curl_global_init(CURL_GLOBAL_ALL);
  if (kReady != CURLE_OK) throw plugin::Failure(plugin::Failure::Kind::kInfrastructure, "libcurl cannot be used");
  return std::make_unique<CurlHttp>();
}

}  // namespace ridgeline::sagemaker
