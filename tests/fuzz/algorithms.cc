// The file of the fastest algorithms is read whole or refused. A file that was read, written and read again is the
// same.
#include "engine/device/algorithm_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  fuzz::Takes([&] {
    const std::string text =
        engine::EncodeAlgorithms(engine::DecodeAlgorithms(fuzz::TextOf(data, size), "cublaslt.json"));
    fuzz::Require(engine::EncodeAlgorithms(engine::DecodeAlgorithms(text, "what was written")) == text,
                  "a choice is read as written");
  });
  return 0;
}
