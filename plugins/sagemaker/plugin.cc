// The SageMaker launcher. Jobs become training jobs of an account and region.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/launcher.h"
#include "sagemaker/aws.h"
#include "sagemaker/config.h"
#include "sagemaker/credentials.h"
#include "sagemaker/describe.h"
#include "sagemaker/http.h"
#include "sagemaker/render.h"
#include "sagemaker/request.h"
#include "sagemaker/session.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;

std::string Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

class SageMakerLauncher final : public plugin::Launcher {
 public:
  SageMakerLauncher(const Json& config, std::filesystem::path state_dir)
      : options_(ReadOptions(config)), has_settings_(config.contains("sagemaker")), state_dir_(std::move(state_dir)) {}

  plugin::Capabilities Can() const override {
    return {.queue = true, .poll_pause = true, .render = true, .bulk = true, .bill = true};
  }

  plugin::Availability Probe() override {
    try {
      const std::string description = Talk().Description();
      return {true, "", description, Window(options_)};
    } catch (const Error& error) {
      const Failure e = Failure::Of(error);
      // Without settings, doctor asks whether this machine can use SageMaker. Whoever does not use it has made no
      // mistake.
      if (e.kind() == Failure::Kind::kInvalidInput && has_settings_) throw;
      return {false, e.hint().empty() ? e.what() : std::string(e.what()) + "; " + e.hint(), "SageMaker", 0,
              e.kind() == Failure::Kind::kNotNow};
    }
  }

  // The service has no dry run, so this checks what its description says of requests.
  std::vector<std::optional<Failure>> WhyRefused(const Json& jobs) override {
    std::vector<std::optional<Failure>> refusals;
    for (const Json& job : jobs) {
      refusals.emplace_back();
      try {
        MakeTrainingJob(job, "", OptionsOf(job, options_));
      } catch (const Error& e) {
        refusals.back() = Failure::Of(e);
      }
    }
    return refusals;
  }

  std::vector<std::string> StillBilled(const std::string& sweep) override { return Talk().StillBilled(sweep); }
  plugin::Rendering Render(const Json& jobs) override { return RenderJobs(jobs, options_); }
  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds within) override {
    return Talk().Submit(jobs, within);
  }
  plugin::Polled Poll(const std::vector<std::string>& keys) override {
    std::vector<plugin::JobState> states = Talk().Poll(keys);
    return {std::move(states), Talk().PauseMs()};
  }
  plugin::Polled Look(const std::vector<std::string>& keys) override {
    return {Talk().Look(keys), options_.poll_pause_s * 1000};
  }
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    return Talk().Cancel(keys);
  }

 private:
  // One session serves all calls, because it knows what was last seen of the jobs.
  Session& Talk() {
    if (session_ == nullptr) {
      Aws::Settings settings;
      settings.region = FindRegion(options_.region, options_.aws_profile);
      settings.find_credentials = [profile = options_.aws_profile] { return FindCredentials(profile); };
      settings.variable = Variable;
      settings.sleep = [](std::chrono::milliseconds pause) { std::this_thread::sleep_for(pause); };
      session_ = std::make_unique<Session>(
          state_dir_, options_, std::make_unique<Aws>(MakeHttp(), plugin::SystemClock(), std::move(settings)),
          plugin::SystemClock());
    }
    return *session_;
  }

  const Options options_;
  const bool has_settings_;  // whether the sweep has a mapping named after this launcher
  const std::filesystem::path state_dir_;
  std::unique_ptr<Session> session_;
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const std::filesystem::path& state_dir) {
  return std::make_unique<SageMakerLauncher>(config, state_dir);
}

}  // namespace
}  // namespace ridgeline::sagemaker

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<ridgeline::sagemaker::Open, ridgeline::sagemaker::DescribeJob>("sagemaker");
}
