// The real `ridgeline` in its own folder.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "store/store.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::cli {

inline std::filesystem::path Program() { return std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline"; }

class Cli {
 public:
  struct Output {
    ExitStatus status;
    std::string out;
    std::string err;
  };

  // A sweep of `points` points whose trainer is the fake with `mode`.
  std::filesystem::path WriteSweep(int points, const std::string& mode, const std::string& more = {}) {
    std::string seeds;
    for (int i = 1; i <= points; ++i) seeds += (i > 1 ? ", " : "") + std::to_string(i);
    const auto file = dir.path() / "sweep.yaml";
    std::ofstream(file) << "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [" << seeds
                        << "]}\nlaunch: {trainer: [" << testing::FakeProgram("fake_trainer").string() << ", " << mode
                        << "]}\n"
                        << more;
    return file;
  }

  // Starts it in the folder, with its output in files there. Whatever still runs ends with the test.
  Child Start(const std::vector<std::string>& arguments) {
    std::filesystem::remove(dir.path() / "out");
    std::filesystem::remove(dir.path() / "err");
    std::vector<std::string> argv = prefix;
    argv.push_back(Program().string());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    SpawnOptions options;
    options.work_dir = dir.path();
    options.stdout_file = dir.path() / "out";
    options.stderr_file = dir.path() / "err";
    options.new_process_group = true;
    options.die_with_parent = true;
    options.environment = {{"TERM", "dumb"}};
    return Child::Spawn(argv, options);
  }

  // A program that takes longer than anything here must report its progress. A test that its time limit ends cannot do
  // that.
  Output Finish(Child& child) {
    constexpr int64_t kLongestNs = 400'000'000'000;
    std::optional<ExitStatus> status = child.WaitFor(kLongestNs);
    if (!status) {
      ADD_FAILURE() << "it still runs, after 400 s:\n" << ReadFile(dir.path() / "out") << ReadFile(dir.path() / "err");
      child.Signal(SIGKILL);
      status = child.Wait();
    }
    return {*status, ReadFile(dir.path() / "out"), ReadFile(dir.path() / "err")};
  }

  Output Run(const std::vector<std::string>& arguments) {
    Child child = Start(arguments);
    return Finish(child);
  }

  store::Store OpenStore() { return store::Store::Open(dir.path() / "ridgeline.db", store::Store::Mode::kReadOnly); }
  int64_t Count(const std::string& sql) { return std::get<int64_t>(OpenStore().Query(sql).rows.at(0).at(0)); }

  // The steps of the point that is farthest, as its trainer reports.
  int64_t StepsDone() const {
    namespace fs = std::filesystem;
    int64_t done = 0;
    std::error_code ec;
    for (fs::recursive_directory_iterator at(dir.path() / "ridgeline-out/jobs", ec), end; !ec && at != end;
         at.increment(ec)) {
      if (at->path().filename() == "progress") {
        done = std::max<int64_t>(done, std::atoll(ReadTail(at->path(), 64).c_str()));
      }
    }
    return done;
  }

  // Processes of this test that still run.
  std::vector<pid_t> Processes() const { return testing::ProcessesWith(dir.path().string()); }

  ~Cli() {
    for (const pid_t pid : Processes()) ::kill(pid, SIGKILL);
    testing::Eventually([&] { return Processes().empty(); });
  }
  Cli() = default;
  Cli(const Cli&) = delete;
  Cli& operator=(const Cli&) = delete;

  TempDir dir;
  std::vector<std::string> prefix;  // a program that starts ours, with its arguments: as another user, for example
};

inline void ExpectOneResultAPoint(Cli& cli, int64_t points) {
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), points);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT point_id) FROM results WHERE status = 'ok'"), points);
  const auto check = cli.Run({"db", "check"});
  EXPECT_TRUE(check.status.ok()) << check.out << check.err;
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); })) << "orphans";
}

}  // namespace ridgeline::cli
