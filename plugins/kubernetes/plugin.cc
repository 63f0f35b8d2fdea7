// The Kubernetes launcher. Jobs become Jobs of a cluster.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "common/clock.h"
#include "common/launcher.h"
#include "common/remote_job.h"
#include "kubernetes/cluster.h"
#include "kubernetes/config.h"
#include "kubernetes/describe.h"
#include "kubernetes/manifest.h"
#include "kubernetes/session.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

class KubernetesLauncher final : public plugin::Launcher {
 public:
  KubernetesLauncher(const Json& config, std::filesystem::path state_dir)
      : options_(ReadOptions(config)), state_dir_(std::move(state_dir)) {}

  plugin::Capabilities Can() const override { return {.queue = true, .render = true}; }

  plugin::Availability Probe() override {
    try {
      const std::string description = Talk().Description();
      return {true, "", description, Window(options_)};
    } catch (const Error& error) {
      const Failure e = Failure::Of(error);
      if (e.kind() == Failure::Kind::kInvalidInput) throw;
      return {false, e.hint().empty() ? e.what() : std::string(e.what()) + "; " + e.hint(), "Kubernetes", 0,
              e.kind() == Failure::Kind::kNotNow};
    }
  }

  plugin::Rendering Render(const Json& jobs) override {
    std::vector<Manifests> all;
    for (const Json& job : jobs) {
      all.push_back(MakeManifests(job,
                                  ReadForeignFile(job.at("job_file").get<std::string>(), kMaxJobFileBytes).value_or(""),
                                  options_, "", plugin::NewSecret()));
    }
    plugin::Rendering rendering{{}, "kubectl create -f DIR", FetchCommand(all, options_)};
    for (const Json& file : ManifestFiles(all)) rendering.files.push_back({file.at("name"), file.at("content")});
    for (const Manifests& made : all) {
      if (!made.asks.empty() && std::ranges::find(rendering.asks, made.asks) == rendering.asks.end()) {
        rendering.asks.push_back(made.asks);
      }
    }
    return rendering;
  }

  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds) override {
    return Talk().Submit(jobs);
  }
  plugin::Polled Poll(const std::vector<std::string>& keys) override { return {Talk().Poll(keys)}; }
  plugin::Polled Look(const std::vector<std::string>& keys) override { return {Talk().Look(keys)}; }
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    return Talk().Cancel(keys);
  }

 private:
  // One session serves all calls, because it knows the cluster's last reports.
  Session& Talk() {
    const plugin::Clock& clock = plugin::SystemClock();
    if (session_ == nullptr) {
      session_ = std::make_unique<Session>(state_dir_, options_, Cluster::Connect(options_, clock), clock);
    }
    return *session_;
  }

  const Options options_;
  const std::filesystem::path state_dir_;
  std::unique_ptr<Session> session_;
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const std::filesystem::path& state_dir) {
  return std::make_unique<KubernetesLauncher>(config, state_dir);
}

}  // namespace
}  // namespace ridgeline::kubernetes

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<ridgeline::kubernetes::Open, ridgeline::kubernetes::DescribeJob>("kubernetes");
}
