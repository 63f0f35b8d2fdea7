// The Slurm launcher: jobs as tasks of job arrays on a cluster.
#include <dlfcn.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/plugin_api.h"
#include "ridgeline/launcher.h"
#include "slurm/client.h"
#include "slurm/config.h"
#include "slurm/render.h"
#include "slurm/session.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
namespace fs = std::filesystem;

constexpr int64_t kLeastPauseMs = 1000;  // between two polls
constexpr int64_t kMostPauseMs = 30'000;
constexpr int64_t kPauseShare = 100;  // polling takes a hundredth of the time
// As many jobs as the driver keeps in the queue at once; Slurm's own limits may be lower.
constexpr int64_t kMostJobs = 10'000;

// Beside this library.
fs::path AgentProgram() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&AgentProgram), &info);
  return fs::path(info.dli_fname).parent_path() / "ridgeline-slurm-agent";
}

Failure NoAnswer(const SlurmError& e) {
  return {e.trouble() == Trouble::kRefused ? Failure::Kind::kInfrastructure : Failure::Kind::kNotNow,
          fmt::format("Slurm does not answer: {}", e.what()), "`scontrol ping` says whether its controller is up"};
}

// A session with the client that the options ask for. Throws SlurmError. `why` is set where kAuto took the tools.
std::unique_ptr<Session> OpenSession(const fs::path& state_dir, const Options& options, std::string& why) {
  if (options.client != ClientKind::kTools) {
    try {
      return std::make_unique<Session>(state_dir, options, MakeAgentClient(AgentProgram()), plugin::SystemClock());
    } catch (const SlurmError& e) {
      if (options.client == ClientKind::kAgent) throw;
      why = e.what();
    }
  }
  return std::make_unique<Session>(state_dir, options, MakeToolsClient(), plugin::SystemClock());
}

// One session for all calls of a process with the same configuration: it knows what Slurm last said.
Session& SessionFor(const Json& request, std::string* why = nullptr) {
  static std::map<std::string, std::pair<std::unique_ptr<Session>, std::string>> sessions;
  const auto state_dir = request.at("state_dir").get<std::string>();
  const Json& config = request.at("config");
  auto& [session, reason] = sessions[state_dir + '\n' + config.dump()];
  if (session == nullptr) {
    try {
      session = OpenSession(state_dir, ReadOptions(config), reason);
    } catch (const SlurmError& e) {
      throw NoAnswer(e);
    }
  }
  if (why != nullptr) *why = reason;
  return *session;
}

Json AnswerProbe(const Json& request) {
  ReadOptions(request.at("config"));
  try {
    std::string why;
    const Session& session = SessionFor(request, &why);
    return {{"available", true},
            {"why", ""},
            {"max_jobs", kMostJobs},
            {"description", fmt::format("Slurm {} ({}) through {}{}", session.facts().version, session.facts().cluster,
                                        session.client().Description(), why.empty() ? "" : ", since " + why)}};
  } catch (const Failure& e) {
    return {{"available", false}, {"why", e.what()}, {"description", "Slurm"}};
  }
}

Json AnswerRender(const Json& request) {
  Json files = Json::array();
  const Json& jobs = request.at("jobs");
  if (jobs.empty()) return {{"files", files}, {"submit", "sbatch FILE"}};
  // Beside the jobs' folders: rendered files are submitted by hand, and nobody here keeps a record of them.
  const fs::path log_dir = fs::path(jobs.front().at("job_dir").get<std::string>()).parent_path();
  for (const Submission& submission :
       Bundle(jobs, ReadOptions(request.at("config")), ArrayLimit(), fs::current_path().string(), log_dir.string())) {
    files.push_back({{"name", submission.name + ".sbatch"}, {"content", SbatchFile(submission)}});
  }
  return {{"files", std::move(files)}, {"submit", "sbatch FILE"}};
}

Json AnswerSubmit(const Json& request) { return {{"jobs", SessionFor(request).Submit(request.at("jobs"))}}; }

Json AnswerPollMany(const Json& request) {
  Session& session = SessionFor(request);
  try {
    const auto begin = std::chrono::steady_clock::now();
    Json jobs = session.Poll(request.at("jobs"));
    const auto took = std::chrono::steady_clock::now() - begin;
    const int64_t pause_ms = kPauseShare * std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    return {{"jobs", std::move(jobs)}, {"again_ms", std::clamp(pause_ms, kLeastPauseMs, kMostPauseMs)}};
  } catch (const SlurmError& e) {
    throw NoAnswer(e);
  }
}

Json AnswerCancel(const Json& request) {
  try {
    return {{"jobs", SessionFor(request).Cancel(request.at("jobs"))}};
  } catch (const SlurmError& e) {
    throw NoAnswer(e);
  }
}

}  // namespace
}  // namespace ridgeline::slurm

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(uint32_t);

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  using namespace ridgeline::slurm;  // NOLINT(google-build-using-namespace)
  return ridgeline::plugin::Table<AnswerProbe, AnswerRender, AnswerSubmit, AnswerPollMany, AnswerCancel>("slurm");
}
