// Ranks as processes of ridgeline-train, started in the same way as torchrun starts them.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/port.h"
#include "base/process.h"
#include "run/result.h"
#include "run/spec.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::testing {

class RankProcesses {
 public:
  explicit RankProcesses(std::map<std::string, std::string> environment = {}) : environment_(std::move(environment)) {}
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  // Ends a rank that a failed test left behind.
  ~RankProcesses() {
    for (Child& child : children_) {
      child.Signal(SIGKILL);
      child.Wait();
    }
  }

  // Starts the next rank of `world`, in its own folder.
  void Start(const RunSpec& spec, int64_t world) {
    const std::string rank = std::to_string(children_.size());
    std::filesystem::create_directory(Folder(children_.size()));
    WriteFileAtomic(Folder(children_.size()) / "spec.json", EncodeSpec(spec));
    SpawnOptions options;
    options.environment = environment_;
    options.environment.insert({{"RANK", rank},
                                {"LOCAL_RANK", rank},
                                {"WORLD_SIZE", std::to_string(world)},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", std::to_string(port_.number())},
                                {"OMP_NUM_THREADS", "1"}});
    options.work_dir = Folder(children_.size());
    options.stdout_file = options.stderr_file = Folder(children_.size()) / "log.txt";
    options.die_with_parent = true;
    children_.push_back(Child::Spawn({std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline-train", "--spec",
                                      "spec.json", "--result", dir_ / "result.json"},
                                     options));
  }
  void StartAll(const RunSpec& spec) {
    for (int64_t rank = 0; rank < spec.ranks; ++rank) Start(spec, spec.ranks);
  }

  // The exit status of each rank, in order; every rank must end.
  std::vector<ExitStatus> Wait() {
    std::vector<ExitStatus> ends;
    for (Child& child : children_) ends.push_back(child.Wait());
    return ends;
  }
  RunResult Result() const { return DecodeResult(ReadJsonFile(dir_ / "result.json"), "result"); }
  bool HasResult() const { return std::filesystem::exists(dir_ / "result.json"); }
  std::string Log(size_t rank) const { return ReadTail(Folder(rank) / "log.txt", 1 << 16); }
  std::filesystem::path Folder(size_t rank) const { return dir_ / ("rank" + std::to_string(rank)); }
  Child& child(size_t rank) { return children_.at(rank); }
  int64_t port() const { return port_.number(); }

 private:
  std::map<std::string, std::string> environment_;
  TempDir dir_;
  ReservedPort port_;
  std::vector<Child> children_;
};

}  // namespace ridgeline::testing
