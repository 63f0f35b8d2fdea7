// `ridgeline run` by a launcher whose jobs share no folder with it: what they print is all that comes back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;

class Remote : public ::testing::Test {
 protected:
  Remote() { ::setenv("RIDGELINE_HOME", testing::FakePluginDir().parent_path().c_str(), 1); }
  ~Remote() override { ::unsetenv("RIDGELINE_HOME"); }

  Cli::Output RunThree(const std::string& remote) {
    WriteFile(cli_.dir / "sweep.yaml",
              fmt::format("name: test\ndefaults: {{model: llama-10m, seq_length: 64}}\nmatrix: {{seed: [1, 2, 3]}}\n"
                          "launch: {{launcher: remote, trainer: [{}, ok], bundle: 2, remote: {{{}}}}}\n",
                          testing::FakeProgram("fake_trainer").string(), remote));
    return cli_.Run({"run", "sweep.yaml"});
  }

  Cli cli_;
};

TEST_F(Remote, EachPointHasItsResultOnceThoughTheEndIsKnownBeforeTheLastOutput) {
  const auto run = RunThree("");
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 ok"));
  ExpectOneResultAPoint(cli_, 3);
}

TEST_F(Remote, StartsALostJobAgain) {
  const auto run = RunThree("lose: true");
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 ok"));
  EXPECT_EQ(cli_.Count("SELECT count(DISTINCT point_id) FROM results WHERE status = 'ok'"), 3);
  EXPECT_GT(cli_.Count("SELECT count(*) FROM jobs"), 2) << "the lost jobs were not submitted again";
}

}  // namespace
}  // namespace ridgeline::cli
