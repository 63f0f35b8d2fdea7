// Who ended a job that Slurm calls cancelled: a person, a node, the controller, or this launcher.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/plugins/scripted_slurm.h"

namespace ridgeline::slurm {
namespace {

class SlurmCancelled : public SlurmSession {};

// The answers of 22.05 and 26.05 after each of these was done to them. Neither says who cancels a job.
TEST_F(SlurmCancelled, CancelledIsOnlyWhatAPersonDid) {
  struct Case {
    const char* what;
    std::string nodes;
    int exit_status;
    std::string slurms_reason;
    std::optional<std::string> log;
    std::string end;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"scancel, where it waits", "", 0, "Resources", {}, "cancelled", ""},
      {"scancel, where it is held", "", 0, "JobHeldUser", {}, "cancelled", ""},
      {"scancel, where it runs", "n1", SIGTERM, "None", "JOB 7 ON n1 CANCELLED AT", "cancelled", ""},
      {"scancel, and exec says so", "n1", 130 << 8, "None", "JOB 7 ON n1 CANCELLED AT", "cancelled", ""},
      {"scancel, as the accounting has it", "n1", 0, "", "JOB 7 ON n1 CANCELLED AT 2026", "cancelled", ""},
      {"the site's prolog failed", "n1", 0, "None", {}, "infrastructure", "start"},
      {"it failed, with PrologFlags=Alloc", "n1", 54, "None", {}, "infrastructure", "start"},
      {"the controller forgot that it had begun", "n1", 0, "None", "", "infrastructure", "lost"},
      // Not done to these releases: their nodes said this once, and their sources say so.
      {"an id that the node was told to end before", "n1", 0, "None", {}, "infrastructure", "start"},
      {"kill_invalid_depend", "", 0, "DependencyNeverSatisfied", {}, "infrastructure", "start"},
      {"given up by a driver that was killed", "", 0, "InvalidAccount", {}, "infrastructure", "rights"},
  };
  std::vector<std::string> keys;
  for (size_t task = 0; task < cases.size(); ++task) keys.push_back(fmt::format("rl-{}", task));
  const auto session = Open();
  session->Submit(Jobs(keys));
  slurm_.rows.clear();
  for (size_t task = 0; task < cases.size(); ++task) {
    const Case& made = cases[task];
    slurm_.rows.push_back({"rl-0", 100, std::vector<int64_t>{static_cast<int64_t>(task)}, "CANCELLED",
                           made.slurms_reason, made.exit_status, 0, 10, 15, 20, made.nodes});
    if (made.log) std::ofstream(LogFile(dir_ / "arrays", "rl-0", task)) << *made.log;
  }
  const Json states = session->Poll(Jobs(keys));
  for (size_t task = 0; task < cases.size(); ++task) {
    const Json evidence = states[task].at("evidence");
    EXPECT_EQ(evidence.at("end"), cases[task].end) << cases[task].what;
    EXPECT_EQ(evidence.value("reason", ""), cases[task].reason) << cases[task].what;
    EXPECT_EQ(evidence.at("slurm_state"), "CANCELLED");
  }
}

// If a node still has the array's own id at work, from before its controller forgot it, the node has that id cancelled:
// the whole array.
TEST_F(SlurmCancelled, AnArrayWhoseLastTaskANodeRefusedNobodyCancelled) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c"}));
  const auto row = [](int64_t task, int exit_status) {
    return Row{"rl-a", 100, std::vector<int64_t>{task}, "CANCELLED", "None", exit_status, 0, 10, 15, 20, "n1"};
  };
  slurm_.rows = {row(0, 130 << 8), row(1, SIGTERM), row(2, 0)};
  for (const size_t task : {size_t{0}, size_t{1}}) {
    std::ofstream(LogFile(dir_ / "arrays", "rl-a", task)) << "JOB 7 ON n1 CANCELLED AT 2026";
  }
  const auto reasons = [&] {
    std::vector<std::string> found;
    for (const Json& state : session->Poll(Jobs({"rl-a", "rl-b", "rl-c"}))) {
      found.push_back(state.at("evidence").value("reason", "cancelled"));
    }
    return found;
  };
  EXPECT_EQ(reasons(), (std::vector<std::string>{"lost", "lost", "start"}));
  slurm_.rows[2].nodes = "";
  slurm_.rows[2].restarts = 1;
  EXPECT_EQ(reasons(), (std::vector<std::string>{"lost", "lost", "start"})) << "it had been queued again";
  std::ofstream(LogFile(dir_ / "arrays", "rl-a", 2)) << "1 run\n";
  EXPECT_EQ(reasons(), (std::vector<std::string>{"lost", "lost", "lost"})) << "it had run already, and was forgotten";
  std::ofstream(LogFile(dir_ / "arrays", "rl-a", 2)) << "JOB 7 ON n1 CANCELLED AT 2026";
  EXPECT_EQ(reasons(), (std::vector<std::string>{"cancelled", "cancelled", "cancelled"})) << "its script had begun";
}

