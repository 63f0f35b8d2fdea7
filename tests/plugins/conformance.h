// What every launcher must do, whatever is behind it. A launcher's test program includes this suite once, and
// instantiates it with the launchers that it can run.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "ridgeline/launcher.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::testing {

struct Candidate {
  std::string label;
  std::string launcher;
  std::filesystem::path plugin_dir;
  Json config;
  int most_starts = 1;  // a scheduler that requeues runs a job again; the job itself runs only what is missing
  // Programs that cannot be submitted. Nobody knows beforehand whether an image has a program.
  std::vector<std::string> bad_exec = {"/nonexistent/program"};
  std::string skip = {};                                                  // why it cannot be tested here
  std::function<std::shared_ptr<void>()> world = [] { return nullptr; };  // what must exist while it is tested
};

inline std::string Label(const ::testing::TestParamInfo<Candidate>& info) { return info.param.label; }
inline void PrintTo(const Candidate& candidate, std::ostream* out) { *out << candidate.label; }

class Conformance : public ::testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    if (!GetParam().skip.empty()) GTEST_SKIP() << GetParam().skip;
    world_ = GetParam().world();
  }

  // Each call makes a new driver that knows only the state folder.
  std::unique_ptr<launch::Launcher> Load() const {
    return launch::LoadLauncher(GetParam().launcher, GetParam().config, state_.path(), GetParam().plugin_dir);
  }

  // A job that notes each start in a file, then sleeps and exits as told.
  launch::LaunchJob MakeJob(const std::string& key, const std::string& sleep_s = "0", int exit_code = 0) const {
    launch::LaunchJob job;
    job.key = key;
    job.sweep = "a sweep; rm -rf $HOME `id` '\"<b>\n";
    job.job_dir = work_.path();
    job.job_file = work_.path() / "job.json";
    job.exec = {"/bin/sh",   "-c",    "echo start >> \"$0\"; sleep \"$1\"; exit \"$2\"",
                Marker(key), sleep_s, std::to_string(exit_code)};
    return job;
  }
  std::filesystem::path Marker(const std::string& key) const { return work_.path() / ("started by " + key); }
  int Starts(const std::string& key) const {
    if (!std::filesystem::exists(Marker(key))) return 0;
    const std::string text = ReadFile(Marker(key));
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  std::string SubmitOne(const launch::LaunchJob& job) const {
    const std::vector<launch::Submission> answers = Load()->Submit({&job, 1});
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers.front().key, job.key);
    EXPECT_FALSE(answers.front().error) << answers.front().error->what();
    return answers.front().native_id;
  }
  launch::JobState PollOne(const std::string& key) const {
    const launch::JobRef ref{key, ""};
    return Load()->PollMany({&ref, 1}).front();
  }
  launch::JobState WaitForEnd(const std::string& key) const {
    launch::JobState state;
    EXPECT_TRUE(Eventually([&] {
      state = PollOne(key);
      return state.phase == launch::JobPhase::kEnded;
    })) << launch::PhaseName(state.phase);
    return state;
  }
  bool CancelOne(const std::string& key) const {
    const launch::JobRef ref{key, ""};
    return Load()->Cancel({&ref, 1}).front();
  }

  std::shared_ptr<void> world_;
  TempDir state_;
  TempDir work_;
};

TEST_P(Conformance, SaysWhetherItIsAvailable) {
  const launch::LauncherStatus status = Load()->Probe();
  EXPECT_TRUE(status.available) << status.why;
  EXPECT_FALSE(status.description.empty());
  EXPECT_EQ(Load()->name(), GetParam().launcher);
}

TEST_P(Conformance, RunsASubmittedJobToItsEnd) {
  const std::string native_id = SubmitOne(MakeJob("rl-1"));
  EXPECT_FALSE(native_id.empty());
  const launch::JobState state = WaitForEnd("rl-1");
  EXPECT_EQ(state.key, "rl-1");
  EXPECT_EQ(state.native_id, native_id);
  EXPECT_EQ(state.evidence.at("exit_code"), "0");
  EXPECT_EQ(state.evidence.count("end"), 0U);
  EXPECT_GE(Starts("rl-1"), 1);
  EXPECT_LE(Starts("rl-1"), GetParam().most_starts);
}

