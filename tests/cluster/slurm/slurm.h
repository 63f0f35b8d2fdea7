// A real Slurm for a single test, and sweeps that run on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/process.h"
#include "tests/cluster/cluster_cli.h"

namespace ridgeline::testing {

inline std::filesystem::path SlurmAgent() {
  return std::filesystem::path(RIDGELINE_PLUGIN_DIR) / "ridgeline-slurm-agent";
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A user that every system has. Not nobody, which newer releases of Slurm do not accept as a user.
inline constexpr const char* kAnotherUser = "daemon:daemon";

// The words that start a program as that user; empty if we may not become that user.
inline std::vector<std::string> AsAnotherUser() {
  if (::geteuid() != 0) return {};
  return {"setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups"};
}

// Is up while this object lives, and ends completely with it, or with this process. There can be one at a time, because
// $SLURM_CONF names it.
class Slurm {
 public:
  // `options` as for slurm-cluster. `prefix` starts it as another user.
  explicit Slurm(const std::vector<std::string>& options = {}, std::vector<std::string> prefix = {})
      : prefix_(std::move(prefix)) {
    if (!prefix_.empty()) Check(ridgeline::Run({"chown", kAnotherUser, dir_.path()}));
    std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
    std::vector<std::string> argv = {"start", Dir(), fmt::format("--until={}", ::getpid())};
    argv.insert(argv.end(), options.begin(), options.end());
    Script(argv);
    ::setenv("SLURM_CONF", (dir_ / "cluster/etc/slurm.conf").c_str(), 1);
  }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;
  ~Slurm() {
    if (::testing::Test::HasFailure()) ADD_FAILURE() << LastWords();
    Script({"remove", Dir()});
    ::unsetenv("SLURM_CONF");
  }

  void Controller(const std::string& what) const { Script({"controller", Dir(), what}); }
  void Node(const std::string& name, const std::string& what) const { Script({"node", Dir(), name, what}); }

  // Returns the output of one of Slurm's tools.
  static std::string Ask(const std::vector<std::string>& argv) { return Check(ridgeline::Run(argv)).stdout_text; }

  // The state of each job and array task: "7_2" -> "RUNNING". Jobs that the controller has forgotten are missing.
  static std::map<std::string, std::string> Jobs() {
    std::map<std::string, std::string> jobs;
    for (const std::string& line :
         LinesOf(Ask({"squeue", "--noheader", "--array", "--states=all", "--format=%i %T"}))) {
      const size_t space = line.find(' ');
      if (space != std::string::npos) jobs[line.substr(0, space)] = line.substr(space + 1);
    }
    return jobs;
  }
  static int64_t JobsThatAre(const std::string& state) {
    const auto jobs = Jobs();
    return std::count_if(jobs.begin(), jobs.end(), [&](const auto& job) { return job.second == state; });
  }
  static std::string NodeOf(const std::string& job) {
    return LinesOf(Ask({"squeue", "--noheader", "--array", "--jobs=" + job, "--format=%N"})).at(0);
  }

 private:
  std::string Dir() const { return dir_ / "cluster"; }

  // The last words of the controller and its nodes.
  std::string LastWords() const {
    std::string words;
    for (const auto& log : std::filesystem::directory_iterator(std::filesystem::path(Dir()) / "log")) {
      if (log.path().extension() != ".log") continue;
      words += fmt::format("{}:\n{}\n", log.path().filename().string(), ReadTail(log, 2000));
    }
    return words;
  }

  static Captured Check(Captured done) {
    EXPECT_TRUE(done.status.ok()) << done.stdout_text << done.stderr_text;
    return done;
  }
  void Script(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = prefix_;
    argv.push_back(RIDGELINE_SOURCE_DIR "/tests/cluster/slurm-cluster");
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Check(ridgeline::Run(argv));
  }

  TempDir dir_;
  std::vector<std::string> prefix_;
};

// A sweep with the fake trainer.
struct SlurmSweep {
  int points = 1;
  std::string trainer = "ok";  // its modes, or one for each seed from 0
  std::string slurm = "client: tools";
  std::string launch = {};  // more of `launch:`
  std::string more = {};    // more of the sweep
};

// The real `ridgeline` with a Slurm to submit to.
class SlurmCli : public ClusterCli {
 public:
  std::filesystem::path Write(const SlurmSweep& sweep) const {
    std::vector<int> seeds;
    for (int seed = 0; seed < sweep.points; ++seed) seeds.push_back(seed);
    const std::string script = fmt::format("echo start >> {}; exec {} \"$@\"", (dir / "starts").string(),
                                           FakeProgram("fake_trainer").string());
    return WriteText(
        fmt::format("name: test\n"
                    "defaults: {{model: llama-5m, seq_length: 64}}\n"
                    "matrix: {{seed: [{}]}}\n"
                    "launch:\n  launcher: slurm\n  cpus: 1\n  trainer: [/bin/sh, -c, '{}', fake, {}]\n"
                    "  slurm: {{{}}}\n  {}\n{}",
                    fmt::join(seeds, ", "), script, sweep.trainer, sweep.slurm, sweep.launch, sweep.more));
  }

  std::filesystem::path WriteReal(const std::string& matrix, const std::string& slurm, const std::string& more = "",
                                  int steps = 3) const {
    return WriteTiny("slurm", slurm, matrix, more, steps);
  }

  // The trainers of this folder that run now.
  std::vector<pid_t> Trainers() const { return ProcessesWith(std::string("--spec\0", 7) + dir.path().string()); }
  bool WaitForTrainers(size_t count) const {
    return Eventually([&] { return Trainers().size() >= count; });
  }

 protected:
  void ExpectNothingOnTheCluster() override {
    EXPECT_TRUE(Eventually([] { return LinesOf(Slurm::Ask({"squeue", "--noheader"})).empty(); })) << "jobs are left";
    EXPECT_TRUE(Eventually([&] { return Processes().empty(); })) << "processes are left";
  }
};

// A test that holds for both ways to reach Slurm. The parameter is the launcher's `client`: "tools" or "agent".
class ThroughAClient : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "agent" && !std::filesystem::exists(SlurmAgent())) GTEST_SKIP() << "the agent was not built";
  }
  const std::string client_ = "client: " + GetParam();
};

}  // namespace ridgeline::testing