TEST_F(SlurmCancelled, AJobThatWeWereToldToCancelWasCancelledByAPerson) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  session->Cancel(Jobs({"rl-a"}));
  slurm_.Finish("CANCELLED");
  slurm_.rows.front().nodes = "n1";  // between its start and its script's start
  const Json states = Open()->Poll(Jobs({"rl-a", "rl-b"}));
  EXPECT_EQ(states[0].at("evidence").at("end"), "cancelled");
  EXPECT_EQ(states[1].at("evidence").at("end"), "infrastructure");
}

// A controller that restarts from an earlier state may have forgotten the array, but not the twin.
TEST_F(SlurmCancelled, ATwinThatWeCancelledIsNeverTheArray) {
  slurm_.facts.accounting = true;
  const auto session = Open();
  session->Submit(Jobs({"rl-a"}));
  Row twin = slurm_.rows.front();
  twin.job_id = 250;
  slurm_.rows.push_back(twin);
  EXPECT_EQ(State(*session, "rl-a"), "queued");
  twin.state = "CANCELLED";
  slurm_.rows = {twin};
  slurm_.accounted = {twin};
  const auto another = Open();
  for (Asked* each : {session.get(), another.get()}) {
    EXPECT_EQ(each->Poll(Jobs({"rl-a"}))[0].at("native_id"), "100_0");
    Later(11);
    EXPECT_EQ(State(*each, "rl-a"), "missing");
  }
}

// Slurm may have heard the request all the same, and keeps no record of a task that had not begun.
TEST_F(SlurmCancelled, AJobThatWasGivenUpIsNotCancelledEvenIfSlurmIsSilent) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  slurm_.rows.front().reason = "InvalidAccount";
  State(*session, "rl-b");
  Later(60);
  slurm_.cancels_are_answered = false;
  EXPECT_THROW(State(*session, "rl-b"), SlurmError);
  slurm_.rows.front().tasks = {{0}};
  const Json evidence = session->Poll(Jobs({"rl-b"}))[0].at("evidence");
  EXPECT_EQ(evidence.at("end"), "infrastructure");
  EXPECT_EQ(evidence.at("reason"), "rights");
}

// A driver was stopped for a while. Slurm has forgotten what ended meanwhile, whatever the reason.
TEST_F(SlurmCancelled, ATaskThatLeftTheQueueWhileNobodyAskedMayHaveRun) {
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b"}));
  State(*session, "rl-b");
  slurm_.rows.front().tasks = {{0}};
  Later(300);
  EXPECT_EQ(State(*session, "rl-b"), "queued");
  Later(11);
  EXPECT_EQ(State(*session, "rl-b"), "missing");
}

// A person cancels a job when it has a node and its script has not begun. Nodes, which run as root, report a cancelled
// job the same way.
TEST_F(SlurmCancelled, AsksTheAccountingLaterWhoCancelledAJob) {
  slurm_.facts.accounting = true;
  const auto session = Open();
  session->Submit(Jobs({"rl-a", "rl-b", "rl-c"}));
  const auto row = [](int64_t task, bool by_its_user) {
    Row made{"rl-a", 100, std::vector<int64_t>{task}, "CANCELLED", "None", 0, 0, 10, 15, 20, "n1"};
    made.by_its_user = by_its_user;
    return made;
  };
  slurm_.rows = {row(0, false), row(1, false), row(2, false)};
  EXPECT_EQ(State(*session, "rl-a"), "running") << "nobody knows yet";
  slurm_.accounted = {row(0, true), row(1, false)};
  Later(9);
  const Json states = session->Poll(Jobs({"rl-a", "rl-b", "rl-c"}));
  EXPECT_EQ(states[0].at("evidence").at("end"), "cancelled");
  EXPECT_EQ(states[1].at("evidence").at("reason"), "start");
  EXPECT_EQ(states[2].at("state"), "running");
  Later(11);
  EXPECT_EQ(session->Poll(Jobs({"rl-c"}))[0].at("evidence").at("reason"), "start") << "nobody will say";
}

}  // namespace
}  // namespace ridgeline::slurm
