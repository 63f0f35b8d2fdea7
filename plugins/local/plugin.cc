// The local launcher. Jobs are processes of this machine, each on cores of its own.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/launcher.h"
#include "common/process.h"
#include "local/client.h"
#include "local/config.h"
#include "local/render.h"

namespace ridgeline::local {
namespace {

using plugin::Json;

std::filesystem::path KeeperProgram() { return plugin::ProgramBesideUs("ridgeline-local-keeper"); }

class LocalLauncher final : public plugin::Launcher {
 public:
  LocalLauncher(const Json& config, const std::filesystem::path& state_dir)
      : slot_cores_(SlotCores(config, AllowedCores())), client_(state_dir, slot_cores_, KeeperProgram()) {}

  plugin::Capabilities Can() const override { return {.render = true}; }

  plugin::Availability Probe() override {
    const std::string jobs = slot_cores_.size() == 1 ? "1 job" : fmt::format("{} jobs", slot_cores_.size());
    const size_t cores = slot_cores_.front().size();
    plugin::Availability answer;
    answer.description =
        fmt::format("this machine, {} at once with {} {} each", jobs, cores, cores == 1 ? "core" : "cores");
    const std::filesystem::path keeper = KeeperProgram();
    std::error_code ec;
    answer.available = std::filesystem::exists(keeper, ec);
    if (!answer.available) answer.why = fmt::format("{} is missing", keeper.string());
    return answer;
  }

  plugin::Rendering Render(const Json& jobs) override {
    for (const Json& job : jobs) CheckJob(job, slot_cores_.front().size());
    return {{{"run-jobs.sh", RenderScript(jobs)}}, "sh FILE"};
  }

  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds) override {
    std::vector<plugin::Submission> answers;
    for (const Json& job : jobs) {
      answers.emplace_back();
      try {
        client_.Submit(job);
        answers.back().native_id = job.at("key");  // the job's folder; the pid changes when the job is started again
      } catch (const Error& e) {
        answers.back().error = plugin::Failure::Of(e);
      }
    }
    return answers;
  }

  plugin::Polled Poll(const std::vector<std::string>& keys) override {
    plugin::Polled polled;
    for (const std::string& key : keys) {
      polled.states.push_back(client_.Poll(key));
      polled.states.back().native_id = key;
    }
    return polled;
  }

  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    std::vector<plugin::Cancellation> answers;
    for (const std::string& key : keys) answers.push_back({client_.Cancel(key)});
    return answers;
  }

 private:
  std::vector<std::vector<int>> slot_cores_;
  Client client_;
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const std::filesystem::path& state_dir) {
  return std::make_unique<LocalLauncher>(config, state_dir);
}

plugin::Description DescribeJob(const plugin::JobToDescribe&) { return {.here = true}; }

}  // namespace
}  // namespace ridgeline::local

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<ridgeline::local::Open, ridgeline::local::DescribeJob>("local");
}
