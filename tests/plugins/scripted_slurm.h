// A Slurm in memory, which does what a test says, and the launcher's session on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "slurm/session.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/answering.h"
#include "tests/plugins/manual_clock.h"
#include "tests/plugins/slurm_job.h"

namespace ridgeline::slurm {

using plugin::Json;

class ScriptedSlurm final : public Client {
 public:
  struct World {
    Facts facts;
    std::vector<Row> rows;
    std::vector<Row> accounted;
    std::vector<Row> accounted_by_id;
    std::vector<std::string> asked_accounting;
    std::vector<BatchJob> submitted;
    std::vector<std::string> cancelled;
    int cancel_calls = 0;
    int64_t next_id = 100;
    std::function<void(const BatchJob&)> on_submit = [](const BatchJob&) {};  // may throw: before it is done
    std::function<void()> after_submit = [] {};                               // may throw: after it was done
    bool silent = false;
    bool cancels_are_answered = true;
    bool unchanged = false;

    void Finish(const std::string& state = "COMPLETED", int exit_status = 0) {
      for (Row& row : rows) row.state = state, row.exit_status = exit_status;
    }
  };
  explicit ScriptedSlurm(World& world) : world_(world) {}

  std::string Description() const override { return "a script"; }
  Facts GetFacts() override { return world_.facts; }
  int64_t Submit(const BatchJob& batch) override {
    RequireAnswer();
    world_.on_submit(batch);
    world_.submitted.push_back(batch);
    Row row;
    row.name = batch.name;
    row.job_id = world_.next_id++;
    row.state = "PENDING";
    if (batch.is_array) row.tasks = ParseTasks(ArrayText(batch));
    world_.rows.push_back(row);
    world_.after_submit();
    return row.job_id;
  }
  std::optional<std::vector<Row>> Jobs() override {
    RequireAnswer();
    if (world_.unchanged) return std::nullopt;
    return world_.rows;
  }
  std::vector<Row> Accounted(const std::vector<std::string>& job_names, int64_t) override {
    world_.asked_accounting = job_names;
    return world_.accounted;
  }
  std::vector<Row> AccountedById(const std::vector<int64_t>& ids, int64_t) override {
    std::vector<Row> found;
    std::ranges::copy_if(world_.accounted_by_id, std::back_inserter(found),
                         [&](const Row& row) { return std::ranges::count(ids, row.job_id) > 0; });
    return found;
  }
  void Cancel(const std::vector<std::string>& ids) override {
    if (!world_.cancels_are_answered) throw SlurmError(Trouble::kNoAnswer, "Socket timed out");
    ++world_.cancel_calls;
    world_.cancelled.insert(world_.cancelled.end(), ids.begin(), ids.end());
  }

 private:
  void RequireAnswer() const {
    if (world_.silent) throw SlurmError(Trouble::kNoAnswer, "Socket timed out");
  }
  World& world_;
};

using Asked = testing::Answering<Session>;

class SlurmSession : public ::testing::Test {
 protected:
  // Each call makes a new driver that knows only the folder.
  std::unique_ptr<Asked> Open(const Options& options = {}) {
    return std::make_unique<Asked>(
        std::make_unique<Session>(dir_.path(), options, std::make_unique<ScriptedSlurm>(slurm_), clock_));
  }
  void Later(int seconds) { clock_.Later(std::chrono::seconds(seconds)); }

  static Json Jobs(const std::vector<std::string>& keys) {
    Json jobs = Json::array();
    for (const std::string& key : keys) jobs.push_back(Job(key));
    return jobs;
  }
  static std::string State(Asked& session, const std::string& key) {
    return session.Poll(Jobs({key})).at(0).at("state").get<std::string>();
  }

  TempDir dir_;
  ScriptedSlurm::World slurm_;
  testing::ManualClock clock_;
};

}  // namespace ridgeline::slurm
