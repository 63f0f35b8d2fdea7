#include "run/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "run/measurement.h"
#include "run/spec.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

Job SomeJob() {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}}, problems);
  Job job;
  job.key = "rl-12";
  job.sweep = "a \"sweep\"";
  job.campaign = "night";
  job.launcher = "slurm";
  job.created_unix_ns = 8;
  job.setup = R"({"cpus":2,"slurm":{"gpus":4},"trainer":["x","--y"]})";
  job.job_dir = "/a/b c";
  job.trainer = {"x", "--y"};
  job.cpus = 2;
  job.gpus = 4;
  job.memory_limit_bytes = 5;
  job.meet_limit_s = 66;
  job.save_time_s = 77;
  job.keep_logs = true;
  job.nodes = 3;
  job.environment = {{"A", "b"}};
  job.config = {{"slurm", {{"partition", "large"}}}};
  job.points = {{PointId(spec), spec, 60}};
  return job;
}

std::string Refusal(const Json& document) {
  try {
    DecodeJob(document, "job.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(Job, ThoseThatDifferInAnythingButTheirPointsAskForOtherThings) {
  const Job job = SomeJob();
  Job other = job;
  other.points.clear();
  other.key = "rl-13";
  EXPECT_TRUE(AskForTheSame(job, other));
  const std::vector<std::function<void(Job&)>> changes = {
      [](Job& j) { j.trainer.pop_back(); }, [](Job& j) { j.nodes = 1; },
      [](Job& j) { j.cpus = 1; },           [](Job& j) { j.memory_limit_bytes = 6; },
      [](Job& j) { j.gpus = 1; },           [](Job& j) { j.meet_limit_s = 67; },
      [](Job& j) { j.save_time_s = 78; },   [](Job& j) { j.environment["A"] = "c"; },
      [](Job& j) { j.config = Json(); },    [](Job& j) { j.sweep = "another"; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    Job changed = job;
    changes[i](changed);
    EXPECT_FALSE(AskForTheSame(job, changed)) << i;
  }
}

TEST(Job, DecodesWhatItEncodes) {
  const Job job = SomeJob();
  const Job back = DecodeJob(ParseJson(DumpJson(EncodeJob(job)), "x"), "x");
  EXPECT_EQ(EncodeJob(back), EncodeJob(job));
  EXPECT_EQ(back.sweep, job.sweep);
  EXPECT_EQ(back.job_dir, job.job_dir);
  EXPECT_EQ(back.trainer, job.trainer);
  EXPECT_EQ(back.points.at(0).time_limit_s, 60);
  EXPECT_EQ(back.gpus, 4);
  EXPECT_EQ(back.meet_limit_s, 66);
  EXPECT_EQ(back.save_time_s, 77);
  EXPECT_TRUE(back.keep_logs);
  EXPECT_TRUE(AskForTheSame(back, job));
  EXPECT_EQ(PointId(back.points.at(0).spec), job.points.at(0).id);
}

TEST(Job, RanksThatSayWhenTheyHaveMetHaveAMeetLimit) {
  Job job = SomeJob();
  JobPoint& point = job.points.front();
  EXPECT_EQ(MeetLimitS(job, point), 0) << "one process has nobody to meet";
  point.spec.ranks = 2;
  point.spec.communicator = "gloo";
  EXPECT_EQ(MeetLimitS(job, point), 66);
  job.meet_limit_s = 0;
  EXPECT_EQ(MeetLimitS(job, point), 0) << "another trainer need not say it";
  for (const std::vector<std::string>& ours : {std::vector<std::string>{}, {"/opt/bin/ridgeline-train"}}) {
    job.trainer = ours;
    EXPECT_EQ(MeetLimitS(job, point), kUsualMeetLimitS);
  }
}

TEST(Job, SaysAsWhatItsPointsAreMeasured) {
  Job job = SomeJob();
  EXPECT_EQ(DecodeJob(EncodeJob(job), "job.json").setup, job.setup);
  EXPECT_EQ(Job().setup, DefaultSetup());
}

TEST(Job, CarriesTheSettingsOfItsPoints) {
  Job job = SomeJob();
  job.points[0].spec.checkpoint_dir = "/ck";
  const Job back = DecodeJob(EncodeJob(job), "job.json");
  EXPECT_EQ(back.points.at(0).spec.checkpoint_dir, "/ck");
  EXPECT_EQ(PointId(back.points.at(0).spec), job.points.at(0).id);
}

TEST(Job, FilesLieInItsFolder) {
  EXPECT_EQ(JobFile(SomeJob()), "/a/b c/job.json");
  EXPECT_EQ(ResultsFile("/d"), "/d/results.log");
  EXPECT_EQ(PointDir("/d", "p"), "/d/points/p");
  EXPECT_EQ(ProgressFile("/d", "p"), "/d/points/p/progress");
}

TEST(Job, ItsFileKnowsWhetherItWasChanged) {
  const TempDir dir;
  Job job = SomeJob();
  job.job_dir = dir.path();
  EXPECT_FALSE(ReadJobFile(dir.path()));
  WriteFile(JobFile(dir.path()), JobText(job));
  EXPECT_EQ(EncodeJob(ReadJobFile(dir.path()).value()), EncodeJob(job));
  Json document = ReadJsonFile(JobFile(dir.path()));
  document["cpus"] = 3;
  EXPECT_THAT(Refusal(document), HasSubstr("job.json was changed since it was written"));
  document.erase("checksum");  // as in files by people
  EXPECT_EQ(DecodeJob(document, "job.json").cpus, 3);
}

TEST(Job, ItsFileMayBeAnythingByNow) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/zero", JobFile(dir.path()));
  try {
    ReadJobFile(dir.path());
    FAIL() << "taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(), HasSubstr("job.json is a symbolic link, not a regular file"));
  }
}

TEST(Job, RefusesWhatIsNoJob) {
  EXPECT_THAT(Refusal(Json::array()), HasSubstr("job.json: not a job file of version 1"));
  Json document = EncodeJob(SomeJob());
  document["version"] = 2;
  EXPECT_THAT(Refusal(document), HasSubstr("version 1"));
  document = EncodeJob(SomeJob());
  document.erase("key");
  EXPECT_THAT(Refusal(document), HasSubstr("key"));
  document = EncodeJob(SomeJob());
  document["points"][0]["spec"]["batch_size"] = 0;
  EXPECT_THAT(Refusal(document), HasSubstr("batch_size is 0"));
  document = EncodeJob(SomeJob());
  document["trainer"] = "one string";
  EXPECT_THAT(Refusal(document), HasSubstr("job.json: not a job file"));
  document = EncodeJob(SomeJob());
  document["setup"] = "[]";
  EXPECT_THAT(Refusal(document), HasSubstr("job.json: setup"));
}

}  // namespace
}  // namespace ridgeline
