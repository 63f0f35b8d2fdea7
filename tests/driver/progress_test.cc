#include "driver/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::driver {
namespace {

TEST(ParseProgress, ReadsOneWholeLine) {
  const auto progress = ParseProgress("4 17 1234.5\n");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 4);
  EXPECT_EQ(progress->steps, 17);
  EXPECT_EQ(progress->tokens_per_s, 1234.5);
  EXPECT_FALSE(progress->loss);
}

TEST(ParseProgress, ReadsALossWhereThereIsOne) {
  const auto progress = ParseProgress("4 17 1234.5 2.75      \n");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->loss, 2.75);
  const auto diverged = ParseProgress("4 17 1234.5 nan\n");
  ASSERT_TRUE(diverged) << "the steps are told all the same";
  EXPECT_FALSE(diverged->loss);
}

TEST(ParseProgress, TakesNothingElse) {
  for (const char* text : {"", "\n", "4 17", "4 17 12", "4 17 x\n", "x\n", "18 17 1\n", "-1 17 1\n", "4 0 1\n",
                           "4 17 nan\n", "4 17 1 extra\n", "4 17 1 2 3\n", "4 17 -1\n", "99999999999999999999 1 1\n"}) {
    EXPECT_FALSE(ParseProgress(text)) << text;
  }
}

TEST(ProgressLine, ShowsCountsThePointAndTheTimeLeft) {
  RunProgress progress;
  progress.total = 8;
  progress.done = 2;
  progress.failed = 1;
  progress.live = {{"batch_size=8", PointProgress{4, 17, 1230}}};
  progress.left_ns = 190'000'000'000;
  EXPECT_EQ(ProgressLine(progress, 120), "[3/8] 1 failed  batch_size=8  step 4/17  1.23K tokens/s  left 3 min 10 s");
}

TEST(ProgressLine, SaysWhyAndUntilWhenJobsWait) {
  RunProgress progress;
  progress.total = 8;
  progress.queued_jobs = 3;
  EXPECT_EQ(ProgressLine(progress, 120), "[0/8]  3 queued");
  progress.runs = 24;
  progress.runs_left = 19;
  EXPECT_EQ(ProgressLine(progress, 120), "[5/24 runs]  3 queued") << "of three repeats each";
  progress.runs = 8;
  progress.queued_for = QueueText("Priority", 0);
  EXPECT_EQ(ProgressLine(progress, 120), "[0/8]  3 queued (Priority)");
  EXPECT_THAT(QueueText("Priority", 1'795'310'999), ::testing::MatchesRegex("Priority, from Nov .. ..:.."));
  EXPECT_THAT(QueueText("", 1'795'310'999), ::testing::StartsWith("from Nov"));
  EXPECT_EQ(QueueText("a\x1b[2J", 0), "a\\x1b[2J") << "nothing that a terminal obeys";
}

TEST(ProgressLine, NeverTakesMoreColumnsThanThereAre) {
  RunProgress progress;
  progress.total = 8;
  progress.live = {{"ä\xe2\x82\xac batch_size=8, checkpointing=full", PointProgress{4, 17, 1230}}};
  progress.left_ns = 190'000'000'000;
  for (size_t columns = 1; columns < 100; ++columns) {
    const std::string line = ProgressLine(progress, columns);
    size_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    EXPECT_LE(width, columns);
  }
}

TEST(ProgressLine, ShowsAFigureWholeOrNot) {
  RunProgress progress;
  progress.total = 8;
  progress.live = {{"batch_size=8", PointProgress{14, 170, 1230}}};
  progress.left_ns = 9'000'000'000;
  EXPECT_EQ(ProgressLine(progress, 58), "[0/8]  batch_size=8  step 14/170  1.23K tokens/s  left 9 s");
  EXPECT_EQ(ProgressLine(progress, 57), "[0/8]  batch_size=8  step 14/170  left 9 s");
  EXPECT_EQ(ProgressLine(progress, 40), "[0/8]  batch_size=8  left 9 s");
  EXPECT_EQ(ProgressLine(progress, 20), "[0/8]  bat  left 9 s") << "a name is cut";
  EXPECT_EQ(ProgressLine(progress, 10), "[0/8]  bat") << "where even the time does not fit";
}

TEST(OutcomeText, SaysHowItEnded) {
  collect::Collected result;
  result.end = RunStatus::kOk;
  EXPECT_EQ(OutcomeText(result, 1), "ok");
  result.steady_tokens_per_s = 1234;
  EXPECT_EQ(OutcomeText(result, 1), "ok  1.23K tokens/s");
  result.repeat = 2;
  EXPECT_EQ(OutcomeText(result, 3), "ok  1.23K tokens/s; repeat 2 of 3");
  result.disturbance = "a busy\nmachine";
  EXPECT_EQ(OutcomeText(result, 1), "ok  1.23K tokens/s; disturbed: a busy\\nmachine");
  result.end.status = RunStatus::kCrashed;
  EXPECT_EQ(OutcomeText(result, 1).find("disturbed"), std::string::npos) << "it has no figure";
  result = {};
  result.end = RunStatus::kOomHost;
  result.message = "wanted\n3 GB";
  EXPECT_EQ(OutcomeText(result, 1), "oom_host  wanted\\n3 GB");
}

}  // namespace
}  // namespace ridgeline::driver
