// A RunResult, from a trainer or as a line of a job's results, is read whole or refused. A result that is read, written
// and read again is the same, even with values that are not finite.
#include "run/result.h"

#include "base/json.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "tests/fuzz/fuzz.h"

namespace ridgeline::fuzz {
namespace {

const RunSpec& Spec() {
  static const RunSpec spec = [] {
    std::vector<Problem> problems;
    return BuildSpec({{"model", "llama-10m"}}, problems);
  }();
  return spec;
}

void ReadAgain(const RunResult& result) {
  const std::string text = DumpJson(EncodeResult(result));
  const RunResult again = DecodeResult(ParseJson(text, "what was written"), "what was written");
  Require(DumpJson(EncodeResult(again)) == text, "a result is read as written");
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const std::string_view text = fuzz::TextOf(data, size);
  fuzz::Takes([&] { fuzz::ReadAgain(ParseTrainerResult(text, fuzz::Spec(), "result.json")); });
  fuzz::Takes([&] { fuzz::ReadAgain(DecodeResult(ParseJson(text, "a line"), "a line")); });
  return 0;
}
