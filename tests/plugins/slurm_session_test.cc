// The Slurm launcher's session, on a Slurm that a test scripts, for cases that a real one cannot produce on demand.
#include "slurm/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <utility>

#include "tests/plugins/scripted_slurm.h"

namespace ridgeline::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  EXPECT_FALSE(states[0].at("evidence").contains("end")) << "whether a trainer is at fault exec alone knows";
  EXPECT_EQ(states[0].at("evidence").at("queue_wait_s"), "5");
  EXPECT_EQ(states[0].at("evidence").at("restarts"), "1");
  EXPECT_EQ(states[0].at("evidence").at("node"), "n2");
  EXPECT_EQ(states[0].at("started_unix_s"), 15);
  EXPECT_FALSE(states[1].at("evidence").contains("end"));
}

TEST_F(SlurmSession, AScriptThatItsNodeCouldNotStartIsTheNodesFailure) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows = {{"rl-a", 100, std::vector<int64_t>{0, 1}, "FAILED", "NonZeroExitCode", 2 << 8, 0, 10, 15, 20, "n1"}};
  const auto log = [&](size_t task) { return std::ofstream(LogFile(dir_ / "arrays", "rl-a", task)); };
  log(0) << "slurmstepd-n1: error: execve(): /spool/job00017/slurm_script: No such file or directory\n";
  log(1) << "ridgeline: cannot read job.json\n";
  const Json states = session->Poll(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(states[0].at("evidence").at("end"), "infrastructure");
  EXPECT_EQ(states[0].at("evidence").at("reason"), "node");
  EXPECT_EQ(states[0].at("evidence").at("slurm_state"), "FAILED");
  EXPECT_THAT(states[0].at("evidence").at("log_tail"), HasSubstr("slurm_script"));
  EXPECT_FALSE(states[1].at("evidence").contains("end"));
  EXPECT_EQ(states[1].at("evidence").at("message"), "the job's script failed");
}

TEST_F(SlurmSession, NamesTheNodesThatFailed) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c", "rl-d"}));
  const auto row = [](int64_t task, const char* state, const char* nodes) {
    return Row{"rl-a", 100, std::vector<int64_t>{task}, state, "", 0, 0, 10, 15, 20, nodes};
  };
  slurm_.rows = {row(0, "NODE_FAIL", "n[1-2]"), row(1, "PREEMPTED", "n3"), row(2, "FAILED", "n[4-5]"),
                 row(3, "CANCELLED", "n6")};
  slurm_.rows[2].exit_status = 3 << 8;
  std::ofstream(LogFile(dir_ / "arrays", "rl-a", 2)) << "ridgeline: n5: not started (node): the folder is not there\n";
  std::ofstream(LogFile(dir_ / "arrays", "rl-a", 3)) << "Error running slurm prolog: 1\n";
  const Json states = session->Poll(Jobs({"rl-a", "rl-b", "rl-c", "rl-d"}));
  const std::pair<const char*, const char*> expected[] = {
      {"node", "n1 n2"}, {"preempted", "n3"}, {"node", "n5"}, {"start", "n6"}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(states[i].at("evidence").at("end"), "infrastructure");
    EXPECT_EQ(states[i].at("evidence").at("reason"), expected[i].first);
    EXPECT_EQ(states[i].at("evidence").at("node"), expected[i].second);
  }
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

// Ctrl-C in a slow sbatch: nobody knows yet whether Slurm has the jobs, and they must end all the same.
TEST_F(SlurmSession, CancelsAJobThatAppearsAfterItsCancellation) {
  slurm_.on_submit = [](const BatchJob&) { throw SlurmError(Trouble::kNoAnswer, "sbatch was ended by signal 2"); };
  auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(session->Cancel(Jobs({"rl-a"}))[0].at("cancelled"), true);
  Later(11);
  EXPECT_EQ(State(*session, "rl-a"), "queued") << "it may still come";
  slurm_.rows = {{"rl-a", 7, std::vector<int64_t>{0, 1}, "PENDING", "", 0, 0, 1, 0, 0, ""}};
  session = Open();  // another driver knows it, too
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("7_0"));
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("7_0")) << "once";
  EXPECT_THAT(slurm_.submitted, IsEmpty());
}