TEST_P(Conformance, AnEndedJobStaysEnded) {
  SubmitOne(MakeJob("rl-1"));
  WaitForEnd("rl-1");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PollOne("rl-1").phase, launch::JobPhase::kEnded);
}

TEST_P(Conformance, TellsTheExitCodeOfAJobThatFails) {
  SubmitOne(MakeJob("rl-1", "0", 3));
  EXPECT_EQ(WaitForEnd("rl-1").evidence.at("exit_code"), "3");
}

TEST_P(Conformance, AKeyIsNeverStartedASecondTime) {
  const launch::LaunchJob job = MakeJob("rl-1", "0.2");
  const std::string native_id = SubmitOne(job);
  EXPECT_EQ(SubmitOne(job), native_id);  // while it waits or runs
  PollOne("rl-1");
  EXPECT_EQ(SubmitOne(job), native_id);
  WaitForEnd("rl-1");
  const int starts = Starts("rl-1");
  EXPECT_LE(starts, GetParam().most_starts);
  EXPECT_EQ(SubmitOne(job), native_id);  // after it has ended
  EXPECT_EQ(PollOne("rl-1").phase, launch::JobPhase::kEnded);
  EXPECT_EQ(Starts("rl-1"), starts);
}

TEST_P(Conformance, KnowsNothingOfAKeyNobodySubmitted) {
  EXPECT_EQ(PollOne("rl-unknown").phase, launch::JobPhase::kMissing);
  EXPECT_FALSE(CancelOne("rl-unknown"));
}

TEST_P(Conformance, AnswersForEveryJobInTheOrderAsked) {
  const launch::LaunchJob jobs[] = {MakeJob("rl-b"), MakeJob("rl-a"), MakeJob("rl-c")};
  const std::vector<launch::Submission> submitted = Load()->Submit(jobs);
  ASSERT_EQ(submitted.size(), 3U);
  EXPECT_EQ(submitted[1].key, "rl-a");
  std::vector<launch::JobRef> refs = {{"rl-c", ""}, {"rl-missing", ""}, {"rl-a", ""}, {"rl-b", ""}};
  const auto ended = [&] {
    const std::vector<launch::JobState> states = Load()->PollMany(refs);
    EXPECT_EQ(states.size(), refs.size());
    for (size_t i = 0; i < refs.size(); ++i) EXPECT_EQ(states[i].key, refs[i].key);
    EXPECT_EQ(states[1].phase, launch::JobPhase::kMissing);
    return states[0].phase == launch::JobPhase::kEnded && states[2].phase == launch::JobPhase::kEnded &&
           states[3].phase == launch::JobPhase::kEnded;
  };
  EXPECT_TRUE(Eventually(ended));
  for (const char* key : {"rl-a", "rl-b", "rl-c"}) EXPECT_GE(Starts(key), 1);
}

TEST_P(Conformance, OneJobThatCannotBeSubmittedFailsAlone) {
  launch::LaunchJob bad = MakeJob("rl-bad");
  bad.exec = GetParam().bad_exec;
  const launch::LaunchJob jobs[] = {bad, MakeJob("rl-good")};
  const std::vector<launch::Submission> answers = Load()->Submit(jobs);
  ASSERT_TRUE(answers[0].error);
  EXPECT_FALSE(answers[0].error->message().empty());
  EXPECT_TRUE(answers[0].native_id.empty());
  EXPECT_FALSE(answers[1].error);
  WaitForEnd("rl-good");
  EXPECT_EQ(PollOne("rl-bad").phase, launch::JobPhase::kMissing);
}

TEST_P(Conformance, ACancelledJobEndsAndSaysSo) {
  SubmitOne(MakeJob("rl-1", "600"));
  EXPECT_TRUE(CancelOne("rl-1"));
  EXPECT_EQ(WaitForEnd("rl-1").evidence.at("end"), "cancelled");
  EXPECT_FALSE(CancelOne("rl-1"));
}

