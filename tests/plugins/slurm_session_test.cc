// The Slurm launcher's session, on a Slurm that a test scripts: for what a real one cannot be made to do on demand.
#include "slurm/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "tests/base/temp_dir.h"
#include "tests/plugins/answering.h"
#include "tests/plugins/manual_clock.h"
#include "tests/plugins/slurm_job.h"

namespace ridgeline::slurm {
namespace {

using plugin::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A Slurm that does what the test says.
class ScriptedSlurm final : public Client {
 public:
  struct World {
    Facts facts;
    std::vector<Row> rows;
    std::vector<Row> accounted;
    std::vector<BatchJob> submitted;
    std::vector<std::string> cancelled;
    int64_t next_id = 100;
    std::function<void(const BatchJob&)> on_submit = [](const BatchJob&) {};  // may throw: before it is done
    std::function<void()> after_submit = [] {};                               // may throw: it was done
    bool silent = false;
    bool unchanged = false;

    void Finish(const std::string& state = "COMPLETED", int exit_status = 0) {
      for (Row& row : rows) row.state = state, row.exit_status = exit_status;
    }
  };
  explicit ScriptedSlurm(World& world) : world_(world) {}

  std::string Description() const override { return "a script"; }
  Facts GetFacts() override { return world_.facts; }
  int64_t Submit(const BatchJob& batch) override {
    RequireAnswer();
    world_.on_submit(batch);
    world_.submitted.push_back(batch);
    Row row;
    row.name = batch.name;
    row.job_id = world_.next_id++;
    row.state = "PENDING";
    if (batch.is_array) row.tasks = ParseTasks(ArrayText(batch));
    world_.rows.push_back(row);
    world_.after_submit();
    return row.job_id;
  }
  std::optional<std::vector<Row>> Jobs() override {
    RequireAnswer();
    if (world_.unchanged) return std::nullopt;
    return world_.rows;
  }
  std::vector<Row> Accounted(const std::vector<std::string>&, int64_t) override { return world_.accounted; }
  void Cancel(const std::vector<std::string>& ids) override {
    world_.cancelled.insert(world_.cancelled.end(), ids.begin(), ids.end());
  }

 private:
  void RequireAnswer() const {
    if (world_.silent) throw SlurmError(Trouble::kNoAnswer, "Socket timed out");
  }
  World& world_;
};

using Asked = testing::Answering<Session>;

class SlurmSession : public ::testing::Test {
 protected:
  // Each is a new driver that knows only the folder.
  std::unique_ptr<Asked> Open(const Options& options = {}) {
    return std::make_unique<Asked>(
        std::make_unique<Session>(dir_.path(), options, std::make_unique<ScriptedSlurm>(slurm_), clock_));
  }
  void Later(int seconds) { clock_.Later(std::chrono::seconds(seconds)); }

  static Json Jobs(const std::vector<std::string>& keys) {
    Json jobs = Json::array();
    for (const std::string& key : keys) jobs.push_back(Job(key));
    return jobs;
  }
  static std::string State(Asked& session, const std::string& key) {
    return session.Poll(Jobs({key})).at(0).at("state").get<std::string>();
  }

