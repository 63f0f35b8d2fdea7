// AWS's Signature Version 4, made with libsodium's SHA-256 and HMAC. Pure.
//
// libcurl can sign, too. It does not do so here for two reasons. Its releases of Debian 12 and 13 disagree on paths and
// queries of S3. And it takes this machine's clock, while a signature must be within 15 minutes of the service's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ridgeline::sagemaker {

struct Credentials {
  std::string key_id, secret;
  std::string token;           // of temporary credentials; else empty
  int64_t expires_unix_s = 0;  // 0: not known, or never
};

// Where a request goes.
struct Target {
  std::string service;  // "sagemaker", as signatures name it
  std::string region;
};

struct ToSign {
  std::string method;                          // "POST"
  std::string host;                            // as in the header Host, with its port
  std::string path;                            // encoded once
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // by lower-case name, without host and those that Sign adds
  std::string_view body;
};

std::string Sha256Hex(std::string_view text);

// Encodes the query as it is signed and sent: "list-type=2&prefix=a%2Fb".
std::string EncodeQuery(const std::map<std::string, std::string>& query);

// Returns all headers to send except Host: those of the request, x-amz-date, x-amz-security-token for temporary
// credentials, x-amz-content-sha256 for S3, and authorization.
std::map<std::string, std::string> Sign(const ToSign& request, const Target& target, const Credentials& credentials,
                                        int64_t unix_s);

}  // namespace ridgeline::sagemaker
