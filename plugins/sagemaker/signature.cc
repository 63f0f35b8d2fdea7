#include "sagemaker/signature.h"

#include <sodium.h>

#include <array>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "common/url.h"

namespace ridgeline::sagemaker {
namespace {

using Digest = std::array<unsigned char, crypto_auth_hmacsha256_BYTES>;

std::string Hex(const Digest& digest) {
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string_view View(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

Digest Hmac(std::string_view key, std::string_view text) {
  crypto_auth_hmacsha256_state state;
  Digest digest;
  crypto_auth_hmacsha256_init(&state, Bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, Bytes(text), text.size());
  crypto_auth_hmacsha256_final(&state, digest.data());
  return digest;
}

}  // namespace

std::string Sha256Hex(std::string_view text) {
  static_assert(crypto_hash_sha256_BYTES == crypto_auth_hmacsha256_BYTES);
  Digest digest;
  crypto_hash_sha256(digest.data(), Bytes(text), text.size());
  return Hex(digest);
}

std::string EncodeQuery(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", plugin::UrlEncode(name), plugin::UrlEncode(value));
  }
  return text;
}

std::map<std::string, std::string> Sign(const ToSign& request, const Target& target, const Credentials& credentials,
                                        int64_t unix_s) {
  const std::string time = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
  const std::string day = time.substr(0, 8);
  const std::string body_hash = Sha256Hex(request.body);
  std::map<std::string, std::string> headers = request.headers;
  headers["x-amz-date"] = time;
  if (!credentials.token.empty()) headers["x-amz-security-token"] = credentials.token;
  if (target.service == "s3") headers["x-amz-content-sha256"] = body_hash;

  std::map<std::string, std::string> signed_headers = headers;
  signed_headers["host"] = request.host;
  std::string lines, names;
  for (const auto& [name, value] : signed_headers) {
    lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                            EncodeQuery(request.query), lines, names, body_hash);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, target.region, target.service);
  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, Sha256Hex(canonical));
  Digest key = Hmac("AWS4" + credentials.secret, day);
  for (const std::string_view word :
       {std::string_view(target.region), std::string_view(target.service), std::string_view("aws4_request")}) {
    key = Hmac(View(key), word);
  }
  headers["authorization"] = fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                         credentials.key_id, scope, names, Hex(Hmac(View(key), text)));
  return headers;
}

}  // namespace ridgeline::sagemaker
