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

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

using ::testing::HasSubstr;

// Each of these sweeps takes a fast machine several times as long as the second after which a line shows progress.
// Tests end the work, so how long it would take costs nothing.

// Each point of this is planned by itself.
constexpr const char* kManyPoints =
    "name: many\ndefaults: {model: llama-1b, ranks: 8, shard: full, device: cuda, gpu: h100}\n"
    "matrix: {seq_length: 128..16384+128, batch_size: 1..800}\n";

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

fs::path WriteSweep(const Cli& cli, const std::string& text) {
  const fs::path file = cli.dir.path() / "sweep.yaml";
  std::ofstream(file) << text;
  return file;
}

TEST(CommandProgress, RenderShowsHowManyPointsArePlanned) {
  Cli cli;
  AtTerminal render(
      cli.dir.path(),
      {"render", WriteSweep(cli, std::string(kManyPoints) + "launch: {launcher: slurm}\n").string(), "--to", "out"});
  EXPECT_THAT(render.ReadTo("left"), HasSubstr(" of 102400 points, about "));
  EXPECT_EQ(render.Interrupt().status.signal, SIGINT);
}

TEST(CommandProgress, PredictShowsHowManyPointsArePredicted) {
  Cli cli;
  AtTerminal predict(cli.dir.path(), {"predict", WriteSweep(cli, kManyPoints).string(), "--device", "h100"});
  EXPECT_THAT(predict.ReadTo("left"), HasSubstr("predicting "));
  EXPECT_EQ(predict.Interrupt().status.signal, SIGINT);
}

TEST(CommandProgress, RunShowsHowManyPointsArePlannedAndEndsAtCtrlC) {
  Cli cli;
  const fs::path sweep = WriteSweep(cli,
                                    "name: many\ndefaults: {model: llama-1b, ranks: 8, shard: full}\n"
                                    "matrix: {seq_length: 128..16384+128, batch_size: 1..160}\n");
  AtTerminal run(cli.dir.path(), {"run", sweep.string()});
  EXPECT_THAT(run.ReadTo("left"), HasSubstr(" of 20480 points, about "));
  const Cli::Output ended = run.Interrupt();
  EXPECT_EQ(ended.status.exit_code, 130) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("to continue: ridgeline run "));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 0);
}

TEST(CommandProgress, RunShowsThatItLooksForTheLargestBatchAndEndsAtCtrlC) {
  Cli cli;
  const fs::path sweep = WriteSweep(cli,
                                    "name: largest\ndefaults: {model: llama-1b, batch_size: max}\n"
                                    "matrix: {seq_length: 128..16384+4}\nlaunch: {memory_limit: 64GB}\n");
  AtTerminal run(cli.dir.path(), {"run", sweep.string()});
  EXPECT_THAT(run.ReadTo("tried in"), HasSubstr("predicting what fits: "));
  const Cli::Output ended = run.Interrupt();
  EXPECT_EQ(ended.status.exit_code, 130) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("interrupted; to continue: ridgeline run "));
}

}  // namespace
}  // namespace ridgeline::cli
