// The Slurm launcher. Jobs become tasks of job arrays on a cluster.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/launcher.h"
#include "common/process.h"
#include "common/shell.h"
#include "slurm/client.h"
#include "slurm/config.h"
#include "slurm/describe.h"
#include "slurm/render.h"
#include "slurm/session.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
namespace fs = std::filesystem;

Failure NoAnswer(const SlurmError& e) {
  return {e.trouble() == Trouble::kRefused ? Failure::Kind::kInfrastructure : Failure::Kind::kNotNow,
          fmt::format("Slurm does not answer: {}", e.what()), "`scontrol ping` says whether its controller is up"};
}

// For a session's calls that may find Slurm silent.
template <typename Ask>
auto Answered(Ask ask) {
  try {
    return ask();
  } catch (const SlurmError& e) {
    throw NoAnswer(e);
  }
}

// The cluster to use, if it is named. Slurm's own tools also read the variable.
std::string ClusterOf(const Options& options) {
  const char* variable = std::getenv("SLURM_CLUSTERS");
  if (!options.cluster.empty() || variable == nullptr) return options.cluster;
  if (std::string name = variable; name != "all" && name.find(',') == std::string::npos) return name;
  throw Failure(Failure::Kind::kUsage, fmt::format("SLURM_CLUSTERS is {}, and a sweep goes to one cluster", variable),
                "name it as launch: slurm: clusters, or unset the variable");
}

// sbatch prefers its variables to a script's options, so the script refuses to run if one is set. But it could report
// that only when it starts, hours later, so the command unsets them.
std::string SbatchCommand() {
  std::string unset;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (name.starts_with("SBATCH_")) unset += " -u " + plugin::ShellQuote(std::string(name));
  }
  return unset.empty() ? "sbatch FILE" : "env" + unset + " sbatch FILE";
}

// Why a job of these options would be refused. Names the setting that Slurm's words are about, if it is given.
Failure Refused(const Options& options, const std::string& words) {
  const Refusal& refusal = RefusalOf(words);
  const std::pair<std::string_view, const std::string*> given[] = {{"partition", &options.partition},
                                                                   {"account", &options.account},
                                                                   {"qos", &options.qos},
                                                                   {"constraint", &options.constraint},
                                                                   {"reservation", &options.reservation}};
  std::string message = fmt::format("Slurm would refuse the job: {}", words);
  for (const auto& [setting, value] : given) {
    if (setting == refusal.setting && !value->empty())
      message = fmt::format("launch: slurm: {} is '{}': {}", setting, *value, message);
  }
  return {Failure::Kind::kInvalidInput, message, std::string(refusal.hint), std::string(refusal.reason)};
}

class SlurmLauncher final : public plugin::Launcher {
 public:
  SlurmLauncher(const Json& config, fs::path state_dir)
      : options_(ReadOptions(config)), state_dir_(std::move(state_dir)) {}
  SlurmLauncher(const SlurmLauncher&) = delete;
  SlurmLauncher& operator=(const SlurmLauncher&) = delete;
  ~SlurmLauncher() override {
    try {
      if (session_ != nullptr) session_->Leave();
    } catch (const std::exception&) {
      // The end of a run must not depend on a mail.
    }
  }

  plugin::Capabilities Can() const override {
    return {.queue = true, .poll_pause = true, .render = true, .bulk = true};
  }

  plugin::Availability Probe() override {
    try {
      const Session& session = Talk();
      return {true, "",
              fmt::format("Slurm {} ({}) through {}{}", session.facts().version, session.facts().cluster,
                          session.client().Description(), why_tools_.empty() ? "" : ", since " + why_tools_),
              options_.max_queued};
    } catch (const Error& error) {
      const Failure e = Failure::Of(error);
      return {.why = e.what(), .description = "Slurm", .retry = e.kind() == Failure::Kind::kNotNow};
    }
  }

  std::vector<std::optional<Failure>> WhyRefused(const Json& jobs) override {
    std::vector<std::optional<Failure>> refusals;
    for (const Json& job : jobs) {
      const BatchJob batch =
          Bundle(Json::array({job}), options_, ArrayLimit(), fs::current_path().string(), state_dir_.string()).front();
      refusals.push_back(Answered([&]() -> std::optional<Failure> {
        try {
          Talk().client().Test(batch);
          return std::nullopt;
        } catch (const SlurmError& e) {
          // A limit on how many jobs the queue takes now says nothing about the job.
          if (e.trouble() == Trouble::kBusy) return std::nullopt;
          if (e.trouble() == Trouble::kNoAnswer) throw;
          return Refused(batch.options, e.what());
        }
      }));
    }
    return refusals;
  }