TEST_F(SlurmSession, ACancelledJobThatNeverAppearedIsCancelled) {
  slurm_.on_submit = [](const BatchJob&) { throw SlurmError(Trouble::kNoAnswer, "sbatch was ended by signal 2"); };
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  session->Cancel(Jobs({"rl-a"}));
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  Later(11);
  slurm_.silent = true;
  EXPECT_THROW(State(*session, "rl-a"), SlurmError);
  slurm_.silent = false;
  EXPECT_EQ(State(*session, "rl-a"), "queued") << "it was silent meanwhile";
  Later(13);
  EXPECT_EQ(session->Poll(Jobs({"rl-a"}))[0].at("evidence").at("end"), "cancelled");
  EXPECT_EQ(State(*session, "rl-b"), "missing");
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
  EXPECT_EQ(error.at("reason"), "rights");
  EXPECT_THAT(error.at("hint").get<std::string>(), HasSubstr("sinfo"));
  EXPECT_FALSE(error.contains("retry"));
  EXPECT_EQ(State(*Open(), "rl-a"), "missing");
}

TEST_F(SlurmSession, ALimitThatRefusesForGoodIsNamedAndEndsAtOnce) {
  slurm_.on_submit = [](const BatchJob&) {
    const std::string words = "QOSMaxWallDurationPerJobLimit; Job violates accounting/QOS policy (job submit limit, …)";
    throw SlurmError(TroubleOf(0, words), words);
  };
  const Json error = Open()->Submit(Jobs({"rl-a"}))[0].at("error");
  EXPECT_FALSE(error.contains("retry"));
  EXPECT_EQ(error.at("reason"), "limit");
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("QOSMaxWallDurationPerJobLimit"));
}

TEST_F(SlurmSession, NodesThatAreToBeAvoidedAreLeftOutUnlessNoneAreLeft) {
  Json jobs = Jobs({"rl-a"});
  jobs[0]["avoid"] = {"n1"};
  const auto session = Open();
  session->Submit(jobs);
  ASSERT_EQ(slurm_.submitted.size(), 1U);
  EXPECT_EQ(ExcludeText(slurm_.submitted[0]), "n1");
  slurm_.on_submit = [](const BatchJob& batch) {
    if (!batch.avoid.empty()) throw SlurmError(Trouble::kRefused, "Requested node configuration is not available");
  };
  jobs[0]["key"] = "rl-b";
  EXPECT_TRUE(session->Submit(jobs)[0].contains("native_id"));
  EXPECT_EQ(ExcludeText(slurm_.submitted[1]), "");
}

TEST_F(SlurmSession, ARecordOfARefusedSubmissionIsNotTheJob) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  Row refused = slurm_.rows.front();
  refused.job_id = 90;
  refused.state = "FAILED";
  slurm_.rows.insert(slurm_.rows.begin(), refused);
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  EXPECT_EQ(State(*Open(), "rl-a"), "queued");
  // The same if an answer never came.
  slurm_.after_submit = [] { throw SlurmError(Trouble::kNoAnswer, "Socket timed out"); };
  session->Submit(Jobs({"rl-b"}));
  refused.name = "rl-b";
  slurm_.rows.insert(slurm_.rows.begin(), refused);
  EXPECT_EQ(session->Poll(Jobs({"rl-b"}))[0].at("native_id"), "101_0");
}

TEST_F(SlurmSession, PartsAreCountedOverAllSubmissions) {
  slurm_.facts.max_array_size = 2;
  Open()->Submit(Jobs({"rl-a", "rl-b", "rl-c"}));
  Open()->Submit(Jobs({"rl-d"}));
  std::vector<std::string> names;
  for (const BatchJob& batch : slurm_.submitted) names.push_back(batch.job_name);
  EXPECT_THAT(names, ElementsAre("a-sweep.1.rl-a", "a-sweep.2.rl-c", "a-sweep.3.rl-d"));
}

TEST_F(SlurmSession, TheAccountingIsAskedByTheNamesThatSlurmHas) {
  slurm_.facts.accounting = true;
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.clear();
  State(*session, "rl-a");
  EXPECT_THAT(slurm_.asked_accounting, ElementsAre("a-sweep.1.rl-a"));
}

