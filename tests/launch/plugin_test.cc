// The loader: every check that can fail says which one failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "launch/launcher.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::launch {
namespace {

using testing::FakePluginDir;
using ::testing::HasSubstr;

Error ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::kInternal, ""};
}

class Loader : public ::testing::Test {
 protected:
  Error LoadError(const std::string& name, const std::filesystem::path& dir = FakePluginDir()) {
    return ErrorOf([&] { LoadLauncher(name, Json::object(), state_.path(), dir); });
  }
  TempDir state_;
};

TEST_F(Loader, NamesTheLaunchersThatAreThere) {
  const Error error = LoadError("scriptd");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
  EXPECT_THAT(error.message(), HasSubstr("no launcher 'scriptd'"));
  EXPECT_THAT(error.message(), HasSubstr("did you mean 'scripted'?"));
  EXPECT_THAT(error.hint(), HasSubstr("babbling, "));
}

TEST_F(Loader, TakesNoPathForAName) {
  for (const char* name : {"", "../plugins/scripted", "a/b", "x.so"}) {
    EXPECT_THAT(LoadError(name).message(), HasSubstr("there is no launcher '" + std::string(name) + "'"));
  }
}

TEST_F(Loader, SaysWhereAFolderHoldsNone) {
  EXPECT_THAT(LoadError("local", state_.path()).hint(), HasSubstr("holds no launcher"));
  EXPECT_TRUE(AvailableLaunchers(state_.path() / "missing").empty());
}

TEST_F(Loader, SaysWhatDlopenSays) {
  std::ofstream(state_.path() / "ridgeline-launcher-text.so") << "not a library";
  const Error error = LoadError("text", state_.path());
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr("cannot be loaded: "));
  EXPECT_THAT(error.message(), HasSubstr("ridgeline-launcher-text.so"));
}

TEST_F(Loader, SaysWhichCheckOfTheTableFailed) {
  EXPECT_THAT(LoadError("no-symbol").message(), HasSubstr("exports no ridgeline_launcher()"));
  EXPECT_THAT(LoadError("no-table").message(), HasSubstr("gave no table"));
  EXPECT_THAT(LoadError("other-abi").message(), HasSubstr("speaks launcher ABI 99, and this ridgeline speaks 3"));
  EXPECT_THAT(LoadError("short-table").message(), HasSubstr("its table has 16 bytes"));
  EXPECT_THAT(LoadError("null-call").message(), HasSubstr("its table has no poll_many"));
  EXPECT_THAT(LoadError("other-name").message(), HasSubstr("calls itself 'somebody-else'"));
}

TEST_F(Loader, RefusesALauncherOfAnEarlierAbiWithASentence) {
  const Error error = LoadError("version1");
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr("ridgeline-launcher-version1.so: it speaks launcher ABI 1, and this ridgeline "
                                         "speaks 3"));
  EXPECT_THAT(LoadError("version2").message(), HasSubstr("it speaks launcher ABI 2, and this ridgeline speaks 3"));
  EXPECT_EQ(error.hint(), "use the launcher that was built with this ridgeline");
}

TEST_F(Loader, SaysWhatTheLauncherSaysOfItsConfiguration) {
  const Error error = LoadError("bad-open");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
  EXPECT_EQ(error.message(), "launcher bad-open: no such setting");
  EXPECT_EQ(error.hint(), "there are two");
  EXPECT_THAT(LoadError("no-session").message(), HasSubstr("launcher no-session: open gave no session"));
}

TEST_F(Loader, PassesOverCapabilitiesItDoesNotKnow) {
  const LauncherCapabilities can = LoadLauncher("babbling", Json::object(), state_.path(), FakePluginDir())->can();
  EXPECT_TRUE(can.render);
  EXPECT_FALSE(can.queue || can.poll_pause);
}

TEST_F(Loader, MakesTheStateFolderButNotToRender) {
  const auto launcher = LoadLauncher("scripted", Json::object(), state_.path() / "a/b", FakePluginDir());
  launcher->Render({});
  EXPECT_FALSE(std::filesystem::exists(state_.path() / "a"));
  launcher->Probe();
  EXPECT_TRUE(std::filesystem::is_directory(state_.path() / "a/b"));
}