  plugin::Rendering Render(const Json& jobs) override {
    plugin::Rendering rendered{{}, SbatchCommand()};
    if (jobs.empty()) return rendered;
    // The logs go beside the jobs' folders: rendered files are submitted by hand, and this launcher keeps no record of
    // them.
    const fs::path log_dir = fs::path(jobs.front().at("job_dir").get<std::string>()).parent_path();
    for (const BatchJob& batch : Bundle(jobs, options_, ArrayLimit(), fs::current_path().string(), log_dir.string())) {
      rendered.files.push_back({batch.file_name + ".sbatch", SbatchFile(batch)});
    }
    return rendered;
  }

  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds within) override {
    return Talk().Submit(jobs, within);
  }

  plugin::Polled Poll(const std::vector<std::string>& keys) override { return Timed(&Session::Poll, keys); }
  plugin::Polled Look(const std::vector<std::string>& keys) override { return Timed(&Session::Look, keys); }

  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    Session& session = Talk();
    return Answered([&] { return session.Cancel(keys); });
  }

 private:
  plugin::Polled Timed(std::vector<plugin::JobState> (Session::*ask)(const std::vector<std::string>&),
                       const std::vector<std::string>& keys) {
    Session& session = Talk();
    return Answered([&]() -> plugin::Polled {
      const plugin::Clock& clock = plugin::SystemClock();
      const auto begin = clock.Now();
      std::vector<plugin::JobState> states = (session.*ask)(keys);
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - begin);
      return {std::move(states), PollPauseMs(options_, took.count())};
    });
  }

  // One session serves all calls, because it knows Slurm's last reports.
  Session& Talk() {
    if (session_ == nullptr) session_ = Answered([&] { return BeginHere(); });
    return *session_;
  }

  std::unique_ptr<Session> BeginHere() {
    try {
      return Begin();
    } catch (const SlurmError& e) {
      const std::string_view missing = MissingHere(e.what());
      if (missing.empty()) throw;
      throw Failure(Failure::Kind::kInfrastructure, std::string(missing), "log in where Slurm's commands work");
    }
  }

  // Throws SlurmError, and Failure for a cluster that only the tools can reach.
  std::unique_ptr<Session> Begin() {
    const std::string cluster = ClusterOf(options_);
    if (!cluster.empty() && options_.client == ClientKind::kAgent) {
      throw Failure(Failure::Kind::kInvalidInput,
                    fmt::format("ridgeline-slurm-agent speaks to this machine's own cluster, and not to {}", cluster),
                    "remove client:, or set client: tools; if SLURM_CLUSTERS names the cluster, unset it");
    }
    const fs::path agent = plugin::ProgramBesideUs("ridgeline-slurm-agent");
    std::error_code ec;
    // A bundle has no agent. That is not worth a message.
    const bool wanted =
        options_.client == ClientKind::kAgent || (options_.client == ClientKind::kAuto && fs::exists(agent, ec));
    if (cluster.empty() && wanted) {
      try {
        return With(MakeAgentClient(agent));
      } catch (const SlurmError& e) {
        // Without these the tools would fail in the same way, some of them only after a minute.
        if (options_.client == ClientKind::kAgent || !MissingHere(e.what()).empty()) throw;
        why_tools_ = e.what();
      }
    }
    return With(MakeToolsClient(cluster));
  }
  std::unique_ptr<Session> With(std::unique_ptr<Client> client) const {
    return std::make_unique<Session>(state_dir_, options_, std::move(client), plugin::SystemClock());
  }

  const Options options_;
  const fs::path state_dir_;
  std::unique_ptr<Session> session_;
  std::string why_tools_;  // why the tools are used instead of the agent
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const fs::path& state_dir) {
  return std::make_unique<SlurmLauncher>(config, state_dir);
}

}  // namespace
}  // namespace ridgeline::slurm

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<ridgeline::slurm::Open, ridgeline::slurm::DescribeJob>("slurm");
}
