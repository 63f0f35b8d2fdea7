// Sweeps as SageMaker training jobs, on a double of the service. Each point ends in one result, whatever happens.
#include "tests/cluster/sagemaker/service.h"

namespace ridgeline {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::kSageMakerTrainImage;
using ::testing::Not;
using testing::SageMakerCli;
using testing::SageMakerSweep;

TEST_F(SageMakerSweep, TheRealEngineGivesOneResultAPointAndTheLossesOfALocalRun) {
  SageMakerCli cli;
  const auto sweep = cli.WriteReal("seed: [1, 2, 3], ranks: [1]", {{"spot", true}}, "", 3);
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(3, 3);
  const std::string losses =
      "SELECT group_concat(point_id || loss) FROM "
      "(SELECT * FROM runs ORDER BY point_id)";
  const std::string there = cli.Cell(losses);
  EXPECT_THAT(cli.Evidence("transitions", "ok"), AnyOf(HasSubstr("no text"), HasSubstr("Starting")));
  const Json jobs = cli.service.Jobs();
  for (const auto& [name, state] : jobs.items()) {
    EXPECT_THAT(name, ::testing::StartsWith("test-rl-"));
    EXPECT_LE(name.size(), 63U);
    EXPECT_EQ(state.at(0), "Completed");
  }
  const auto calls = cli.service.Calls();
  EXPECT_EQ(calls.at("sagemaker:CreateTrainingJob"), 3);
  EXPECT_FALSE(calls.contains("sagemaker:DeleteTrainingJob"));
  cli.ExpectOk(cli.Run({"run", sweep, "--again", "--launcher", "local"}));
  EXPECT_EQ(cli.Cell("SELECT count(*) || '' FROM results WHERE status = 'ok'"), "6");
  EXPECT_EQ(cli.Cell("SELECT count(DISTINCT point_id || loss) || '' FROM runs"), "3") << there;
}

TEST_F(SageMakerSweep, TwoNodesMeetByTheJobsHostList) {
  SageMakerCli cli;
  cli.service.Tell({{"resolve_after_s", 2}});  // a host's name is not known at once
  const auto run = cli.Run({"run", cli.WriteReal("ranks: [2]", {{"nodes", 2}})});
  cli.ExpectOk(run);
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_F(SageMakerSweep, GoesOnAfterASpotInterruption) {
  SageMakerCli cli;
  Child run = cli.Start({"run", Write(cli, 3, "slow=1500", {{"spot", true}}, "bundle: 3")});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 2; }));
  cli.service.Tell({{"interrupt", {{"kill", false}}}});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(3, 3);
  EXPECT_EQ(cli.Starts(), 4) << "the point that was interrupted ran twice";
  const Json jobs = cli.service.Jobs();
  EXPECT_EQ(jobs.begin().value().at(2), 2) << "attempts";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 1);
}

TEST_F(SageMakerSweep, HasItsResultsWithoutTheLog) {
  SageMakerCli cli;
  cli.service.Tell({{"deny", {"logs:*"}}});
  cli.ExpectOk(cli.Run({"run", Write(cli, 2, "ok")}));
  cli.ExpectOneFinalResultEach(2, 2);
}

TEST_F(SageMakerSweep, HasItsResultsFromTheLogIfS3CannotBeRead) {
  SageMakerCli cli;
  cli.service.Tell({{"deny", {"s3:GetObject"}}});
  cli.ExpectOk(cli.Run({"run", Write(cli, 2, "ok")}));
  cli.ExpectOneFinalResultEach(2, 2);
}

TEST_F(SageMakerSweep, AsksAgainUntilALostAnswerIsKnown) {
  SageMakerCli cli;
  Json faults = Json::array();
  for (const char* what : {"drop_after", "drop_before", "garbage", "truncate", "retype"}) {
    for (const char* operation :
         {"sagemaker:CreateTrainingJob", "sagemaker:ListTrainingJobs", "sagemaker:DescribeTrainingJob", "s3:PutObject",
          "s3:ListObjectsV2", "logs:FilterLogEvents", "sts:GetCallerIdentity"}) {
      faults.push_back({{"op", operation}, {"do", what}});
    }
  }
  faults.push_back({{"op", "sagemaker:CreateTrainingJob"}, {"do", "error"}, {"code", "ThrottlingException"}});
  faults.push_back({{"op", "*"}, {"do", "error"}, {"code", "InternalFailure"}, {"status", 500}, {"skip", 20}});
  cli.service.Tell({{"faults", faults}});
  cli.ExpectOk(cli.Run({"run", Write(cli, 4, "ok")}));
  cli.ExpectEachRanOnce(4);
  EXPECT_EQ(cli.service.Jobs().size(), 4U);
}

TEST_F(SageMakerSweep, RunsWithAClockThatIsWrongAndATokenThatExpires) {
  SageMakerCli cli;
  cli.service.Tell({{"clock_skew_s", 1200}});
  Child run = cli.Start({"run", Write(cli, 2, "slow=1500")});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 2; }));
  cli.service.Tell({{"expire", "AKIDOUBLE"}});
  ASSERT_TRUE(cli.WaitToRead(run, "ExpiredToken"));
  cli.service.Tell({{"renew", "AKIDOUBLE"}});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(2);
}