  TempDir dir_;
  ScriptedSlurm::World slurm_;
  testing::ManualClock clock_;
};

TEST_F(SlurmSession, SubmitsJobsOfACallAsOneArrayAndFollowsItsTasks) {
  const auto session = Open();
  const Json answers = session->Submit(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(answers[0].at("native_id"), "100_0");
  EXPECT_EQ(answers[1].at("native_id"), "100_1");
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  slurm_.rows = {{"rl-a", 100, std::vector<int64_t>{0}, "COMPLETED", "", 0, 0, 10, 15, 20, "n1"},
                 {"rl-a", 100, std::vector<int64_t>{1}, "FAILED", "NonZeroExitCode", 3 << 8, 1, 10, 15, 20, "n2"}};
  const Json states = session->Poll(Jobs({"rl-b", "rl-a"}));
  EXPECT_EQ(states[0].at("state"), "ended");
  EXPECT_EQ(states[0].at("evidence").at("exit_code"), "3");
  EXPECT_EQ(states[0].at("evidence").at("end"), "crashed");
  EXPECT_EQ(states[0].at("evidence").at("queue_wait_s"), "5");
  EXPECT_EQ(states[0].at("evidence").at("restarts"), "1");
  EXPECT_EQ(states[0].at("evidence").at("nodes"), "n2");
  EXPECT_EQ(states[0].at("started_unix_s"), 15);
  EXPECT_FALSE(states[1].at("evidence").contains("end"));
}

TEST_F(SlurmSession, AScriptThatItsNodeCouldNotStartIsTheNodesFailure) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows = {{"rl-a", 100, std::vector<int64_t>{0, 1}, "FAILED", "NonZeroExitCode", 2 << 8, 0, 10, 15, 20, "n1"}};
  const auto log = [&](size_t task) { return std::ofstream(LogFile(dir_ / "arrays", "rl-a", task)); };
  log(0) << "slurmstepd-n1: error: execve(): /spool/job00017/slurm_script: No such file or directory\n";
  log(1) << "slurmstepd: error: execve(): ./prepare: No such file or directory\n";
  const Json states = session->Poll(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(states[0].at("evidence").at("end"), "node_failed");
  EXPECT_EQ(states[0].at("evidence").at("slurm_state"), "FAILED");
  EXPECT_THAT(states[0].at("evidence").at("log_tail"), HasSubstr("slurm_script"));
  EXPECT_EQ(states[1].at("evidence").at("end"), "crashed");  // what a script itself could not start
}

TEST_F(SlurmSession, AKeyIsSubmittedOnceWhoeverAsks) {
  Open()->Submit(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(Open()->Submit(Jobs({"rl-b", "rl-c"}))[0].at("native_id"), "100_1");
  ASSERT_EQ(slurm_.submitted.size(), 2U);
  EXPECT_THAT(slurm_.submitted[1].keys, ElementsAre("rl-c"));
}

TEST_F(SlurmSession, ASubmissionWithoutAnAnswerIsFoundByItsName) {
  slurm_.after_submit = [] { throw SlurmError(Trouble::kNoAnswer, "Socket timed out"); };
  EXPECT_EQ(Open()->Submit(Jobs({"rl-a"}))[0].at("error").at("retry"), true);
  slurm_.after_submit = [] {};
  EXPECT_EQ(Open()->Submit(Jobs({"rl-a"}))[0].at("native_id"), "100_0");
  EXPECT_EQ(slurm_.submitted.size(), 1U);
}

TEST_F(SlurmSession, ASubmissionThatWasLostIsMadeAgainOnceThatIsCertain) {
  slurm_.on_submit = [](const BatchJob&) { throw SlurmError(Trouble::kNoAnswer, "Socket timed out"); };
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.on_submit = [](const BatchJob&) {};
  slurm_.silent = true;
  Later(60);
  EXPECT_EQ(session->Submit(Jobs({"rl-a"}))[0].at("error").at("retry"), true);
  slurm_.silent = false;  // now it answers, and may still have the old message to read
  EXPECT_EQ(session->Submit(Jobs({"rl-a"}))[0].at("error").at("retry"), true);
  Later(5);
  EXPECT_EQ(session->Submit(Jobs({"rl-a"}))[0].at("error").at("retry"), true);
  EXPECT_THAT(slurm_.submitted, IsEmpty());
  Later(8);
  EXPECT_EQ(session->Submit(Jobs({"rl-a"}))[0].at("native_id"), "100_0");
}

TEST_F(SlurmSession, ASubmissionThatTheAccountingKnowsWasDone) {
  slurm_.facts.accounting = true;
  slurm_.on_submit = [](const BatchJob&) { throw SlurmError(Trouble::kNoAnswer, "Socket timed out"); };
  Open()->Submit(Jobs({"rl-a"}));
  slurm_.accounted = {{"rl-a", 7, std::vector<int64_t>{0}, "COMPLETED", "", 0, 0, 1, 2, 3, "n1"}};
  EXPECT_EQ(Open()->Submit(Jobs({"rl-a"}))[0].at("native_id"), "7_0");
}

TEST_F(SlurmSession, ARefusalIsForGoodAndLeavesNothing) {
  slurm_.on_submit = [](const BatchJob&) { throw SlurmError(Trouble::kRefused, "Invalid partition name specified"); };
  const Json error = Open()->Submit(Jobs({"rl-a"}))[0].at("error");
  EXPECT_EQ(error.at("kind"), "invalid_input");
  EXPECT_THAT(error.at("hint").get<std::string>(), HasSubstr("sinfo"));
  EXPECT_FALSE(error.contains("retry"));
  EXPECT_EQ(State(*Open(), "rl-a"), "missing");
}

TEST_F(SlurmSession, AFullJobTableIsAskedAgainWithSmallerArrays) {
  slurm_.on_submit = [](const BatchJob& batch) {
    if (batch.keys.size() > 1) throw SlurmError(Trouble::kBusy, "Resource temporarily unavailable");
  };
  const auto session = Open();
  const Json jobs = Jobs({"rl-a", "rl-b", "rl-c", "rl-d"});
  EXPECT_EQ(session->Submit(jobs)[0].at("error").at("retry"), true);
  session->Submit(jobs);
  const Json answers = session->Submit(jobs);
  for (const Json& answer : answers) EXPECT_TRUE(answer.contains("native_id")) << answer;
}

// The controller was killed, forgot the array, and gave its id to somebody else.
TEST_F(SlurmSession, AnIdThatIsSomebodyElsesIsNotOurJob) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows = {{"rl-zzz", 100, std::vector<int64_t>{0}, "RUNNING", "", 0, 0, 1, 2, 0, "n1"}};
  EXPECT_EQ(State(*session, "rl-a"), "queued");  // a controller may know a job late
  Later(11);
  EXPECT_EQ(State(*session, "rl-a"), "missing");
}

TEST_F(SlurmSession, AnArrayThatSlurmHasTwiceRunsOnce) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  Row twin = slurm_.rows.front();
  twin.job_id = 250;
  slurm_.rows.push_back(twin);
  EXPECT_EQ(session->Poll(Jobs({"rl-a"}))[0].at("native_id"), "100_0");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("250"));
}

TEST_F(SlurmSession, WhatTheControllerForgotTheAccountingKnows) {
  slurm_.facts.accounting = true;
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.clear();
  slurm_.accounted = {{"rl-a", 100, std::vector<int64_t>{0}, "TIMEOUT", "", 15, 0, 1, 2, 3, "n1"}};
  const Json state = session->Poll(Jobs({"rl-a"}))[0];
  EXPECT_EQ(state.at("state"), "ended");
  EXPECT_EQ(state.at("evidence").at("end"), "timeout");
}

TEST_F(SlurmSession, WhatDidNotChangeIsRemembered) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  slurm_.unchanged = true;
  slurm_.rows.clear();
  Later(60);
  EXPECT_EQ(State(*session, "rl-a"), "queued");
}

