// Pods report their parts of a point in lines, which may be any bytes. The parts give a normal result, or that of the
// first node only.
#include "trainers/node_part.h"

#include <vector>

#include "run/result.h"
#include "run/spec.h"
#include "tests/fuzz/fuzz.h"

namespace ridgeline::fuzz {
namespace {

// The first node's part, with a definition and a spec. The fuzzer makes the second node's.
std::string FirstPart() {
  trainers::NodePart part;
  part.name = "n0";
  part.end.status = RunStatus::kOk;
  part.reading.emplace().end = trainers::LogEnd{RunStatus::kOk, "", "", 0};
  const char* definition =
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'time (\\S+) ms', unit: ms, take: series}\n"
      "  - {name: loss, regex: 'loss (\\S+)', take: series}\n";
  const trainers::Trainer trainer = trainers::ParseTrainer(definition, "mine.yaml");
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"ranks", 2}, {"trainer", "mine"}}, problems);
  return trainers::EncodePart(&trainer, part, kMaxPartBytes, &spec, definition);
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const std::string first_part = fuzz::FirstPart();
  RunResult first;
  first.evidence = {{kNodesEvidence, "2"}, {trainers::kAwaitsNodesEvidence, "yes"}};
  const std::string said(fuzz::TextOf(data, size));
  for (const std::vector<std::string>& payloads :
       {std::vector<std::string>{said}, std::vector<std::string>{first_part, said}}) {
    const auto whole = trainers::CompleteResult(first, payloads, /*last=*/true);
    fuzz::Require(whole && !trainers::AwaitsNodes(*whole), "the last part completes the result");
    fuzz::Require(fuzz::Takes([&] { DecodeResult(EncodeResult(*whole), "it"); }), "the result is a normal one");
  }
  return 0;
}
