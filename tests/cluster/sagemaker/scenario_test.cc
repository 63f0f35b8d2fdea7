// Sweeps as SageMaker training jobs under what happens in an account: plans, capacity, rights, late logs, costs. Each
// point ends in one result, and the run says why it waits or stops.
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cluster/sagemaker/service.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::SageMakerCli;
using testing::SageMakerSweep;
using ::testing::StartsWith;

constexpr const char* kPlan = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/mine";

class SageMakerScenario : public SageMakerSweep {
 protected:
  static void ExpectEnd(const cli::Cli::Output& run, int exit_code, const std::string& words) {
    EXPECT_EQ(run.status.exit_code, exit_code) << run.out << run.err;
    EXPECT_THAT(run.out + run.err, HasSubstr(words));
  }
};

// SageMaker's toolkit sets SM_HP_… of hyperparameters. Here they say something else than the sweep does.
TEST_F(SageMakerScenario, TwentyPointsMeasureWhatTheSweepSays) {
  SageMakerCli cli;
  const Json wrong = {{"SM_HP_LAYERS", "7"}, {"SM_HP_BATCH_SIZE", "9"}, {"SM_HP_SEQ_LENGTH", "8"}};
  const auto sweep =
      cli.WriteReal("layers: [1, 2], batch_size: [1, 2], seed: [1, 2, 3, 4, 5]", {{"env", wrong}}, "", 1);
  std::string text = ReadFile(sweep);
  text.replace(text.find("cpus: 1"), 7, "cpus: 1, bundle: 5");
  WriteFile(sweep, text);
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(20, 20);
  EXPECT_EQ(cli.service.Jobs().size(), 4U);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE tokens_per_step = batch_size * 32"), 20);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT parameters) FROM runs"), 2);
  EXPECT_EQ(cli.Count("SELECT min(b.parameters - a.parameters) > 0 FROM runs AS a, runs AS b "
                      "WHERE a.layers = 1 AND b.layers = 2"),
            1);
  cli.ExpectOk(cli.Run({"run", sweep, "--again", "--launcher", "local"}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM measurements AS a JOIN measurements AS b ON a.point_id = b.point_id AND "
                      "a.result < b.result AND a.loss = b.loss AND a.parameters = b.parameters"),
            20)
      << "as a local run computes";
}

// The same for a trainer that says itself what it was told.
TEST_F(SageMakerScenario, AnotherTrainerRunsWhatTheSweepSays) {
  SageMakerCli cli;
  WriteFile(cli.dir / "mine.sh", "echo \"layers $1 batch $2\"\nfor i in 1 2; do echo \"step $i: 5 ms\"; done\n");
  MakeDirs(cli.dir / "trainers");
  WriteFile(
      cli.dir / "trainers/mine.yaml",
      fmt::format("name: mine\nabout: says what it was told\nversion: \"1\"\ntested: log\nresult: patterns\n"
                  "command: [/bin/sh, '{}/mine.sh', '{{{{layers}}}}', '{{{{batch_size}}}}']\n"
                  "supports: {{family: any, model: any, seq_length: any, layers: any, batch_size: any}}\n"
                  "metrics:\n"
                  "  - {{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}\n"
                  "  - {{name: said_layers, regex: 'layers (?P<value>\\d+)', unit: layers}}\n"
                  "  - {{name: said_batch, regex: 'batch (?P<value>\\d+)', unit: sequences}}\n",
                  cli.dir.path().string()));
  const Json settings = testing::SageMakerSettings({{"env", {{"SM_HP_NUM_LAYERS", "7"}, {"SM_HP_BATCH_SIZE", "9"}}}});
  const auto sweep = cli.WriteText(fmt::format(
      "name: test\ndefaults: {{family: llama, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: 32, "
      "trainer: mine}}\nmatrix: {{layers: [1, 3], batch_size: [2, 4]}}\nmeasure: {{warmup_steps: 0, steps: 2}}\n"
      "launch: {{launcher: sagemaker, cpus: 1, bundle: 4, time_limit: 5m, sagemaker: {}}}\n",
      DumpJson(settings)));
  cli.ExpectOk(cli.Run({"run", sweep, "--trainers", cli.dir / "trainers"}));
  EXPECT_EQ(
      cli.Count("SELECT count(*) FROM runs WHERE status = 'ok' AND metrics ->> '$.said_layers.value' = layers AND "
                "metrics ->> '$.said_batch.value' = batch_size"),
      4)
      << cli.Cell("SELECT group_concat(metrics) FROM runs") << cli.NotOk();
}