TEST_F(Loader, HandsOverWhatAJobAsksForAndItsOwnConfiguration) {
  const auto launcher = LoadLauncher("scripted", Json::object(), state_.path(), FakePluginDir());
  LaunchJob job;
  job.key = "rl-1";
  job.nodes = 4;
  job.cpus = 2;
  job.exec = {"/bin/true"};
  LaunchJob own = job;
  own.key = "rl-2";
  own.config = {{"scripted", {{"partition", "large"}}}};
  const LaunchJob jobs[] = {job, own};
  launcher->Submit(jobs);
  const auto asked = [&](const char* key) {
    return ReadJsonFile(state_.path() / (std::string(key) + ".json")).at("asked");
  };
  EXPECT_EQ(asked("rl-1").at("nodes"), 4);
  EXPECT_EQ(asked("rl-1").at("cpus"), 2);
  EXPECT_FALSE(asked("rl-1").contains("config")) << "the session's holds";
  EXPECT_EQ(asked("rl-2").at("config"), own.config);
}

TEST_F(Loader, BelievesNoReplyItHasNotChecked) {
  const auto launcher = LoadLauncher("babbling", Json::object(), state_.path(), FakePluginDir());
  LaunchJob job;
  job.key = "rl-1";
  job.exec = {"true"};
  const JobRef ref{"rl-1", ""};
  const auto message = [](const std::function<void()>& action) {
    const Error error = ErrorOf(action);
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    return error.message();
  };
  EXPECT_THAT(message([&] { launcher->Probe(); }), HasSubstr("launcher babbling: probe gave no reply"));
  EXPECT_THAT(message([&] { launcher->Render({&job, 1}); }), HasSubstr("'../escape.sh' is not a file name"));
  EXPECT_THAT(message([&] {
                launcher->Submit({&job, 1});
              }),
              HasSubstr("its reply to submit is not what submit replies"));
  EXPECT_THAT(message([&] { launcher->PollMany({&ref, 1}); }), HasSubstr("does not answer for job rl-1"));
}

TEST_F(Loader, DescribesAJobAsItsLauncherSays) {
  const auto ask = AskLaunchers(FakePluginDir());
  sweep::Launch launch;
  launch.launcher = "scripted";
  launch.config = {{"scripted", {{"cards", 4}, {"ram", "64GB"}}}};
  sweep::JobDescription job = (*ask)(launch, "node-7");
  EXPECT_FALSE(job.here || job.has_srun);
  ASSERT_TRUE(job.gpus);
  EXPECT_EQ(job.gpus->count, 4);
  EXPECT_EQ(job.gpus->asked, "cards asks for 4");
  EXPECT_EQ(job.memory_bytes, 64'000'000'000);
  EXPECT_EQ(job.pin, Json({{"host", "node-7"}}));
  launch.config = {{"scripted", {{"cards", 2}, {"anywhere", true}}}, {"another", {{"cards", 9}}}};
  job = (*ask)(launch, "node-7");
  EXPECT_EQ(job.gpus->count, 2) << "another configuration, another answer";
  EXPECT_FALSE(job.pin);
  launch.launcher = "nobody";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(ErrorOf([&] { (*ask)(launch, ""); }).message(), HasSubstr("there is no launcher 'nobody'"));
  }
  launch.launcher = "babbling";
  EXPECT_THAT(ErrorOf([&] { (*ask)(launch, ""); }).message(),
              HasSubstr("launcher babbling: its reply to describe is not what describe replies"));
}

TEST_F(Loader, PassesOnWhatALauncherRefuses) {
  const auto launcher = LoadLauncher("babbling", Json::object(), state_.path(), FakePluginDir());
  const JobRef ref{"rl-1", ""};
  const Error error = ErrorOf([&] { launcher->Cancel({&ref, 1}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_EQ(error.message(), "launcher babbling: no such partition");
  EXPECT_EQ(error.hint(), "see sinfo");
}

}  // namespace
}  // namespace ridgeline::launch