TEST_F(SlurmSession, SaysWhatAHeldJobWaitsFor) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.front().reason = "JobHeldUser";
  const Json state = session->Poll(Jobs({"rl-a"}))[0];
  EXPECT_EQ(state.at("state"), "queued");
  EXPECT_THAT(state.at("evidence").at("waits").get<std::string>(), HasSubstr("held by its owner"));
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
}

TEST_F(SlurmSession, AJobThatCanNeverStartIsEnded) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows.front().reason = "PartitionTimeLimit";
  const Json state = session->Poll(Jobs({"rl-b"}))[0];
  EXPECT_EQ(state.at("state"), "ended");
  EXPECT_EQ(state.at("evidence").at("end"), "invalid");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_1"));
}

TEST_F(SlurmSession, CancelsTheTasksThatLive) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c", "rl-d"}));
  const Json told = session->Cancel(Jobs({"rl-d", "rl-a", "rl-b", "rl-unknown"}));
  EXPECT_EQ(told[0].at("cancelled"), true);
  EXPECT_EQ(told[3].at("cancelled"), false);
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_[0-1,3]"));
  slurm_.Finish("CANCELLED");
  EXPECT_EQ(session->Cancel(Jobs({"rl-a"}))[0].at("cancelled"), false);
}

TEST_F(SlurmSession, ATaskThatLeftTheQueueOfItsArrayWasCancelled) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  slurm_.rows.front().tasks = {{0}};
  const Json state = session->Poll(Jobs({"rl-b"}))[0];
  EXPECT_EQ(state.at("state"), "ended");
  EXPECT_EQ(state.at("evidence").at("end"), "cancelled");
  EXPECT_EQ(State(*session, "rl-a"), "queued");
}

TEST_F(SlurmSession, AThrottleHoldsForAllArraysTogether) {
  Options options;
  options.throttle = 2;
  slurm_.facts.max_array_size = 3;
  const auto session = Open(options);
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c", "rl-d", "rl-e"}));
  ASSERT_EQ(slurm_.submitted.size(), 2U);
  EXPECT_THAT(slurm_.submitted[0].dependency, IsEmpty());
  EXPECT_EQ(slurm_.submitted[1].dependency, "afterany:100");
}

TEST_F(SlurmSession, WithoutArraysEachJobIsItsOwn) {
  slurm_.facts.max_array_size = 0;
  const auto session = Open();
  EXPECT_EQ(session->Submit(Jobs({"rl-a", "rl-b"}))[1].at("native_id"), "101");
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  session->Cancel(Jobs({"rl-b"}));
  EXPECT_THAT(slurm_.cancelled, ElementsAre("101"));
}

}  // namespace
}  // namespace ridgeline::slurm
