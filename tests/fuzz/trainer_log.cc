// A trainer's output may be any bytes. Reading it gives the same answer whatever the parts in which it comes.
#include "tests/fuzz/fuzz.h"

#include <algorithm>

#include "trainers/propose.h"
#include "trainers/reading.h"

namespace ridgeline::fuzz {
namespace {

const trainers::Trainer& Mine() {
  static const trainers::Trainer trainer = trainers::ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: loss, regex: 'step (?P<step>\\S+) loss (?P<value>\\S+)', take: series}\n"
      "  - {name: step_time, regex: 'time (\\S+) ms', unit: ms, take: median}\n"
      "  - {name: step_time, regex: '(\\S+) it/s', unit: it/s}\n"
      "  - {name: device_peak, regex: 'mem (\\S+) GiB', unit: GiB, take: max}\n"
      "  - {name: parameters, regex: '(\\S+) params', unit: M, take: sum}\n"
      "  - {name: version, regex: 'v(\\S+)'}\n"
      "  - {name: step_time, regex: '^(?P<value>\\S+) r(?P<rank>\\S*)', take: stamp, format: '%b %d %T.%f'}\n"
      "  - {name: step_time, regex: '^(?P<value>\\S+) at (?P<step>\\d+)', take: stamp, format: '%H:%M:%S'}\n"
      "  - {name: tokens_per_s, json: /rate, step: /step, rank: /rank, unit: samples/s, take: series}\n"
      "  - {name: data_time, regex: 'data (?P<value>\\S+?)(?P<unit>[a-z]+)', unit: ms, take: series}\n"
      "  - {name: flops_per_step, regex: 'rank (?P<rank>\\d+) (?P<step>\\d+) (?P<value>\\S+)', take: sum}\n",
      "mine.yaml");
  return trainer;
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const std::string_view log = fuzz::TextOf(data, size);
  const trainers::Reading whole = trainers::ReadLog(fuzz::Mine(), [&](const auto& feed) { feed(log); }, {});
  const trainers::Reading parts = trainers::ReadLog(fuzz::Mine(),
                                                    [&](const auto& feed) {
                                                      for (size_t at = 0; at < log.size(); at += 3)
                                                        feed(log.substr(at, 3));
                                                    },
                                                    {});
  fuzz::Require(whole.lines == parts.lines && whole.missing == parts.missing &&
                    whole.found.size() == parts.found.size() && whole.end.has_value() == parts.end.has_value(),
                "a log's parts make no difference");
  for (const trainers::FoundMetric& found : whole.found) {
    fuzz::Require(found.steps.empty() || found.steps.size() == found.values.size(), "a step has its value");
    fuzz::Require(found.first_line <= found.last_line && found.last_line <= whole.lines, "lines are those of the log");
  }
  const Json sent = trainers::EncodeReading(fuzz::Mine(), whole);
  fuzz::Require(
      DumpJson(trainers::EncodeReading(
          fuzz::Mine(), trainers::DecodeReading(fuzz::Mine(), ParseJson(DumpJson(sent), "it")))) == DumpJson(sent),
      "a reading goes through JSON unchanged");
  trainers::MergeReadings(fuzz::Mine(), whole, parts, {});
  const trainers::Proposal proposal = trainers::ProposeMetrics([&](const auto& feed) { feed(log); }, {});
  const auto counts = [](const trainers::ProposedMetric& metric) { return metric.question.empty(); };
  if (std::ranges::any_of(proposal.metrics, counts)) {
    trainers::ParseTrainer(trainers::DefinitionText("mine", "a log", proposal, {}),
                           "mine.yaml");  // throws if it cannot be read
  }
  if (whole.end) fuzz::Require(whole.end->line >= 1 && whole.end->line <= whole.lines, "an end has its line");
  return 0;
}