TEST_F(SlurmSession, OneMailComesWhenAllHasEnded) {
  Options options;
  options.mail = "me@example.org";
  options.throttle = 1;
  slurm_.facts.max_array_size = 2;
  Session session(dir_.path(), options, std::make_unique<ScriptedSlurm>(slurm_), clock_);
  session.Leave();
  EXPECT_THAT(slurm_.submitted, IsEmpty()) << "nothing was submitted";
  session.Submit(Jobs({"rl-a", "rl-b", "rl-c"}));
  session.Leave();
  session.Leave();
  ASSERT_EQ(slurm_.submitted.size(), 3U);
  EXPECT_EQ(slurm_.submitted[2].dependency, "afterany:100:101");
  EXPECT_THAT(slurm_.submitted[2].options.sbatch, ElementsAre("--mail-type=END", "--mail-user=me@example.org"));
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

// MaxSubmitJobs=0, in the words of 22.05.
TEST_F(SlurmSession, AUserWhoMaySubmitNoJobIsToldAtOnce) {
  slurm_.on_submit = [](const BatchJob&) {
    throw SlurmError(Trouble::kBusy, "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy");
  };
  const auto session = Open();
  const Json jobs = Jobs({"rl-a", "rl-b", "rl-c"});
  EXPECT_EQ(session->Submit(jobs)[0].at("error").at("retry"), true) << "a shorter array may be taken";
  slurm_.rows = {{"", 7, {}, "RUNNING", "", 0, 0, 1, 2, 0, "n1"}};
  EXPECT_EQ(session->Submit(jobs)[0].at("error").at("retry"), true) << "a job of theirs may end";
  slurm_.rows.front().state = "COMPLETED";
  const Json error = session->Submit(jobs)[0].at("error");
  EXPECT_FALSE(error.contains("retry"));
  EXPECT_EQ(error.at("reason"), "limit");
}

TEST_F(SlurmSession, ALimitWhoseJobsEndMeanwhileIsNoRefusal) {
  const auto session = Open();
  slurm_.rows = {{"", 7, {}, "RUNNING", "", 0, 0, 1, 2, 0, "n1"}};
  slurm_.on_submit = [&](const BatchJob&) {
    if (slurm_.rows.front().state == "COMPLETED") return;
    slurm_.rows.front().state = "COMPLETED";  // after Slurm has counted it, and before it is asked what lives
    throw SlurmError(Trouble::kBusy, "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy");
  };
  EXPECT_TRUE(session->Submit(Jobs({"rl-a"}))[0].contains("native_id"));
}

// For example by a site's job_submit.lua, or scontrol.
TEST_F(SlurmSession, AJobWhoseNameWasChangedIsKnownByItsIdAndItsTime) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.front().name = "";
  slurm_.rows.front().submitted_s = clock_.UnixS() + 1;
  slurm_.rows.front().state = "RUNNING";
  EXPECT_EQ(State(*session, "rl-a"), "running");
  Later(1000);
  EXPECT_EQ(State(*Open(), "rl-a"), "running");
  slurm_.rows.front().submitted_s += 1;
  EXPECT_EQ(State(*Open(), "rl-a"), "queued") << "another job has that id now";
  slurm_.rows.front().restarts = 1;
  EXPECT_EQ(State(*Open(), "rl-a"), "running") << "Slurm requeued it";
  slurm_.rows.front().state = "COMPLETED";
  EXPECT_EQ(State(*Open(), "rl-a"), "ended");
  slurm_.facts.accounting = true;
  slurm_.accounted_by_id = std::exchange(slurm_.rows, {});
  EXPECT_EQ(State(*Open(), "rl-a"), "ended") << "the accounting has it";
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
}

TEST_F(SlurmSession, CancelsALostJobUnlessItsIdIsAnothers) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows.clear();
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  Later(11);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(State(*session, "rl-b"), "missing");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_1")) << "once: it would run twice";
  slurm_.rows = {{"", 100, {}, "RUNNING", "", 0, 0, 1, 2, 0, "n1"}};
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  Later(11);
  EXPECT_EQ(State(*session, "rl-a"), "missing");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_1")) << "another job of the user's";
}

// The controller was killed, forgot the array, and gave its id to somebody else.
TEST_F(SlurmSession, AnIdThatIsSomebodyElsesIsNotOurJob) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows = {{"rl-zzz", 100, std::vector<int64_t>{0}, "RUNNING", "", 0, 0, 1, 2, 0, "n1"}};
  EXPECT_EQ(State(*session, "rl-a"), "queued");  // a controller may know a job late
  Later(11);
  EXPECT_EQ(State(*session, "rl-a"), "missing");
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
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

