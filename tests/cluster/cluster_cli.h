// Sweeps on a cluster, and the checks for them that hold for every scheduler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/process.h"
#include "tests/cli/cli.h"

namespace ridgeline::testing {

// Its seed is in the test's output.
inline std::mt19937 SeededRandom() {
  const auto seed = std::random_device()();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  std::cout << "random seed: " << seed << '\n';
  return std::mt19937(seed);
}

// Each start of a sweep's fake trainer adds a line to the folder's file `starts`.
class ClusterCli : public cli::Cli {
 public:
  virtual ~ClusterCli() = default;

  std::filesystem::path WriteText(const std::string& text) const {
    const auto file = dir.path() / "sweep.yaml";
    std::ofstream(file) << text;
    return file;
  }

  // Waits as long as needed. Returns false if the run ended without this text.
  bool WaitToRead(Child& run, const std::string& text) const {
    const auto said = [&] { return ReadFile(dir / "out").find(text) != std::string::npos; };
    while (!said()) {
      if (run.WaitFor(50'000'000)) return said();
    }
    return true;
  }
  // Runs a sweep again and again and kills its driver, every second time within `soon_ms`, else within `late_ms`. Stops
  // when `kills` is a multiple of five, or a driver ended first.
  void KillDrivers(const std::filesystem::path& sweep, std::mt19937& random, uint64_t soon_ms, uint64_t late_ms,
                   int& kills) {
    for (;;) {
      Child driver = Start({"run", sweep});
      const uint64_t most_ms = random() % 2 == 0 ? soon_ms : late_ms;
      if (driver.WaitFor(static_cast<int64_t>(random() % most_ms) * 1'000'000)) return;
      driver.Signal(SIGKILL);
      driver.Wait();
      if (++kills % 5 == 0) return;
    }
  }
  int64_t Starts() const {
    const std::string text = ReadFileIfThere(dir / "starts").value_or("");
    return std::count(text.begin(), text.end(), '\n');
  }

  std::string Cell(const std::string& sql) {
    const auto rows = OpenStore().Query(sql).rows;
    if (rows.empty()) return "no row";
    const auto* text = std::get_if<std::string>(&rows.at(0).at(0));
    return text == nullptr ? "no text" : *text;
  }
  // The statuses of all results, sorted: "infrastructure ok ok".
  std::string Statuses() {
    std::vector<std::string> statuses;
    for (const auto& row : OpenStore().Query("SELECT status FROM results ORDER BY status").rows) {
      statuses.push_back(std::get<std::string>(row.at(0)));
    }
    return fmt::format("{}", fmt::join(statuses, " "));
  }
  // A column of the result with this status.
  std::string Of(const std::string& column, const std::string& status) {
    return Cell(fmt::format("SELECT {} FROM results WHERE status = '{}'", column, status));
  }
  std::string Evidence(const std::string& name, const std::string& status) {
    return Of(fmt::format("evidence ->> '$.{}'", name), status);
  }