TEST_F(SageMakerScenario, APlanIsWaitedForAndItsEndIsKept) {
  SageMakerCli cli;
  cli.service.Tell({{"plans", {{"mine", {{"status", "Scheduled"}, {"type", "ml.m5.large"}, {"instances", 1}}}}}});
  cli.service.Tell({{"plan_end", static_cast<double>(std::time(nullptr)) + 60}});
  const auto sweep = Write(cli, 2, "ok", {{"training_plan", kPlan}}, "retry: {preempted: 0}");
  Child run = cli.Start({"run", sweep});
  EXPECT_TRUE(cli.WaitToRead(run, "it starts when its plan is active")) << "why it waits";
  cli.service.Tell({{"plans", {{"mine", {{"status", "Active"}, {"type", "ml.m5.large"}, {"instances", 1}}}}}});
  ExpectEnd(cli.Finish(run), 3, "2 of 2 points have no result");
  EXPECT_EQ(cli.Starts(), 0) << "a point that cannot end before the plan does is not begun";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'infrastructure' AND reason = 'preempted'"), 2);
  cli.service.Tell({{"plan_end", static_cast<double>(std::time(nullptr)) + 86'400}});
  cli.ExpectOk(cli.Run({"run", sweep}));
  EXPECT_EQ(cli.Starts(), 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 2);
}

TEST_F(SageMakerScenario, CapacityComesAndGoes) {
  SageMakerCli cli;
  cli.service.Tell({{"capacity", {{"ml.m5.large", 0}}}});
  Child run = cli.Start({"run", Write(cli, 3, "slow=300", Json::object(), "retry: {start: 5}")});
  EXPECT_TRUE(cli.WaitToRead(run, "Insufficient capacity")) << "why it waits";
  cli.service.Tell({{"capacity", {{"ml.m5.large", 1}}}});
  EXPECT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  cli.service.Tell({{"capacity", {{"ml.m5.large", 0}}}, {"patience_s", 0.1}});
  EXPECT_TRUE(cli.WaitToRead(run, "CapacityError")) << "SageMaker waits no longer";
  cli.service.Tell({{"capacity", {{"ml.m5.large", 2}}}, {"patience_s", nullptr}});
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Starts(), 3) << cli.NotOk();
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 3);
}

TEST_F(SageMakerScenario, ASpotInstanceThatTakesTheLastCopyWithItCostsNoResult) {
  SageMakerCli cli;
  Child run = cli.Start({"run", Write(cli, 3, "slow=700", {{"spot", true}}, "bundle: 3")});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 2; }));
  cli.service.Tell({{"interrupt", {{"kill", true}, {"lose_last_sync", true}}}});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(3, 3);
  EXPECT_GE(cli.Starts(), 4);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 1);
}

bool IsState(const std::string& path) { return path.find("/step-0") != std::string::npos; }

// What S3 has of points' states (docs/checkpoint-files.md).
std::vector<std::string> StatesInS3(const SageMakerCli& cli) {
  std::vector<std::string> keys = cli.service.Keys();
  std::erase_if(keys, [](const std::string& key) { return !IsState(key); });
  return keys;
}

// What is left of points' states in the folder that the job's last attempt had.
std::vector<std::string> StatesInContainer(const SageMakerCli& cli) {
  std::vector<std::string> found;
  const Json jobs = cli.service.Jobs();
  for (const auto& [name, state] : jobs.items()) {
    const std::filesystem::path folder =
        cli.service.dir() / "root/jobs" / name / std::to_string(state.at(2).get<int>()) / "algo-1/ml/checkpoints";
    EXPECT_TRUE(std::filesystem::is_directory(folder)) << folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (IsState(entry.path().string())) found.push_back(entry.path().string());
    }
  }
  return found;
}