TEST_F(SlurmSession, AsksTheAccountingForJobsThatTheControllerForgot) {
  slurm_.facts.accounting = true;
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.clear();
  slurm_.accounted = {{"rl-a", 100, std::vector<int64_t>{0}, "TIMEOUT", "", 15, 0, 1, 2, 3, "n1"}};
  const Json state = session->Poll(Jobs({"rl-a"}))[0];
  EXPECT_EQ(state.at("state"), "ended");
  EXPECT_EQ(state.at("evidence").at("end"), "timeout");
}

TEST_F(SlurmSession, RemembersUnchangedAnswers) {
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
  EXPECT_EQ(state.at("evidence").at("waits"), "held by its owner (JobHeldUser)") << "the same of all jobs";
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
}

TEST_F(SlurmSession, SaysWhyAndUntilWhenAJobWaits) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.front().reason = "Priority";
  slurm_.rows.front().expected_s = 1'795'310'999;
  const Json evidence = session->Poll(Jobs({"rl-a"}))[0].at("evidence");
  EXPECT_EQ(evidence.at("pending"), "Priority");
  EXPECT_EQ(evidence.at("expected_unix_s"), "1795310999");
  EXPECT_FALSE(evidence.contains("waits")) << "there is nothing to do about it";
  slurm_.rows.front().reason = "ReqNodeNotAvail, UnavailableNodes:n2";
  EXPECT_EQ(session->Poll(Jobs({"rl-a"}))[0].at("evidence").at("no_node"),
            "the nodes it may go to are not available (ReqNodeNotAvail, UnavailableNodes:n2)");
}

TEST_F(SlurmSession, AJobOfSeveralPartitionsWaitsForTheOther) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  slurm_.rows.front().reason = "PartitionTimeLimit";
  slurm_.rows.front().partitions = "short,long";
  for (int i = 0; i < 3; ++i, Later(60)) EXPECT_EQ(State(*session, "rl-a"), "queued");
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
}

// An administrator may lower a limit for a moment, and jobs may have waited for days.
TEST_F(SlurmSession, AJobThatCanNotStartAsThingsAreIsEndedWhereTheyStaySo) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows.front().reason = "PartitionTimeLimit";
  const Json waits = session->Poll(Jobs({"rl-b"}))[0];
  EXPECT_EQ(waits.at("state"), "queued");
  EXPECT_THAT(waits.at("evidence").at("waits").get<std::string>(), HasSubstr("more time than its partition gives"));
  Later(40);
  slurm_.rows.front().reason = "Priority";
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  slurm_.rows.front().reason = "PartitionTimeLimit";
  Later(40);
  EXPECT_EQ(State(*session, "rl-b"), "queued") << "it was lifted in between";
  Later(59);
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
  Later(1);
  const Json state = session->Poll(Jobs({"rl-b"}))[0];
  EXPECT_EQ(state.at("state"), "ended");
  EXPECT_EQ(state.at("evidence").at("end"), "infrastructure");
  EXPECT_EQ(state.at("evidence").at("reason"), "limit");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_1"));
}

TEST_F(SlurmSession, JobsThatWaitInVainAreEndedTogether) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c"}));
  slurm_.rows.front().reason = "InvalidAccount";
  session->Poll(Jobs({"rl-a", "rl-b", "rl-c"}));
  Later(60);
  const Json states = session->Poll(Jobs({"rl-a", "rl-b", "rl-c"}));
  for (const Json& state : states) EXPECT_EQ(state.at("evidence").at("reason"), "rights");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("100_0", "100_1", "100_2"));
  EXPECT_EQ(slurm_.cancel_calls, 1);
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

TEST_F(SlurmSession, AThrottleAndADependencyHoldTogether) {
  Options options;
  options.throttle = 2;
  options.dependency = "afterok:7";
  slurm_.facts.max_array_size = 3;
  const auto session = Open(options);
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c", "rl-d"}));
  ASSERT_EQ(slurm_.submitted.size(), 2U);
  EXPECT_EQ(slurm_.submitted[0].dependency, "afterok:7");
  EXPECT_EQ(slurm_.submitted[1].dependency, "afterok:7,afterany:100");
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
