// `ridgeline run` and `collect` as the client of an NFS server, whose caches delay what nodes wrote
// (tests/fakes/nfs_client.cc): no result is lost because of that.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;

// A scheduler that runs a job when it is asked, as on another machine: without the client's caches.
class NfsClient : public ::testing::Test {
 protected:
  NfsClient() { ::setenv("RIDGELINE_HOME", testing::FakePluginDir().parent_path().c_str(), 1); }
  ~NfsClient() override { ::unsetenv("RIDGELINE_HOME"); }
  void SetUp() override {
#ifdef RIDGELINE_SANITIZED
    GTEST_SKIP() << "sanitizers are preloaded first";
#endif
    WriteFile(cli_.dir / "sweep.yaml",
              fmt::format("name: test\ndefaults: {{model: llama-10m, seq_length: 64}}\nmatrix: {{seed: [1, 2]}}\n"
                          "launch: {{launcher: scripted, trainer: [{}, ok], retry: {{lost: 0}}, "
                          "scripted: {{queue: 10}}}}\n",
                          testing::FakeProgram("fake_trainer").string()));
  }

  Cli::Output RunBehind(const std::vector<std::string>& settings) {
    cli_.prefix = {"env", "LD_PRELOAD=" + testing::FakeProgram("nfs_client.so").string(),
                   "NFS_FOLDER=" + (cli_.dir / "ridgeline-out/jobs").string(), "NFS_LATE_MS=300",
                   "NFS_LOG=" + Log().string()};
    cli_.prefix.insert(cli_.prefix.end(), settings.begin(), settings.end());
    const auto output = cli_.Run({"run", "sweep.yaml"});
    cli_.prefix.clear();
    return output;
  }
  void ExpectNoneWasLost(const Cli::Output& run) {
    EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
    ExpectOneResultAPoint(cli_, 2);
  }
  std::filesystem::path Log() const { return cli_.dir / "nfs.log"; }
  std::string WasNotSo() const { return ReadFileIfThere(Log()).value_or(""); }

  Cli cli_;
};

TEST_F(NfsClient, ResultsWhoseSizeIsShownLateAreWaitedFor) {
  ExpectNoneWasLost(RunBehind({"NFS_CTO=0"}));
  EXPECT_THAT(WasNotSo(), HasSubstr("short results.log\n")) << "else this tests nothing";
}

// The previous driver ran on another machine, so this one did not create the files.
TEST_F(NfsClient, ResultsThatAreShownLateAreWaitedFor) {
  cli_.Run({"run", "sweep.yaml", "--detach"});
  ExpectNoneWasLost(RunBehind({}));
  EXPECT_THAT(WasNotSo(), HasSubstr("missing results.log\n"));
}

TEST_F(NfsClient, AStaleHandleEndsNoRun) {
  const auto run = RunBehind({"NFS_STALE=results.log:1"});
  ExpectNoneWasLost(run);
  EXPECT_THAT(run.out, HasSubstr("results are read again later: "));
  EXPECT_THAT(WasNotSo(), HasSubstr("stale results.log\n"));
}

TEST_F(NfsClient, AStaleHandleOfAnEarlierRunsJobEndsNoRun) {
  cli_.Run({"run", "sweep.yaml", "--detach"});
  ExpectNoneWasLost(RunBehind({"NFS_STALE=results.log:1", "NFS_LATE_MS=0"}));
  EXPECT_THAT(WasNotSo(), HasSubstr("stale results.log\n"));
}

}  // namespace
}  // namespace ridgeline::cli
