#include "driver/tally.h"

#include <gmock/gmock.h>

#include "tests/driver/jobs.h"

namespace ridgeline::driver {
namespace {

using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;

// Five equal points, each in its own job.
class TallyTest : public JobsTest {
 protected:
  TallyTest() : JobsTest(5) {
    for (const Point& point : points_.all()) tally_.ToDo(point.spec, 1);
  }
  const RunSpec& Spec() const { return points_.all().front().spec; }
  int64_t LeftNs(int64_t window) { return tally_.Now(jobs_, points_, 100 * kSecondNs, window).left_ns; }

  Tally tally_;
};

TEST_F(TallyTest, CountsWhatWasMeasuredBeforeToo) {
  tally_.Begin(5, 2, 1);
  tally_.Again(Spec());
  tally_.Ended(Spec(), RunStatus::kOk, 0);
  tally_.Ended(Spec(), RunStatus::kCrashed, 0);
  EXPECT_EQ(tally_.counts().total, 5);
  EXPECT_EQ(tally_.counts().done, 3);
  EXPECT_EQ(tally_.counts().failed, 2);
}

TEST_F(TallyTest, TheTimeLeftComesFromWhatPointsTook) {
  EXPECT_EQ(LeftNs(1), 0) << "nothing is known yet";
  collect::Collected result;
  result.duration_ns = 10 * kSecondNs;
  tally_.Ran(Spec(), result, 3 * kSecondNs);
  EXPECT_EQ(LeftNs(1), 40 * kSecondNs) << "its result knows better than who waited for it";
  EXPECT_EQ(LeftNs(2), 20 * kSecondNs);
}

TEST_F(TallyTest, RepeatsAreTimeAndNoPoints) {
  tally_.ToDo(Spec(), 3);
  collect::Collected result;
  result.duration_ns = 10 * kSecondNs;
  tally_.Ran(Spec(), result, 0);
  EXPECT_EQ(LeftNs(1), 70 * kSecondNs);
  tally_.Ended(Spec(), RunStatus::kCrashed, 2);
  EXPECT_EQ(LeftNs(1), 50 * kSecondNs) << "the repeats of a point that failed are not run";
}

TEST_F(TallyTest, RunsAreCountedWherePointsHaveSeveral) {
  tally_.Begin(5, 0, 0, 5 + 2);
  tally_.ToDo(Spec(), 2);
  EXPECT_EQ(EndedOf(tally_.counts()), "[0/7 runs]");
  collect::Collected result;
  tally_.Ran(Spec(), result, 0);
  EXPECT_EQ(EndedOf(tally_.counts()), "[1/7 runs]");
  tally_.Ran(Spec(), result, 0);
  tally_.Ended(Spec(), RunStatus::kCrashed, 2);
  EXPECT_EQ(EndedOf(tally_.counts()), "[4/7 runs]") << "what will not be done is done with";
  tally_.Ran(Spec(), result, 0);
  tally_.Ended(Spec(), RunStatus::kInfrastructure, 0);
  EXPECT_EQ(EndedOf(tally_.counts()), "[4/7 runs]") << "nobody has its result";
}

TEST_F(TallyTest, ObservedMemoryCountsIfAResultHasNone) {
  tally_.Ran(Spec(), {}, 3 * kSecondNs);
  EXPECT_EQ(LeftNs(1), 12 * kSecondNs);
}

TEST_F(TallyTest, APointThatFailedSaysNothingOfTime) {
  collect::Collected result;
  result.end = RunStatus::kCrashed;
  result.duration_ns = kSecondNs;
  tally_.Ran(Spec(), result, kSecondNs);
  EXPECT_EQ(LeftNs(1), 0);
}

TEST_F(TallyTest, ShowsWhatRunsAndCountsTheRestAsQueued) {
  tally_.times().Took(predict::RelativeCost(Spec()), 10);
  for (auto job = jobs_.begin(); job != jobs_.begin() + 4; ++job) {
    job->phase = launch::JobPhase::kRunning;
    job->collected_ns = 99 * kSecondNs;
  }
  const RunProgress progress = tally_.Now(jobs_, points_, 100 * kSecondNs, 0);
  EXPECT_EQ(progress.queued_jobs, 1);
  EXPECT_THAT(progress.live, SizeIs(3)) << "a line has room for a few";
  EXPECT_EQ(progress.live[0].label, "seed=1");
  EXPECT_NEAR(static_cast<double>(progress.left_ns), (50.0 - 4) / 4 * kSecondNs, 10) << "as many at once as run";
}

}  // namespace
}  // namespace ridgeline::driver
