// A sweep that runs as far as a test allows, and `ridgeline serve` beside it: the real programs.
#pragma once

#include <httplib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/port.h"
#include "base/process.h"
#include "tests/base/eventually.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::testing {

inline bool HasProgram(const std::string& name) { return !FindProgram(name, std::getenv("PATH")).empty(); }

// The programs end with the test.
class WatchedSweep {
 public:
  static constexpr int kSteps = 6;  // steps of a point, including one for warm-up

  explicit WatchedSweep(int points) {
    std::string seeds;
    for (int i = 1; i <= points; ++i) seeds += (i > 1 ? ", " : "") + std::to_string(i);
    const auto trainer = std::filesystem::path(RIDGELINE_BINARY_DIR) / "tests/fakes/fake_trainer";
    std::ofstream(dir_ / "sweep.yaml")
        << "name: watched\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [" << seeds
        << "]}\nmeasure: {warmup_steps: 1, steps: 5}\nlaunch: {trainer: [" << trainer.string()
        << ", steps-as-told=" << (dir_ / "told").string() << "]}\n";
  }
  ~WatchedSweep() {
    for (Child& child : children_) {
      child.Signal(SIGTERM);
      child.Wait();
    }
    if (run_) {
      run_->Signal(SIGTERM);
      run_->Wait();
    }
  }
  WatchedSweep(const WatchedSweep&) = delete;
  WatchedSweep& operator=(const WatchedSweep&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return dir_ / name; }
  int port() const { return static_cast<int>(port_.number()); }
  std::string Address() const { return "http://127.0.0.1:" + std::to_string(port()); }

  void StartRun(const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv = {Ridgeline(), "run", "sweep.yaml"};
    argv.insert(argv.end(), more.begin(), more.end());
    run_ = Start(argv, "run");
  }
  // Whether it ends well. Its output is in the file `run`.
  bool RunEnds() {
    const bool ok = run_->Wait().ok();
    run_.reset();
    return ok;
  }
  // Lets the point with this seed do this many steps, once its trainer looks.
  void Tell(int seed, int steps) { WriteFile(dir_ / ("told." + std::to_string(seed)), std::string(steps, '.')); }

  void StartServer() {
    StartBeside({Ridgeline(), "serve", "--listen", "127.0.0.1:" + std::to_string(port())}, "serve");
    ASSERT_TRUE(Eventually([&] { return Get("/metrics").has_value(); })) << ReadFile(dir_ / "serve");
  }
  void StartBeside(const std::vector<std::string>& argv, const std::string& output) {
    children_.push_back(Start(argv, output));
  }
  std::optional<std::string> Get(const std::string& path) const {
    const auto answer = httplib::Client("127.0.0.1", port()).Get(path);
    return answer && answer->status == 200 ? std::optional(answer->body) : std::nullopt;
  }

 private:
  static std::string Ridgeline() { return std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline"; }

  Child Start(const std::vector<std::string>& argv, const std::string& output) {
    SpawnOptions options;
    options.work_dir = dir_.path();
    options.stdout_file = dir_ / output;
    options.stderr_file = dir_ / output;
    options.new_process_group = true;
    options.die_with_parent = true;
    options.environment = {{"TERM", "dumb"}};
    return Child::Spawn(argv, options);
  }

  TempDir dir_;
  ReservedPort port_;
  std::optional<Child> run_;
  std::vector<Child> children_;
};

}  // namespace ridgeline::testing
