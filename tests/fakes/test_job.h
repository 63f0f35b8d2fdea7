// Jobs for tests of the code that runs jobs.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "run/spec.h"
#include "tests/base/eventually.h"  // IWYU pragma: export
#include "tests/base/temp_dir.h"

namespace ridgeline::testing {

inline std::filesystem::path FakeProgram(const std::string& name) {
  return std::filesystem::path(RIDGELINE_BINARY_DIR) / "tests/fakes" / name;
}
inline std::filesystem::path FakePluginDir() { return FakeProgram("plugins"); }

// A spec whose seed is `seed`. Different seeds are different points.
inline RunSpec TestSpec(int64_t seed) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"seed", seed}}, problems);
  if (!problems.empty()) throw Error(ErrorKind::kInternal, problems.front().message);
  return spec;
}

// A job of fake_trainer with these modes, and `points` points with seeds 0, 1, …
inline Job TestJob(const std::filesystem::path& job_dir, const std::vector<std::string>& modes, int64_t points = 1) {
  Job job;
  job.key = "rl-test";
  job.sweep = "test";
  job.job_dir = job_dir;
  job.trainer = {FakeProgram("fake_trainer")};
  job.trainer.insert(job.trainer.end(), modes.begin(), modes.end());
  for (int64_t seed = 0; seed < points; ++seed) {
    const RunSpec spec = TestSpec(seed);
    job.points.push_back({PointId(spec), spec, 0});
  }
  return job;
}

inline void WriteJob(const Job& job) {
  MakeDirs(job.job_dir);
  WriteFileAtomic(JobFile(job), DumpJson(EncodeJob(job)));
}

// The last line of a point in its job's results file; nothing if there is none.
inline std::optional<RunResult> FindResult(const Job& job, size_t point = 0) {
  std::optional<std::string> found;
  ResultsReader(job.job_dir).ReadNew([&](const JobLine& line) {
    if (line.point_id == job.points.at(point).id) found = line.payload;
    return true;
  });
  return found ? std::optional(DecodeResult(ParseJson(*found, "a line"), "a line")) : std::nullopt;
}
inline RunResult ResultOf(const Job& job, size_t point = 0) {
  std::optional<RunResult> found = FindResult(job, point);
  if (!found) throw Error(ErrorKind::kInternal, "no result of point " + job.points.at(point).id);
  return *std::move(found);
}

// The command line of a process, each argument ended by a zero byte. Returns "" if the process has ended, which may
// also happen between opening and reading.
inline std::string CommandLineOf(pid_t pid) {
  try {
    return ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
  } catch (const Error&) {
    return "";
  }
}

// Processes, except zombies, with `text` in their command line. Tests use this to find processes that were left behind.
inline std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    if (CommandLineOf(pid).find(text) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace ridgeline::testing
