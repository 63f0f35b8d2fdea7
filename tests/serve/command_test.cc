// `ridgeline serve` and `ridgeline run --metrics-file` as users type them: their refusals, and the messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"
#include "tests/serve/watched_sweep.h"

namespace ridgeline::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Captured Typed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline");
  return ridgeline::Run(arguments, int64_t{60'000'000'000});
}

TEST(ServeCommand, ListensToOthersOnlyWithAToken) {
  const Captured open = Typed({"serve", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.status.exit_code, 2);
  EXPECT_THAT(open.stderr_text,
              AllOf(HasSubstr("everybody could read"), HasSubstr("--token-file"), HasSubstr("ssh -L")));
  TempDir dir;
  WritePrivateFile(dir / "token", "too short\n");
  const Captured guessed = Typed({"serve", "--listen", "0.0.0.0:0", "--token-file", dir / "token"});
  EXPECT_EQ(guessed.status.exit_code, 2);
  EXPECT_THAT(guessed.stderr_text, HasSubstr("openssl rand -hex 32"));
}

TEST(ServeCommand, SaysWhatIsNoAddressAndWhatIsTaken) {
  const Captured wrong = Typed({"serve", "--listen", "example.org"});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.stderr_text, HasSubstr("'example.org' is not an address to listen on"));
  testing::WatchedSweep watched(1);
  watched.StartServer();
  const Captured taken = Typed({"serve", "--listen", "127.0.0.1:" + std::to_string(watched.port())});
  EXPECT_EQ(taken.status.exit_code, 3);
  EXPECT_THAT(taken.stderr_text, HasSubstr("cannot listen on 127.0.0.1 port"));
}

TEST(ServeCommand, EndsWellWhenItIsToldTo) {
  TempDir dir;
  SpawnOptions options;
  options.work_dir = dir.path();
  options.stdout_file = dir / "out";
  options.stderr_file = dir / "err";
  options.die_with_parent = true;
  Child child = Child::Spawn(
      {std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline", "serve", "--listen", "127.0.0.1:0"}, options);
  EXPECT_TRUE(testing::Eventually([&] { return ReadTail(dir / "out", 4096).ends_with("Ctrl-C ends it\n"); }));
  EXPECT_THAT(ReadFile(dir / "out"), HasSubstr("http://127.0.0.1:"));
  EXPECT_THAT(ReadFile(dir / "err"), HasSubstr("there is no database ridgeline.db yet"));
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(MetricsFileOption, TakesWhatTheCollectorReadsAndAFolderThatIsThere) {
  TempDir dir;
  WriteFile(dir / "sweep.yaml", "name: test\ndefaults: {model: llama-10m}\n");
  const Captured other = Typed({"run", dir / "sweep.yaml", "--metrics-file", "metrics.txt"});
  EXPECT_EQ(other.status.exit_code, 2);
  EXPECT_THAT(other.stderr_text, HasSubstr("must end in .prom"));
  const Captured nowhere = Typed({"run", dir / "sweep.yaml", "--db", dir / "ridgeline.db", "--to", dir / "out",
                                  "--metrics-file", dir / "none/ridgeline.prom"});
  EXPECT_EQ(nowhere.status.exit_code, 3) << "before anything runs";
  EXPECT_THAT(nowhere.stderr_text, HasSubstr("none"));
}

}  // namespace
}  // namespace ridgeline::serve