// Interrupts the real engine after a save. The point goes on from a save, and computes what a local run computes.
void ExpectGoesOnAfter(const Json& interruption) {
  SageMakerCli cli;
  cli.service.Tell({{"sync_s", 0.1}});
  const auto sweep = cli.WriteReal("seed: [1, 2]", {{"spot", true}}, "checkpoint: {every_steps: 5}\n", 400);
  std::string text = ReadFile(sweep);
  text.replace(text.find("cpus: 1"), 7, "cpus: 1, bundle: 2");
  WriteFile(sweep, text);
  Child run = cli.Start({"run", sweep});
  const auto is_complete = [](const std::string& key) { return key.ends_with("/manifest.json"); };
  ASSERT_TRUE(testing::Eventually([&] { return std::ranges::any_of(StatesInS3(cli), is_complete); }));
  cli.service.Tell({{"interrupt", interruption}});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 1);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok' AND "
                      "CAST(evidence ->> '$.resumed_from_step' AS INTEGER) > 0"),
            1)
      << cli.Cell("SELECT group_concat(evidence) FROM results");
  EXPECT_THAT(StatesInS3(cli), ::testing::IsEmpty()) << "nobody asked for a finished point's state";
  EXPECT_THAT(StatesInContainer(cli), ::testing::IsEmpty());
  cli.ExpectOk(cli.Run({"run", sweep, "--again", "--launcher", "local"}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 4);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT point_id || loss) FROM runs"), 2);
}

TEST_F(SageMakerScenario, TheRealEngineThatIsToldOfAnInterruptionGoesOnFromItsSave) {
  ExpectGoesOnAfter({{"kill", false}});
}

TEST_F(SageMakerScenario, TheRealEngineThatIsKilledGoesOnFromTheLastCopy) { ExpectGoesOnAfter({{"kill", true}}); }

TEST_F(SageMakerScenario, LinesThatComeLateInPagesThatAreEmptyAreRead) {
  SageMakerCli cli;
  cli.service.Tell({{"deny", {"s3:GetObject"}},
                    {"rates", {{"logs:FilterLogEvents", 0}}},
                    {"delay_s", 2},
                    {"page_events", 3},
                    {"empty_pages", true}});
  cli.ExpectOk(cli.Run({"run", Write(cli, 2, "ok")}));
  cli.ExpectEachRanOnce(2);
}

TEST_F(SageMakerScenario, AServiceThatIsGoneForAWhileIsAskedAgain) {
  SageMakerCli cli;
  Child run = cli.Start({"run", Write(cli, 2, "slow=300")});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  cli.service.Tell({{"faults", Json::array({{{"op", "*"}, {"do", "drop_before"}, {"times", 5}}})}});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(2);
}

TEST_F(SageMakerScenario, TwoDriversDoNotMeet) {
  SageMakerCli cli;
  const auto sweep = Write(cli, 2, "slow=700");
  Child first = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() >= 1; }));
  const auto second = cli.Run({"run", sweep});
  EXPECT_NE(second.status.exit_code, 0) << "the database has a driver";
  cli.ExpectOk(cli.Run({"run", sweep, "--db", cli.dir / "other.db", "--to", cli.dir / "other"}));
  cli.ExpectOk(cli.Finish(first));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Starts(), 4) << "each database has measured its points once";
  EXPECT_EQ(cli.service.Jobs().size(), 4U);
}

// The rights of plugins/sagemaker/deploy/role-policy.json.
TEST_F(SageMakerScenario, WithoutARightOfTheRoleItSaysWhichOrHasTheResultsAllTheSame) {
  struct Case {
    const char *right, *reason;
  };
  SageMakerCli cli;
  const auto sweep = Write(cli, 1, "ok", Json::object(), "retry: {image: 0, storage: 0}");
  for (const auto& [right, reason] :
       {Case{"ecr:GetAuthorizationToken", "image"}, Case{"ecr:BatchGetImage", "image"},
        Case{"ecr:GetDownloadUrlForLayer", "image"}, Case{"s3:GetObject", "storage"}, Case{"s3:ListBucket", "storage"},
        Case{"s3:PutObject", ""}, Case{"logs:CreateLogStream", ""}, Case{"logs:PutLogEvents", ""}}) {
    cli.service.Tell({{"role_denied", {right}}});
    const std::string campaign = std::string("without-") + right;
    const auto run = cli.Run({"run", sweep, "--campaign", campaign});
    const std::string result = cli.Cell(
        fmt::format("SELECT status || ' ' || reason || ' ' || message FROM results WHERE campaign = '{}'", campaign));
    if (*reason == '\0') {
      EXPECT_EQ(run.status.exit_code, 0) << right << run.out << run.err;
      EXPECT_THAT(result, StartsWith("ok ")) << right;
      continue;
    }
    EXPECT_EQ(run.status.exit_code, 3) << right << run.out << run.err;
    EXPECT_THAT(result, StartsWith(std::string("infrastructure ") + reason + " ")) << right;
    EXPECT_THAT(result, HasSubstr(std::string("may not ") + right));
  }
}