TEST_P(Conformance, AnEndedJobCannotBeCancelled) {
  SubmitOne(MakeJob("rl-1"));
  WaitForEnd("rl-1");
  EXPECT_FALSE(CancelOne("rl-1"));
  EXPECT_EQ(PollOne("rl-1").evidence.count("end"), 0U);
}

TEST_P(Conformance, RendersFilesWithoutStartingAnything) {
  const launch::LaunchJob job = MakeJob("rl-1");
  const std::vector<launch::LaunchFile> files = Load()->Render({&job, 1}).files;
  ASSERT_FALSE(files.empty());
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](const launch::LaunchFile& file) {
    return file.content.find("/bin/sh") != std::string::npos;
  }));
  EXPECT_EQ(Starts("rl-1"), 0);
  EXPECT_EQ(PollOne("rl-1").phase, launch::JobPhase::kMissing);
}

TEST_P(Conformance, RefusesAKeyThatIsAPath) {
  const launch::LaunchJob job = MakeJob("../rl-1");
  try {
    EXPECT_TRUE(Load()->Submit({&job, 1}).front().error);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
  }
  EXPECT_FALSE(std::filesystem::exists(state_.path().parent_path() / "rl-1"));
}

TEST_P(Conformance, SaysWhatItCan) {
  const auto launcher = Load();
  const launch::LauncherCapabilities can = launcher->can();
  EXPECT_EQ(launcher->Probe().max_jobs > 0, can.queue);
  launcher->PollMany({});
  EXPECT_EQ(launcher->PollPauseNs() > 0, can.poll_pause);
  EXPECT_TRUE(can.render);
}

