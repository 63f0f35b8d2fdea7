// Readings of several logs of one run, merged into one, and as JSON.
#include "trainers/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "run/result.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Trainer& MergeTrainer() {
  static const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'step (?P<step>\\d+) took (?P<value>\\S+) ms', unit: ms, take: series}\n"
      "  - {name: step_time, regex: 'mean (\\S+) ms', unit: ms}\n"
      "  - {name: loss, regex: 'step (?P<step>\\d+) .*loss (?P<value>\\S+)', take: series}\n"
      "  - {name: tokens_per_s, regex: 'rate (\\S+)', unit: tokens/s, take: series}\n"
      "  - {name: device_peak, regex: 'mem (\\S+) MB', unit: MB, take: max}\n"
      "  - {name: parameters, regex: '(\\d+) parameters', take: sum}\n"
      "  - {name: version, regex: 'v(\\S+)'}\n",
      "mine.yaml");
  return trainer;
}

Reading ReadOne(const std::string& log) {
  return ReadLog(MergeTrainer(), [&](const auto& feed) { feed(log); }, {});
}

Reading Merge(const std::string& first, const std::string& other, const ReadingOptions& options = {}) {
  return MergeReadings(MergeTrainer(), ReadOne(first), ReadOne(other), options);
}

const FoundMetric& Of(const Reading& reading, std::string_view name) {
  for (const FoundMetric& found : reading.found) {
    if (found.metric->figure->name == name) return found;
  }
  throw std::string(name) + " is not found";
}

TEST(MergeReadings, FiguresThatOneLogLacksComeFromTheOther) {
  const Reading reading = Merge("v1.2\nmem 5 MB\n", "step 1 took 5 ms loss 2\nstep 2 took 4 ms loss 1\n");
  EXPECT_THAT(Of(reading, "step_time").values, ElementsAre(5e6, 4e6));
  EXPECT_THAT(Of(reading, "device_peak").values, ElementsAre(5e6));
  EXPECT_EQ(Of(reading, "version").text, "1.2");
  EXPECT_THAT(reading.missing, ElementsAre("tokens_per_s", "parameters"));
  EXPECT_EQ(reading.lines, 4);
}

TEST(MergeReadings, EachStepHasTheSlowestTimeTheLowestRateAndTheFirstLoss) {
  const Reading reading = Merge("step 1 took 5 ms loss 2\nstep 2 took 4 ms loss 1\nrate 7\nrate 9\nmem 1 MB\n",
                                "step 2 took 6 ms loss 8\nstep 3 took 3 ms loss 7\nrate 8\nrate 8\nmem 2 MB\n");
  EXPECT_THAT(Of(reading, "step_time").steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(Of(reading, "step_time").values, ElementsAre(5e6, 6e6, 3e6));
  EXPECT_THAT(Of(reading, "loss").values, ElementsAre(2, 1, 7));
  EXPECT_THAT(Of(reading, "tokens_per_s").values, ElementsAre(7, 8));
  EXPECT_THAT(Of(reading, "device_peak").values, ElementsAre(2e6));
}

TEST(MergeReadings, SumsAreAdded) {
  EXPECT_THAT(Of(Merge("5 parameters\n", "5 parameters\n7 parameters\n"), "parameters").values, ElementsAre(17));
}

TEST(MergeReadings, AmongMetricsOfOneNameTheFirstOfTheDefinitionCounts) {
  const Reading reading = Merge("mean 9 ms\n", "step 1 took 5 ms\n");
  EXPECT_EQ(Of(reading, "step_time").metric, MergeTrainer().metrics.data());
  EXPECT_EQ(Of(Merge("step 1 took 5 ms\n", "mean 9 ms\n"), "step_time").metric, MergeTrainer().metrics.data());
}

TEST(MergeReadings, ContradictionsAreOfAllLogs) {
  ReadingOptions options;
  options.tokens_per_step = 1000;
  EXPECT_THAT(Merge("step 1 took 2000 ms\n", "rate 1000\n", options).contradictions,
              ElementsAre(HasSubstr("tokens_per_s is 1.00K")));
}

TEST(Reading, GoesThroughJsonUnchanged) {
  const Reading reading =
      ReadOne("v1\nstep 1 took 5 ms loss 2\nstep 2 took 4 ms loss nan\nmem 3 MB\nCUDA out of memory\n");
  const std::string text = DumpJson(EncodeReading(MergeTrainer(), reading));
  const Reading back = DecodeReading(MergeTrainer(), ParseJson(text, "it"));
  EXPECT_EQ(DumpJson(EncodeReading(MergeTrainer(), back)), text);
  EXPECT_TRUE(std::isnan(Of(back, "loss").values.at(1)));
  EXPECT_EQ(back.end.value().end, reading.end.value().end);
  EXPECT_EQ(back.missing, reading.missing);
}

// A metric with one value as its median also keeps all values, with their steps.
TEST(Reading, AReadingWithOneTakenValueGoesThroughJson) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'step (?P<step>\\d+) took (?P<value>\\S+) ms', unit: ms, take: median}\n",
      "mine.yaml");
  const Reading reading =
      ReadLog(trainer, [](const auto& feed) { feed("step 1 took 5 ms\nstep 2 took 4 ms\nstep 3 took 3 ms\n"); }, {});
  const Reading back = DecodeReading(trainer, EncodeReading(trainer, reading));
  EXPECT_THAT(back.found.at(0).values, ElementsAre(4e6));
  EXPECT_THAT(back.found[0].all, ElementsAre(5e6, 4e6, 3e6));
  EXPECT_THAT(back.found[0].steps, ElementsAre(1, 2, 3));
}

TEST(Reading, RefusesJsonThatIsNoReading) {
  const Json good = EncodeReading(MergeTrainer(), ReadOne("step 1 took 5 ms\n"));
  EXPECT_NO_THROW(DecodeReading(MergeTrainer(), good));
  const auto refused = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    EXPECT_THROW(DecodeReading(MergeTrainer(), bad), Error) << pointer;
  };
  refused("/found/0/metric", 99);
  refused("/found/0/metric", -1);
  refused("/found/0/values", Json::array());
  refused("/found/0/values", {"x"});
  refused("/found/0/steps", {1, 2});
  refused("/found", 3);
  refused("/end", {{"end", "never"}});
  refused("/lines", "many");
  EXPECT_THROW(DecodeReading(MergeTrainer(), Json()), Error);
  Json bad = good;
  bad.erase("lines");
  try {
    DecodeReading(MergeTrainer(), bad);
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(e.message().ends_with(" is malformed: 'lines' is missing")) << e.message();
  }
}

}  // namespace
}  // namespace ridgeline::trainers
