// The Kubernetes launcher: jobs as Jobs of a cluster.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/files.h"
#include "common/plugin_api.h"
#include "kubernetes/cluster.h"
#include "kubernetes/config.h"
#include "kubernetes/manifest.h"
#include "kubernetes/session.h"
#include "ridgeline/launcher.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

// One session for all calls of a process with the same configuration: it knows what the cluster last said.
Session& SessionFor(const Json& request) {
  static std::map<std::string, std::unique_ptr<Session>> sessions;
  const auto state_dir = request.at("state_dir").get<std::string>();
  const Json& config = request.at("config");
  auto& session = sessions[state_dir + '\n' + config.dump()];
  if (session == nullptr) {
    const Options options = ReadOptions(config);
    const plugin::Clock& clock = plugin::SystemClock();
    session = std::make_unique<Session>(state_dir, options, Cluster::Connect(options, clock), clock);
  }
  return *session;
}

Json AnswerProbe(const Json& request) {
  ReadOptions(request.at("config"));
  try {
    Session& session = SessionFor(request);
    return {{"available", true}, {"why", ""}, {"max_jobs", session.Window()}, {"description", session.Description()}};
  } catch (const Failure& e) {
    const std::string why = e.hint().empty() ? e.what() : std::string(e.what()) + "; " + e.hint();
    return {{"available", false}, {"why", why}, {"description", "Kubernetes"}};
  }
}

Json AnswerRender(const Json& request) {
  const Options options = ReadOptions(request.at("config"));
  std::vector<Manifests> all;
  for (const Json& job : request.at("jobs")) {
    all.push_back(MakeManifests(job, plugin::ReadText(job.at("job_file").get<std::string>()), options, ""));
  }
  return {{"files", ManifestFiles(all)}, {"submit", "kubectl create -f DIR"}};
}

Json AnswerSubmit(const Json& request) { return {{"jobs", SessionFor(request).Submit(request.at("jobs"))}}; }
Json AnswerPollMany(const Json& request) { return {{"jobs", SessionFor(request).Poll(request.at("jobs"))}}; }
Json AnswerCancel(const Json& request) { return {{"jobs", SessionFor(request).Cancel(request.at("jobs"))}}; }

}  // namespace
}  // namespace ridgeline::kubernetes

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(uint32_t);

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  using namespace ridgeline::kubernetes;  // NOLINT(google-build-using-namespace)
  return ridgeline::plugin::Table<AnswerProbe, AnswerRender, AnswerSubmit, AnswerPollMany, AnswerCancel>("kubernetes");
}
