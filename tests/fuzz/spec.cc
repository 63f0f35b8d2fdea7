// A RunSpec, as a trainer gets one: read whole or refused. What is read is canonical: written and read again it is the
// same point.
#include "run/spec.h"

#include "base/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  fuzz::Takes([&] {
    const RunSpec spec = DecodeSpec(ParseJson(fuzz::TextOf(data, size), "spec.json"), "spec.json");
    const std::string text = EncodeSpec(spec);
    const RunSpec again = DecodeSpec(ParseJson(text, "what was written"), "what was written");
    fuzz::Require(EncodeSpec(again) == text, "a spec is read as written");
    fuzz::Require(PointId(again) == PointId(spec), "it is the same point");
  });
  return 0;
}
