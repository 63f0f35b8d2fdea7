// Runs `ridgeline exec` as a separate process.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "ridgeline/job_dir.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::node {

// Jobs in the test's own folder, and mini_ridgeline to run them.
class Exec : public ::testing::Test {
 protected:
  Job MakeJob(const std::vector<std::string>& modes, int64_t points = 1) {
    return testing::TestJob(dir_.path() / "rl-test", modes, points);
  }
  static std::filesystem::path DirOf(const Job& job, size_t point = 0) {
    return PointDir(job.job_dir, job.points[point].id);
  }
  static bool IsThere(const std::filesystem::path& path) { return std::filesystem::exists(path); }
  Child Start(const Job& job, int64_t grace_ms = 10'000, const std::map<std::string, std::string>& environment = {}) {
    SpawnOptions options;
    options.environment = environment;
    options.stdout_file = options.stderr_file = dir_.path() / "exec.log";
    options.new_process_group = true;
    options.die_with_parent = true;
    return Child::Spawn({testing::FakeProgram("mini_ridgeline"), "exec", JobFile(job), std::to_string(grace_ms),
                         "60000", std::to_string(others_end_ms_), std::to_string(quiet_start_ms_)},
                        options);
  }
  // The exit code of exec.
  int Run(const Job& job, int64_t grace_ms = 10'000, const std::map<std::string, std::string>& environment = {}) {
    testing::WriteJob(job);
    const ExitStatus status = Start(job, grace_ms, environment).Wait();
    EXPECT_EQ(status.signal, 0);
    return status.exit_code;
  }
  RunResult RunOne(const std::string& mode) {
    const Job job = MakeJob({mode});
    EXPECT_EQ(Run(job), 0) << Log();
    return testing::ResultOf(job);
  }
  std::string Log() const { return ReadTail(dir_.path() / "exec.log", 4096); }
  bool NothingIsLeft() const {
    return testing::Eventually([&] { return testing::ProcessesWith(dir_.path()).empty(); });
  }

  TempDir dir_;
  int64_t quiet_start_ms_ = 1'800'000;
  int64_t others_end_ms_ = 600'000;  // how long ranks may go on after rank 0 has ended well
};

}  // namespace ridgeline::node
