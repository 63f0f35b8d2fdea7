// Anybody may send a request's line and headers to `ridgeline serve`. It keeps a plain request, which is no longer than
// the original, and does not change if it is parsed again.
#include <string>

#include "serve/access.h"
#include "serve/connection.h"
#include "serve/gzip.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const std::string text(fuzz::TextOf(data, size));
  serve::IsKnownHost(text, {});
  serve::HasToken(text, "0123456789abcdef");
  serve::AcceptsGzip(text);
  const auto asked = serve::ParsePlainRequest(text);
  if (!asked) return 0;
  fuzz::Require(asked->head.ends_with("\r\n\r\n"), "a kept request ends with an empty line");
  fuzz::Require(asked->head.find('\0') == std::string::npos, "a kept request has no NUL");
  fuzz::Require(asked->path().starts_with('/'), "a kept request asks for a path");
  // The kept request may be 8 bytes longer: it is HTTP/1.1 whatever the version was, gets an empty line if it had none,
  // and a header Host in place of a URL's host.
  fuzz::Require(asked->head.size() <= text.size() + 8, "a kept request grows by 8 bytes at most");
  const auto again = serve::ParsePlainRequest(asked->head);
  fuzz::Require(again && again->head == asked->head, "a kept request is kept again");
  return 0;
}
