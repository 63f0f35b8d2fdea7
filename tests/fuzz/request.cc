// A request's line and headers, as anybody sends them to `ridgeline serve`: what is kept of them is a request of ours,
// no longer than it was, and kept again is the same.
#include <string>

#include "serve/access.h"
#include "serve/connection.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const std::string text(fuzz::TextOf(data, size));
  IsKnownHost(text, {});
  HasToken(text, "0123456789abcdef");
  const auto kept = PlainHead(text);
  if (!kept) return 0;
  fuzz::Require(kept->ends_with("\r\n\r\n"), "what is kept has an end");
  fuzz::Require(kept->find('\0') == std::string::npos, "what is kept has no NUL");
  // HTTP/1.1, whatever version it was, and an empty line where there was none.
  fuzz::Require(kept->size() <= text.size() + 4, "what is kept does not grow");
  fuzz::Require(PlainHead(*kept) == kept, "what is kept is kept again");
  return 0;
}
