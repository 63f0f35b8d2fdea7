// HTTP to AWS's services. Certificates are checked, and redirections are not followed.
//
// Thread safety: use from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ridgeline::sagemaker {

struct HttpRequest {
  std::string method;
  std::string url;
  std::map<std::string, std::string> headers;
  std::string body;
  size_t most_bytes = size_t{64} << 20;  // of the answer; a longer one is no answer
};

struct HttpResponse {
  int64_t code = 0;  // 0: no answer
  std::string body;
  std::string problem;      // why there was no answer
  int64_t date_unix_s = 0;  // the service's time; 0: not given
  std::string error_type;   // the header x-amzn-ErrorType
  std::string etag = {};    // the header ETag
};

class Http {
 public:
  virtual ~Http() = default;
  virtual HttpResponse Send(const HttpRequest& request) = 0;
};

// Sends by libcurl, and keeps connections open. Throws Failure if libcurl cannot be used.
std::unique_ptr<Http> MakeHttp();

}  // namespace ridgeline::sagemaker
