// A trainer's RunSpec is read whole or refused. A spec that was read is canonical: written and read again, it is the
// same point. The same holds for a job's file, which a job may have changed, and for its points.
#include "run/spec.h"

#include "base/json.h"
#include "run/job.h"
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
  fuzz::Takes([&] {
    const std::string text = JobText(DecodeJob(ParseJson(fuzz::TextOf(data, size), "job.json"), "job.json"));
    const Job again = DecodeJob(ParseJson(text, "what was written"), "what was written");
    fuzz::Require(JobText(again) == text, "a job is read as written");
    fuzz::Require(again.nodes >= 1 && again.cpus >= 0 && again.memory_limit_bytes >= 0, "numbers have bounds");
  });
  return 0;
}
