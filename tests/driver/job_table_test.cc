#include "driver/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LiveJob Intent(const std::string& key, const std::vector<std::string>& points = {}) {
  Job job;
  job.key = key;
  for (const std::string& id : points) job.points.push_back({id, {}, 0});
  return OpenJob(std::move(job), "fake", {}, {{"seen", 2}}, 5);
}

std::vector<std::string> Keys(const std::vector<LiveJob*>& jobs) {
  std::vector<std::string> keys;
  for (const LiveJob* job : jobs) keys.push_back(job->record.key);
  return keys;
}

TEST(JobTable, KnowsWhatIsToBeSubmittedAndWhatTheLauncherHas) {
  JobTable jobs;
  for (const char* key : {"a", "b", "c"}) jobs.Add(Intent(key));
  (jobs.begin() + 1)->to_submit.reset();
  (jobs.begin() + 2)->next_submit_ns = 100;
  EXPECT_THAT(Keys(jobs.ToSubmit(99, 1000)), ElementsAre("a"));
  EXPECT_THAT(Keys(jobs.ToSubmit(100, 1000)), ElementsAre("a", "c"));
  EXPECT_THAT(Keys(jobs.Submitted()), ElementsAre("b"));
}

TEST(JobTable, HandsOverOnlySoManyAtOnce) {
  JobTable jobs;
  for (int i = 0; i < 5; ++i) jobs.Add(Intent(std::to_string(i)));
  EXPECT_THAT(jobs.ToSubmit(0, 3), SizeIs(3));
}

TEST(JobTable, ForgetsTheseAndNoOthers) {
  JobTable jobs;
  for (const char* key : {"a", "b", "c"}) jobs.Add(Intent(key));
  jobs.Forget({&*jobs.begin(), &*(jobs.begin() + 2)});
  EXPECT_THAT(Keys(jobs.ToSubmit(0, 1000)), ElementsAre("b"));
  EXPECT_EQ(jobs.size(), 1);
  jobs.Forget({});
  EXPECT_FALSE(jobs.empty());
}

TEST(JobTable, KnowsItsPointsAndRecords) {
  JobTable jobs;
  EXPECT_THAT(jobs.PointIds(), IsEmpty());
  jobs.Add(Intent("a", {"y", "seen"}));
  jobs.Add(Intent("b", {"x"}));
  EXPECT_THAT(jobs.PointIds(), ElementsAre("seen", "x", "y"));
  const std::vector<store::JobRecord> records = jobs.Records();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].launcher, "fake");
  EXPECT_EQ(records[0].points.at(0).attempt, 1);
  EXPECT_EQ(records[0].points.at(1).attempt, 3) << "it has had two";
}

}  // namespace
}  // namespace ridgeline::driver