TEST_F(SageMakerSweep, SaysWhichRightIsMissing) {
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "ok");
  for (const char* right : {"sagemaker:ListTrainingJobs", "sagemaker:DescribeTrainingJob", "s3:ListObjectsV2",
                            "s3:PutObject", "sagemaker:CreateTrainingJob", "iam:PassRole"}) {
    cli.service.Tell({{"deny", {right}}});
    const auto run = cli.Run({"run", sweep});
    EXPECT_NE(run.status.exit_code, 0) << right;
    EXPECT_THAT(run.out + run.err, HasSubstr(std::string("may not ") + right));
  }
  EXPECT_EQ(cli.Starts(), 0);
}

TEST_F(SageMakerSweep, SaysWhichRightIsMissingForASetting) {
  SageMakerCli cli;
  const std::string key = "arn:aws:kms:us-west-2:123456789012:key/k";
  const auto sweep = Write(cli, 1, "ok", {{"tags", {{"team", "a"}}}, {"kms_key", key}});
  for (const char* right : {"sagemaker:AddTags", "kms:GenerateDataKey", "kms:Decrypt"}) {
    cli.service.Tell({{"deny", {right}}});
    const auto run = cli.Run({"run", sweep});
    EXPECT_NE(run.status.exit_code, 0) << right;
    EXPECT_THAT(run.out + run.err, HasSubstr(std::string("may not ") + right));
  }
  cli.service.Tell({{"deny", Json::array()}, {"role_denied", {"kms:CreateGrant"}}});
  const Json vpc = {{"subnets", {"subnet-1"}}, {"security_group_ids", {"sg-1"}}};
  cli.Run({"run", Write(cli, 1, "ok", {{"kms_key", key}}, "retry: {start: 0}")});
  EXPECT_THAT(cli.NotOk(), HasSubstr("the role may not kms:CreateGrant"));
  cli.service.Tell({{"role_denied", {"ec2:CreateNetworkInterface"}}});
  cli.Run({"run", "--campaign", "vpc", Write(cli, 1, "ok", vpc, "retry: {start: 0}")});
  EXPECT_THAT(cli.NotOk(), HasSubstr("the role may not ec2:CreateNetworkInterface"));
  EXPECT_EQ(cli.Starts(), 0);
}

TEST_F(SageMakerSweep, StopsItsJobsOnceItMay) {
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "sleep");
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  run.Signal(SIGKILL);
  run.Wait();
  cli.service.Tell({{"deny", {"sagemaker:StopTrainingJob"}}});
  Child cancel = cli.Start({"cancel", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.service.Calls().contains("sagemaker:StopTrainingJob"); }));
  cancel.Signal(SIGINT);  // it would ask again for 40 s
  const auto refused = cli.Finish(cancel);
  EXPECT_NE(refused.status.exit_code, 0);
  EXPECT_THAT(refused.out + refused.err, HasSubstr("may not sagemaker:StopTrainingJob"));
  cli.service.Tell({{"deny", Json::array()}});
  cli.ExpectOk(cli.Run({"cancel", sweep}));
  ASSERT_TRUE(testing::Eventually([&] { return cli.service.Jobs().begin().value().at(0) == "Stopped"; }));
}

TEST_F(SageMakerSweep, DoctorAsksForEachRightThatItCanAskForWithoutAJob) {
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "ok");
  const auto doctor = [&](const Json& denied) {
    cli.service.Tell({{"deny", denied}});
    const auto said = cli.Run({"doctor", sweep});
    return said.out + said.err;
  };
  EXPECT_THAT(doctor(Json::array()), Not(HasSubstr("may not")));
  for (const char* right :
       {"sts:GetCallerIdentity", "sagemaker:ListTrainingJobs", "sagemaker:DescribeTrainingJob", "s3:ListObjectsV2"}) {
    const std::string said = doctor({right});
    EXPECT_THAT(said, HasSubstr(std::string("may not ") + right));
    EXPECT_THAT(said, HasSubstr("no job of this sweep can be submitted from here")) << right;
  }
  EXPECT_THAT(doctor({"logs:FilterLogEvents"}), HasSubstr("results come from S3 alone: cannot read the jobs' log"));
  EXPECT_THAT(doctor({"s3:GetObject"}), HasSubstr("results come from the log alone: cannot read objects below s3://"));
  const std::string both = doctor({"logs:FilterLogEvents", "s3:GetObject"});
  EXPECT_THAT(both, HasSubstr("no results can be read"));
  EXPECT_THAT(both, HasSubstr("no job of this sweep can be submitted from here"));
  EXPECT_EQ(cli.service.Jobs().size(), 0U);
}

