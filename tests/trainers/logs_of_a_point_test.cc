// The meaning of a log's lines if their point is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/spec.h"
#include "tests/trainers/posted_logs.h"
#include "trainers/run_result.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// If the point is known, so is the meaning of repeated lines: eight ranks whose buffers were written one after another,
// or a run that was restarted.
TEST(PostedLogs, ThePointTellsRanksFromRestarts) {
  const Trainer trainer =
      TrainerOf("  - {name: step_time, regex: 'step (?P<step>\\d+) (?P<value>\\S+) ms', unit: ms, take: series}\n");
  std::string rank;
  for (int step = 1; step <= 5; ++step) rank += "step " + std::to_string(step) + " 7 ms\n";
  ReadingOptions options;
  options.ranks = 2;
  options.steps = 5;
  EXPECT_THAT(ReadPosted(trainer, rank + rank, options).found.at(0).steps, ElementsAre(1, 2, 3, 4, 5));
  const Reading again = ReadPosted(trainer, "step 1 9 ms\nstep 2 9 ms\nstep 3 9 ms\n" + rank, options);
  EXPECT_THAT(again.found.at(0).values, ElementsAre(7e6, 7e6, 7e6, 7e6, 7e6));
  EXPECT_EQ(ReadPosted(trainer, rank + rank).found.at(0).values.size(), 10U) << "an epoch, for all that is known";
}

// An evaluation has its own bar, which counts from one.
TEST(PostedLogs, BarsOfOtherStepsThanThePointsAreNone) {
  const Trainer trainer = TrainerOf(kTqdm);
  ReadingOptions options;
  options.steps = 4;
  const std::string log =
      " 25%|##   | 1/4 [00:07<00:21,  7.00s/it]\r 50%|##   | 2/4 [00:14<00:14,  7.00s/it]\n{'loss': 2.5}\n"
      " 50%|##   | 1/2 [00:00<00:00,  9.00it/s]\r100%|##   | 2/2 [00:00<00:00,  9.00it/s]\n"
      " 75%|##   | 3/4 [00:21<00:07,  7.00s/it]\r100%|##   | 4/4 [00:28<00:00,  7.00s/it]\n";
  EXPECT_THAT(ReadPosted(trainer, log, options).found.at(0).values, ElementsAre(7e9, 7e9, 7e9, 7e9));
}

TEST(PostedLogs, LinesWithoutAStepAreHeldToThePointsSteps) {
  const auto read = [](const std::string& every, int64_t steps) {
    const Trainer trainer =
        TrainerOf("  - {name: step_time, regex: '^(?P<value>\\S+) loss', take: stamp, format: '%T'" + every + "}\n");
    ReadingOptions options = OptionsOfPosted();
    options.steps = steps;
    options.exit_code = 0;
    return ReadPosted(trainer, "10:00:00 loss\n10:00:10 loss\n10:00:20 loss\n", options);
  };
  EXPECT_THAT(read("", 3).found.at(0).values, ElementsAre(10e9, 10e9));
  EXPECT_THAT(read(", every: 5", 16).found.at(0).values, ElementsAre(2e9, 2e9));
  EXPECT_THAT(read(", every: 5", 16).found.at(0).steps, ElementsAre(10, 15));
  for (const Reading& reading : {read("", 15), read("", 2), read(", every: 5", 20)}) {
    EXPECT_THAT(reading.missing, ElementsAre("step_time"));
    EXPECT_THAT(reading.notes,
                ElementsAre(HasSubstr("3 lines match, which have no step and are not as many as the steps")));
  }
}

TEST(PostedLogs, TheResultHasTheDefinitionsFacts) {
  const Trainer trainer = TrainerOf(
      "  - {name: data_time, regex: 'data (\\S+)', unit: ms, take: series}\n"
      "  - {name: mfu, regex: 'mfu (\\S+)%', unit: '%', take: series}\n"
      "  - {name: tflops_per_gpu, regex: '(\\S+) GFLOP', unit: FLOP/s/GPU, times: 1000000000}\n"
      "  - {name: loss, regex: 'loss (\\S+)', take: series}\n");
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 3}}, problems);
  const Reading reading =
      ReadPosted(trainer, "data 9 mfu 1%\ndata 4 mfu 41%\ndata 5 mfu 40%\ndata 6 mfu 42%\n2 GFLOP\nloss -\n");
  const RunResult result = ResultOf(trainer, reading, spec);
  EXPECT_EQ(result.metrics.at("data_time").value, 5);
  EXPECT_EQ(result.metrics.at("data_time").unit, "ms");
  EXPECT_DOUBLE_EQ(result.printed.mfu.value(), 0.41);
  EXPECT_DOUBLE_EQ(result.printed.tflops_per_gpu.value(), 0.002);
  EXPECT_THAT(result.evidence.at("log_notes"), HasSubstr("loss: lines that match and have no number"));
}

// A line arrives with its last byte. Its end may come much later, as a bar's does.
TEST(PostedLogs, LinesAreTimedAsTheyArrive) {
  const Trainer trainer = TrainerOf("  - {name: step_time, regex: '\\| (?P<step>\\d+)/\\d+ \\[', take: arrival}\n");
  const std::string part = "\r 1%|#| 0/9 [00:00]";
  const auto at = [&](int lines) { return static_cast<int64_t>(part.size()) * lines; };
  std::string log;
  for (const int step : {0, 1, 2, 4, 5, 5}) {
    std::string line = part;
    line.replace(line.find("0/9"), 1, std::to_string(step));
    log += line;
  }
  Arrivals arrivals;
  arrivals.sizes = {{at(1), 1'000'000'000},
                    {at(2), 3'000'000'000},
                    {at(3), 4'000'000'000},
                    {at(5), 7'000'000'000},
                    {at(6), 9'000'000'000}};
  ReadingOptions options;
  options.arrivals = &arrivals;
  const Reading reading = ReadPosted(trainer, log, options);
  EXPECT_THAT(reading.found.at(0).values, ElementsAre(2e9, 1e9, 1.5e9)) << "4 and 5 came at once";
  EXPECT_THAT(reading.found[0].steps, ElementsAre(1, 2, 4));
  EXPECT_THAT(reading.found[0].covers, ElementsAre(1, 1, 2));
  EXPECT_THAT(ReadPosted(trainer, log, {}).notes, ElementsAre(HasSubstr("a log file has no arrival times")));
}

}  // namespace
}  // namespace ridgeline::trainers