// The C boundary itself: every call gets an answer, and no exception crosses.
class Boundary {
 public:
  explicit Boundary(const std::filesystem::path& file) : library_(::dlopen(file.c_str(), RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
    const auto entry = reinterpret_cast<ridgeline_launcher_entry>(::dlsym(library_, "ridgeline_launcher"));
    table_ = entry(RIDGELINE_LAUNCHER_ABI_VERSION);
    EXPECT_EQ(entry(999)->abi_version, RIDGELINE_LAUNCHER_ABI_VERSION);  // it states its own version
  }
  Boundary(const Boundary&) = delete;
  Boundary& operator=(const Boundary&) = delete;
  ~Boundary() { ::dlclose(library_); }

  const ridgeline_launcher_table& table() const { return *table_; }

  ridgeline_launcher_session* Open(const std::string& request) const {
    ridgeline_launcher_session* session = nullptr;
    const bool opened = Answers([&](char** reply, size_t* size) {
      return table_->open(request.data(), request.size(), &session, reply, size);
    });
    EXPECT_EQ(session != nullptr, opened) << request;
    return session;
  }
  // Whether the call did what it was asked.
  bool Answers(const std::function<int(char**, size_t*)>& call, Json* answer = nullptr) const {
    char* reply = nullptr;
    size_t size = 0;
    const int failed = call(&reply, &size);
    EXPECT_NE(reply, nullptr);
    if (reply == nullptr) return false;
    const Json document = Json::parse(reply, reply + size);
    table_->free(reply);
    if (answer != nullptr) *answer = document;
    if (failed == 0) return true;
    EXPECT_THAT(document.at("kind").get<std::string>(), ::testing::AnyOf("usage", "invalid_input", "infrastructure"));
    EXPECT_FALSE(document.at("message").get<std::string>().empty());
    return false;
  }

 private:
  void* library_;
  const ridgeline_launcher_table* table_ = nullptr;
};

TEST_P(Conformance, AnswersEveryRequestWithADocument) {
  const Boundary boundary(GetParam().plugin_dir / ("ridgeline-launcher-" + GetParam().launcher + ".so"));
  const ridgeline_launcher_table& table = boundary.table();
  const std::string requests[] = {
      "", "nonsense", "[]", "{}", "{\"jobs\": 3}", "\xff\xfe", R"({"config": 1, "state_dir": 2, "jobs": [{}]})"};
  for (const std::string& request : requests) EXPECT_EQ(boundary.Open(request), nullptr) << request;
  ridgeline_launcher_session* session =
      boundary.Open(Json{{"config", GetParam().config}, {"state_dir", state_.path().string()}}.dump());
  ASSERT_NE(session, nullptr);
  for (const ridgeline_launcher_call call : {table.probe, table.render, table.submit, table.poll_many, table.cancel}) {
    for (const std::string& request : requests) {
      boundary.Answers(
          [&](char** reply, size_t* size) { return call(session, request.data(), request.size(), reply, size); });
    }
  }
  table.close(session);
  for (const std::string& request : requests) {
    boundary.Answers(
        [&](char** reply, size_t* size) { return table.describe(request.data(), request.size(), reply, size); });
  }
}

TEST_P(Conformance, DescribesAJobOfAnyConfiguration) {
  const auto ask = launch::AskLaunchers(GetParam().plugin_dir);
  sweep::Launch launch;
  launch.launcher = GetParam().launcher;
  for (const Json& own : {Json(), Json::object(), Json("text"), Json{{"gpus", "many"}, {"memory", -1}}}) {
    launch.config = {{launch.launcher, own}};
    const sweep::JobDescription job = (*ask)(launch, "node-7");
    EXPECT_EQ(job.memory_bytes, 0) << own;
    if (job.gpus) {
      EXPECT_FALSE(job.gpus->setting.empty());
    }
    if (job.pin) {
      EXPECT_NE(*job.pin, Json::object()) << "no node is named yet";
    }
  }
}

TEST_P(Conformance, SubmitsWhatItCanInATimeAndTheRestLater) {
  const Boundary boundary(GetParam().plugin_dir / ("ridgeline-launcher-" + GetParam().launcher + ".so"));
  const ridgeline_launcher_table& table = boundary.table();
  ridgeline_launcher_session* session =
      boundary.Open(Json{{"config", GetParam().config}, {"state_dir", state_.path().string()}}.dump());
  ASSERT_NE(session, nullptr);
  Json jobs = Json::array();
  for (const int64_t limit_s : {600, 1200, 1800}) {  // no two of them are alike
    const launch::LaunchJob job = MakeJob("rl-" + std::to_string(limit_s));
    jobs.push_back({{"key", job.key},
                    {"sweep", job.sweep},
                    {"job_file", job.job_file.string()},
                    {"job_dir", job.job_dir.string()},
                    {"nodes", 1},
                    {"cpus", 0},
                    {"memory_bytes", 0},
                    {"time_limit_s", limit_s},
                    {"save_time_s", 0},
                    {"own_trainer", false},
                    {"exec", job.exec}});
  }
  const std::string request = Json{{"jobs", jobs}, {"within_ms", 0}}.dump();
  size_t begun = 0;
  for (size_t call = 0; call < jobs.size() && begun < jobs.size(); ++call) {
    Json reply;
    ASSERT_TRUE(boundary.Answers(
        [&](char** bytes, size_t* size) { return table.submit(session, request.data(), request.size(), bytes, size); },
        &reply));
    const size_t had = std::exchange(begun, 0);
    for (const Json& answer : reply.at("jobs")) {
      EXPECT_FALSE(answer.contains("error")) << answer;
      EXPECT_NE(answer.contains("native_id"), answer.contains("later")) << answer;
      if (answer.contains("native_id")) ++begun;
    }
    EXPECT_GT(begun, had) << "each call begins at least one";
  }
  EXPECT_EQ(begun, jobs.size());
  table.close(session);
  for (const char* key : {"rl-600", "rl-1200", "rl-1800"}) WaitForEnd(key);
}

TEST_P(Conformance, SessionsStandBesideEachOther) {
  const TempDir other;
  const auto beside = launch::LoadLauncher(GetParam().launcher, GetParam().config, other.path(), GetParam().plugin_dir);
  const auto launcher = Load();
  const launch::LaunchJob job = MakeJob("rl-1");
  ASSERT_FALSE(launcher->Submit({&job, 1}).front().error);
  const launch::JobRef ref{"rl-1", ""};
  EXPECT_EQ(beside->PollMany({&ref, 1}).front().phase, launch::JobPhase::kMissing);
  WaitForEnd("rl-1");
}

}  // namespace ridgeline::testing
