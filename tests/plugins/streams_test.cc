// The programs beside launchers, started with closed standard streams. Without a fix, the next file or socket that they
// open would become one of the streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/files.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

const std::filesystem::path kPrograms = RIDGELINE_PLUGIN_DIR;

TEST(Streams, TheKeeperOpensThemForItselfAndItsJob) {
  const TempDir dir;
  // A byte on its standard input lets it begin.
  const Captured run =
      ridgeline::Run({"/bin/sh", "-c",
                      R"(echo | "$0" "$1" 0 /bin/sh -c "test -e /proc/self/fd/1 && test -e /proc/self/fd/2" >&- 2>&-)",
                      kPrograms / "ridgeline-local-keeper", dir / "exit"});
  EXPECT_TRUE(run.status.ok()) << run.stderr_text;
  EXPECT_THAT(ReadFile(dir / "exit"), ::testing::StartsWith("exit_code 0 "));
}

TEST(Streams, TheSlurmAgentOpensThem) {
  const std::filesystem::path agent = kPrograms / "ridgeline-slurm-agent";
  if (!std::filesystem::exists(agent)) GTEST_SKIP() << "built without libslurm";
  const TempDir dir;
  WriteFile(dir / "slurm.conf", "ClusterName=none\nSlurmctldHost=localhost\n");
  const std::map<std::string, std::string> environment = {{"SLURM_CONF", dir / "slurm.conf"}};
  const Captured open = ridgeline::Run({"/bin/sh", "-c", R"(exec "$0" </dev/null)", agent}, 0, environment);
  if (!open.status.ok()) GTEST_SKIP() << "Slurm's library does not begin here: " << open.stderr_text;
  for (const char* closed : {R"(exec "$0" </dev/null 2>&-)", R"(exec "$0" <&- >&- 2>&-)"}) {
    const Captured run = ridgeline::Run({"/bin/sh", "-c", closed, agent}, 0, environment);
    EXPECT_TRUE(run.status.ok()) << closed;
  }
}

}  // namespace
}  // namespace ridgeline