TEST_F(SageMakerSweep, TheImagesProgramTrainRunsTheJobAsTheEntryPointDoes) {
  SageMakerCli cli;
  const Json request = {{"AlgorithmSpecification", {{"ContainerEntrypoint", nullptr}}}};
  cli.ExpectOk(cli.Run({"run", Write(cli, 2, "ok", {{"image", kSageMakerTrainImage}, {"request", request}})}));
  cli.ExpectEachRanOnce(2);
}

TEST_F(SageMakerSweep, WaitsForItsQuota) {
  SageMakerCli cli;
  cli.service.Tell({{"quota", {{"ml.m5.large", 1}}}});
  const auto run = cli.Run({"run", Write(cli, 3, "ok")});
  cli.ExpectOk(run);
  cli.ExpectEachRanOnce(3);
  EXPECT_THAT(run.out + run.err, HasSubstr("for training job usage is 1 instances")) << "why jobs wait";
}

TEST_F(SageMakerSweep, SaysWhoseDoingAnEndWas) {
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "sleep", Json::object(), "retry: {node: 0, start: 0, preempted: 0}");
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  cli.service.Tell({{"break", {{"job", WaitForJob(cli, "Training")}, {"why", "please retry"}}}});
  cli.Finish(run);
  EXPECT_THAT(cli.NotOk(), HasSubstr("InternalServerError: please retry"));
}

TEST_F(SageMakerSweep, CancelsItsJobs) {
  SageMakerCli cli;
  Child run = cli.Start({"run", Write(cli, 2, "sleep")});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 2; }));
  run.Signal(SIGINT);
  cli.Finish(run);
  ASSERT_TRUE(testing::Eventually([&] {
    const Json jobs = cli.service.Jobs();
    return std::all_of(jobs.begin(), jobs.end(), [](const Json& job) { return job.at(0) == "Stopped"; });
  }));
}

TEST_F(SageMakerSweep, KeepsItsCredentialsToItself) {
  SageMakerCli cli({"--key", "AKIDVERYSECRET:thesecretkeyitself:thetokenitself"});
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDVERYSECRET", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "thesecretkeyitself", 1);
  ::setenv("AWS_SESSION_TOKEN", "thetokenitself", 1);
  const auto sweep = Write(cli, 2, "slow=300");
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  for (const char* text : {"thesecretkeyitself", "thetokenitself"}) {
    EXPECT_TRUE(std::ranges::all_of(testing::ProcessesWith(text), [&](pid_t pid) {
      return testing::CommandLineOf(pid).find("sagemaker-double") != std::string::npos;
    })) << "no argument of a process of ours is secret";
  }
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOk(cli.Run({"render", sweep, "--to", cli.dir.path() / "rendered"}));
  ::unsetenv("AWS_SESSION_TOKEN");
  for (const auto& folder : {cli.dir.path(), cli.service.dir() / "root"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      for (const char* secret : {"AKIDVERYSECRET", "thesecretkeyitself", "thetokenitself"}) {
        EXPECT_THAT(ReadFile(entry.path()), Not(HasSubstr(secret))) << entry.path();
      }
    }
  }
}

// The scripts with Debian's own clients.
TEST_F(SageMakerSweep, IsRenderedAsScriptsThatSubmitAndFetch) {
  if (!std::filesystem::exists("/usr/bin/aws")) GTEST_SKIP() << "there is no awscli (packages.txt)";
  ::setenv("PATH", "/usr/bin:/bin", 1);
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "ok");
  const auto to = (cli.dir.path() / "rendered").string();
  // The database and the folder of a run are lost. Its jobs are fetched all the same.
  cli.ExpectOk(cli.Run({"run", sweep}));
  for (const auto& entry : std::filesystem::directory_iterator(cli.dir.path())) {
    if (entry.path() != sweep && entry.path().filename() != "starts") std::filesystem::remove_all(entry.path());
  }
  cli.ExpectOk(cli.Run({"render", sweep, "--to", to}));
  const Captured lost = ridgeline::Run({"/bin/sh", to + "/fetch.sh"});
  EXPECT_TRUE(lost.status.ok()) << lost.stdout_text << lost.stderr_text;
  cli.ExpectOk(cli.Run({"collect", to}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 1);
  const Captured submitted = ridgeline::Run({"/bin/sh", to + "/submit.sh"});
  EXPECT_TRUE(submitted.status.ok()) << submitted.stdout_text << submitted.stderr_text;
  EXPECT_THAT(submitted.stdout_text, HasSubstr("training-job/my-sweep-rl-"));
  EXPECT_THAT(submitted.stderr_text, HasSubstr("+ create "));
  ::setenv("POLL_PAUSE_S", "0.2", 1);
  const Captured waited = ridgeline::Run({"/usr/bin/python3", to + "/sweep.py"});
  EXPECT_TRUE(waited.status.ok()) << waited.stdout_text << waited.stderr_text;
  EXPECT_THAT(waited.stdout_text, HasSubstr("exists already"));
  EXPECT_THAT(waited.stdout_text, HasSubstr("Completed"));
  EXPECT_THAT(waited.stdout_text, HasSubstr("fetched"));
  EXPECT_EQ(cli.service.Jobs().size(), 2U);
}

}  // namespace
}  // namespace ridgeline
