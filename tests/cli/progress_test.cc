// What a person at a terminal sees of commands that take a while, and that Ctrl-C ends them at once.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "predict/known_runs.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"
#include "tests/cli/cli.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

using ::testing::HasSubstr;

// Thousands of points, each of which is planned by itself.
constexpr const char* kThousands =
    "name: thousands\ndefaults: {model: llama-1b, ranks: 8, shard: full, device: cuda, gpu: h100}\n"
    "matrix: {seq_length: 128..16384+128, batch_size: 1..40}\n";

// A command whose output is a terminal.
class AtTerminal {
 public:
  AtTerminal(const fs::path& folder, std::vector<std::string> arguments) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(::grantpt(master_.get()), 0);
    EXPECT_EQ(::unlockpt(master_.get()), 0);
    arguments.insert(arguments.begin(), Program().string());
    SpawnOptions options;
    options.work_dir = folder;
    options.stdout_file = options.stderr_file = ::ptsname(master_.get());
    options.new_process_group = true;
    options.die_with_parent = true;
    options.environment = {{"TERM", "xterm"}};
    child_ = Child::Spawn(arguments, options);
  }

  // Reads until the terminal shows it. Returns all that was shown until then.
  std::string ReadTo(const std::string& words) {
    while (shown_.find(words) == std::string::npos && ReadOn()) {
    }
    return shown_;
  }

  // Presses Ctrl-C, and returns how the command ended and all that was shown.
  Cli::Output Interrupt() {
    child_->SignalGroup(SIGINT);
    const auto status = child_->WaitFor(100'000'000'000);
    EXPECT_TRUE(status.has_value()) << "it goes on after Ctrl-C";
    while (ReadOn(0)) {
    }
    return {status.value_or(ExitStatus()), shown_, ""};
  }

 private:
  // Returns false if nothing comes for a long time.
  bool ReadOn(int wait_ms = 300'000) {
    pollfd ready{master_.get(), POLLIN, 0};
    std::string bytes(4096, '\0');
    if (::poll(&ready, 1, wait_ms) <= 0) return false;
    const ssize_t size = ::read(master_.get(), bytes.data(), bytes.size());
    if (size <= 0) return false;
    shown_ += bytes.substr(0, static_cast<size_t>(size));
    return true;
  }

  Fd master_;
  std::optional<Child> child_;
  std::string shown_;
};

fs::path WriteThousands(const Cli& cli) {
  const fs::path file = cli.dir.path() / "thousands.yaml";
  std::ofstream(file) << kThousands << "launch: {launcher: slurm}\n";
  return file;
}

TEST(CommandProgress, RenderShowsHowManyPointsArePlanned) {
  Cli cli;
  AtTerminal render(cli.dir.path(), {"render", WriteThousands(cli).string(), "--to", "out"});
  EXPECT_THAT(render.ReadTo("left"), HasSubstr(" of 5120 points, about "));
  EXPECT_EQ(render.Interrupt().status.signal, SIGINT);
}

TEST(CommandProgress, PredictShowsHowManyPointsArePredicted) {
  Cli cli;
  AtTerminal predict(cli.dir.path(), {"predict", WriteThousands(cli).string(), "--device", "h100"});
  EXPECT_THAT(predict.ReadTo("left"), HasSubstr("predicting "));
  EXPECT_EQ(predict.Interrupt().status.signal, SIGINT);
}

// Fitting shares to twenty runs prices each thousands of times.
TEST(CommandProgress, PredictShowsThatItCorrectsByKnownRuns) {
  Cli cli;
  const fs::path sweep = WriteThousands(cli);
  const std::vector<Point> points = Expand(ParseSweep(kThousands, "thousands.yaml"));
  const fs::path known = cli.dir.path() / "known.jsonl";
  std::ofstream lines(known);
  for (size_t i = 0; i < kMostKnownRuns; ++i) {
    KnownRun run{points[250 * i].spec, "h100", 1e8 * static_cast<double>(i + 1), false, "a log"};
    lines << EncodeKnownRun(run) << "\n";
  }
  lines.close();
  AtTerminal predict(cli.dir.path(), {"predict", sweep.string(), "--device", "h100", "--known", known.string()});
  EXPECT_THAT(predict.ReadTo("tried in"), HasSubstr("correcting by known runs: "));
  EXPECT_EQ(predict.Interrupt().status.signal, SIGINT);
}

TEST(CommandProgress, RunShowsHowManyPointsArePlannedAndEndsAtCtrlC) {
  Cli cli;
  const fs::path sweep = cli.dir.path() / "thousands.yaml";
  std::ofstream(sweep) << "name: thousands\ndefaults: {model: llama-1b, ranks: 8, shard: full}\n"
                       << "matrix: {seq_length: 128..16384+128, batch_size: 1..40}\n";
  AtTerminal run(cli.dir.path(), {"run", sweep.string()});
  EXPECT_THAT(run.ReadTo("left"), HasSubstr(" of 5120 points, about "));
  const Cli::Output ended = run.Interrupt();
  EXPECT_EQ(ended.status.exit_code, 130) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("to continue: ridgeline run "));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 0);
}

TEST(CommandProgress, RunShowsThatItLooksForTheLargestBatchAndEndsAtCtrlC) {
  Cli cli;
  const fs::path sweep = cli.dir.path() / "largest.yaml";
  std::ofstream(sweep) << "name: largest\ndefaults: {model: llama-1b, batch_size: max}\n"
                       << "matrix: {seq_length: 128..16384+128}\nlaunch: {memory_limit: 64GB}\n";
  AtTerminal run(cli.dir.path(), {"run", sweep.string()});
  EXPECT_THAT(run.ReadTo("tried in"), HasSubstr("predicting what fits: "));
  const Cli::Output ended = run.Interrupt();
  EXPECT_EQ(ended.status.exit_code, 130) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("interrupted; to continue: ridgeline run "));
}

}  // namespace
}  // namespace ridgeline
