// Objects of Kubernetes' API server: a job's object of each kind and a Pod are accepted, or refused with an exception
// of the JSON library. Invalid times and quantities are told apart from valid ones.
#include "kubernetes/parse.h"

#include <cmath>

#include "kubernetes/quantity.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline::kubernetes;  // NOLINT(google-build-using-namespace): a program of one function
  namespace fuzz = ridgeline::fuzz;
  const std::string text(fuzz::TextOf(data, size));
  ParseTime(text);
  if (const auto quantity = ParseQuantity(text)) fuzz::Require(std::isfinite(*quantity), "a quantity is a number");
  try {
    const ridgeline::plugin::Json object = ridgeline::plugin::Json::parse(text);
    for (const Kind& kind : Kinds()) {
      const PodView pod = ParsePod(object, kind);
      HasEnded(pod, 1'800'000'000);
      ParseJob(object, kind);
    }
  } catch (const ridgeline::plugin::Json::exception&) {
    // The text is not such an object.
  }
  return 0;
}