// The service's clock is a hundred times as fast as ours, so that a job is billed for seconds.
TEST_F(SageMakerScenario, ALimitOfCostStopsItAndWhatIsKeptWarmIsListed) {
  SageMakerCli cli;
  cli.service.Tell({{"speed", 100}});
  const std::string price = "max_parallel: 1\nprice: {node: 10 USD/h, date: 2026-11, max_cost: ";
  // A job may be billed for an hour, and for the 6 hours in which its instance is kept: about 70 USD.
  const Json settings = {{"keep_alive", "6h"}};
  const auto stopped = cli.Run({"run", Write(cli, 2, "ok", settings, price + "80 USD}")});
  ExpectEnd(stopped, 3, "another job could pass max_cost, 80.00 USD");
  EXPECT_THAT(stopped.out, HasSubstr("billed: "));
  EXPECT_THAT(stopped.out, HasSubstr("more may be billed for nodes that were kept after their jobs"));
  EXPECT_THAT(stopped.out, HasSubstr("still billed: instances that training job my-sweep-rl-"));
  EXPECT_EQ(cli.Starts(), 1);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 1) << "the other point has no result";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE billed_usd > 0"), 1);
  const auto doctor = cli.Run({"doctor", cli.dir / "sweep.yaml"});
  EXPECT_THAT(doctor.out, HasSubstr("this sweep is still billed for 1 item: instances that training job my-sweep-rl-"));
  const auto more = cli.Run({"run", Write(cli, 2, "ok", settings, price + "500 USD}")});
  cli.ExpectOk(more);
  EXPECT_EQ(cli.Starts(), 2);
  EXPECT_THAT(more.out, Not(HasSubstr("max_cost")));
}

TEST_F(SageMakerScenario, ASearchsMeasurementsInTurnsAreInItsCosts) {
  SageMakerCli cli;
  cli.service.Tell({{"speed", 100}});
  const auto sweep = Write(cli, 2, "ok", {{"keep_alive", "6h"}},
                           "max_parallel: 2\nprice: {node: 10 USD/h, date: 2026-11, max_cost: 2000 USD}\n"
                           "search: {maximize: tokens_per_s, budget: 12}");
  const auto run = cli.Run({"run", sweep});
  cli.ExpectOk(run);
  const int64_t jobs = cli.Count("SELECT count(*) FROM jobs");
  EXPECT_GT(jobs, cli.Count("SELECT count(*) FROM jobs WHERE sweep = 'my sweep'")) << run.out;
  EXPECT_THAT(run.out, HasSubstr(fmt::format("node-hours for {} jobs, ", jobs)));
  const char* kept = "instances that training job my-sweep--in-turns-rl-";
  EXPECT_THAT(run.out, HasSubstr(std::string("still billed: ") + kept));
  EXPECT_THAT(cli.Run({"doctor", sweep}).out, HasSubstr(kept));
}

TEST_F(SageMakerScenario, AJobThatCancelEndsKeepsItsCostAtTheSweepsPrice) {
  SageMakerCli cli;
  cli.service.Tell({{"speed", 100}});
  const auto sweep =
      Write(cli, 1, "slow=700", Json::object(), "max_parallel: 1\nprice: {node: 10 USD/h, date: 2026-11}");
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Starts() == 1; }));
  run.Signal(SIGKILL);
  run.Wait();
  cli.ExpectOk(cli.Run({"cancel", sweep}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE state = 'cancelled' AND evidence ->> '$.billed_s' > 0 AND "
                      "abs(evidence ->> '$.billed_usd' - evidence ->> '$.billed_s' * 10.0 / 3600) < 0.00001"),
            1)
      << cli.Cell("SELECT evidence FROM jobs");
}

}  // namespace
}  // namespace ridgeline
