#include "driver/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "driver/patience.h"

namespace ridgeline::driver {
namespace {

TEST(BatchSize, GrowsWhileCallsAreQuickAndShrinksWhenTheyAreSlow) {
  BatchSize size(/*bulk=*/false);
  const size_t first = size.jobs();
  size.Took(first, kQuickCallNs);
  EXPECT_EQ(size.jobs(), kBatchGrowth * first);
  size.Took(first, kQuickCallNs);
  EXPECT_EQ(size.jobs(), kBatchGrowth * first) << "a smaller call says nothing about a larger one";
  for (int i = 0; i < 10; ++i) size.Took(size.jobs(), 0);
  EXPECT_EQ(size.jobs(), kMostAtOnce);
  size.Took(size.jobs(), kSlowCallNs);
  EXPECT_EQ(size.jobs(), kMostAtOnce);
  size.Took(size.jobs(), 10 * kSlowCallNs);
  EXPECT_EQ(size.jobs(), kMostAtOnce / 10);
  size.Took(1, 100 * kSlowCallNs);
  EXPECT_EQ(size.jobs(), 1U);
}

TEST(BatchSize, ALauncherThatWorksInBulkGetsAllJobs) {
  BatchSize size(/*bulk=*/true);
  EXPECT_EQ(size.jobs(), kMostAtOnce);
  size.Took(size.jobs(), 10 * kSlowCallNs);
  EXPECT_EQ(size.jobs(), kMostAtOnce) << "fewer would take as long";
}

TEST(AskInBatches, AnswersInTheOrderOfTheQuestions) {
  BatchSize size(/*bulk=*/false);
  FakeClock clock;
  std::vector<int> jobs(50);
  std::iota(jobs.begin(), jobs.end(), 0);
  std::vector<size_t> batches;
  const auto ask = [&](std::span<const int> batch) {
    batches.push_back(batch.size());
    return std::vector<int>(batch.begin(), batch.end());
  };
  const auto answers = AskInBatches<int, int>(size, clock, jobs, ask, [] { return false; });
  EXPECT_EQ(answers, jobs);
  EXPECT_THAT(batches, testing::ElementsAre(1, 8, 41));
  EXPECT_EQ((AskInBatches<int, int>(size, clock, jobs, ask, [] { return true; })), jobs) << "one batch is never split";
  size = BatchSize(/*bulk=*/false);
  EXPECT_EQ((AskInBatches<int, int>(size, clock, jobs, ask, [] { return true; })), std::nullopt);
}

}  // namespace
}  // namespace ridgeline::driver