  void ExpectOk(const Output& output) { EXPECT_EQ(output.status.exit_code, 0) << output.out << output.err << NotOk(); }
  // What is known about each result that is not `ok`, one line each.
  std::string NotOk() {
    std::string lines;
    const char* text =
        "SELECT printf('%s #%d %s: %s %s', point_id, attempt, status, message, evidence) FROM results "
        "WHERE status <> 'ok'";
    for (const auto& row : OpenStore().Query(text).rows) {
      lines += std::get<std::string>(row.at(0)) + "\n";
    }
    return lines;
  }
  // Every point has a result that stands, and some ended by their own fault, or none was measured.
  void ExpectUnanswered(const Output& output) const {
    EXPECT_EQ(output.status.exit_code, 1) << output.out << output.err;
  }
  // Every point has one result that stands, `ok` of them are ok, and the run has left nothing behind.
  void ExpectOneFinalResultEach(int64_t points, int64_t ok) {
    const std::string stands = "status IN ('ok', 'invalid', 'diverged', 'oom_host', 'timeout', 'crashed')";
    EXPECT_EQ(Count("SELECT count(*) FROM results WHERE " + stands), points);
    EXPECT_EQ(Count("SELECT count(DISTINCT point_id) FROM results WHERE " + stands), points);
    EXPECT_EQ(Count("SELECT count(*) FROM latest WHERE status = 'ok'"), ok);
    ExpectNothingLeft();
  }
  // Every point is `ok`, and its trainer was started once.
  void ExpectEachRanOnce(int64_t points) {
    ExpectOneFinalResultEach(points, points);
    EXPECT_EQ(Starts(), points) << "a point ran twice\n" << NotOk();
  }
  // Four points of a trainer that starts once on each of two nodes, and prints its steps on the last. Its field
  // `ends_first` says which of them ends first. `dir_there`: this test's folder on the nodes.
  std::filesystem::path WriteTwoNodes(const std::string& launcher, const std::string& settings,
                                      const std::string& dir_there) const {
    std::ofstream(dir.path() / "mine.sh") << R"(node=$1 order=$2 ended=$3/$2
trap 'touch "$ended.$node"' EXIT
after() { until [ -e "$ended.$1" ]; do sleep 0.1; done; sleep 1; }
if [ "$node" = 0 ]; then
  [ "$order" != other ] && [ "$order" != fails ] || after 1
  echo 'mine 2.1'
  [ "$order" != fails ]
  exit
fi
echo 'step 1: 99 ms'
[ "$order" != first ] || after 0
[ "$order" != fails ] || {
  printf 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: bad shard\n'
  exit 1
}
for i in 2 3 4; do echo "step $i: $((100 - i)) ms"; done
)";
    MakeDirs(dir.path() / "trainers");
    std::ofstream(dir.path() / "trainers/mine.yaml") << fmt::format(
        "name: mine\nabout: two nodes\nversion: \"1\"\ntested: log\nresult: patterns\n"
        "command: [/bin/sh, '{0}/mine.sh', '{{{{node_rank}}}}', '{{{{ends_first}}}}', '{0}']\nprocesses: torchrun\n"
        "fields: {{ends_first: {{type: text, default: both, help: which node ends first}}}}\n"
        "supports: {{model: any, seq_length: any}}\n"
        "metrics:\n"
        "  - {{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}\n"
        "  - {{name: version, regex: 'mine (\\S+)'}}\n",
        dir_there);
    return WriteText(
        fmt::format("name: test\n"
                    "defaults: {{model: llama-5m, seq_length: 32, ranks: 2, trainer: mine}}\n"
                    "matrix: {{ends_first: [first, other, both, fails]}}\n"
                    "measure: {{warmup_steps: 1, steps: 3}}\n"
                    "launch: {{launcher: {}, cpus: 1, nodes: 2, bundle: 4, time_limit: 5m, {}: {{{}}}}}\n",
                    launcher, launcher, settings));
  }
  // The expected results, in whatever order the nodes' logs came together.
  void ExpectTwoNodes() {
    EXPECT_EQ(
        Count("SELECT count(*) FROM runs WHERE status = 'ok' AND json_array_length(all_steps_ns) = 4 AND version = "
              "'2.1' AND evidence ->> '$.missing_parts' IS NULL"),
        3)
        << NotOk();
    EXPECT_EQ(Count("SELECT count(*) FROM runs WHERE status = 'crashed' AND message LIKE '%(node 1 of 2, rank 1): "
                    "%ValueError: bad shard%'"),
              1)
        << NotOk();
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
    const auto check = Run({"db", "check"});
    EXPECT_TRUE(check.status.ok()) << check.out << check.err;
    ExpectNothingOnTheCluster();
  }

 protected:
  virtual void ExpectNothingOnTheCluster() = 0;

  // A sweep of the real engine with a model of a few thousand parameters. `settings` are the launcher's, `more` is for
  // the sweep.
  std::filesystem::path WriteTiny(const std::string& launcher, const std::string& settings, const std::string& matrix,
                                  const std::string& more, int steps) const {
    return WriteText(fmt::format(
        "name: test\n"
        "defaults: {{family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: 32}}\n"
        "matrix: {{{}}}\n"
        "measure: {{warmup_steps: 0, steps: {}}}\n"
        "launch: {{launcher: {}, cpus: 1, retry: {{preempted: 20}}, {}: {{{}}}}}\n{}",
        matrix, steps, launcher, launcher, settings, more));
  }
};

}  // namespace ridgeline::testing
