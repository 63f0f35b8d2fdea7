// The requests that the agent answers. It has one thread. A process has one libslurm, and so one Agent.
#pragma once

#include <ctime>
#include <string>

#include <nlohmann/json.hpp>

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

class Agent {
 public:
  // Reads slurm.conf. Without that file the process ends with a message on standard error, as libslurm does it.
  Agent();
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Answers one request with one reply: {"ok": …} or {"error": {"code", "text"}}.
  Json Answer(const std::string& line);

 private:
  Json Facts(const Json& request);
  Json Ping(const Json& request);
  Json Submit(const Json& request);
  Json Jobs(const Json& request);
  Json Finished(const Json& request);
  Json Cancel(const Json& request);

  time_t jobs_as_of_ = 0;  // slurmctld's time of the last jobs that it reported
};

// Removes the settings for Slurm's commands that a shell or an enclosing job has made, because libslurm reads some of
// them. Keeps the variables that say where the cluster is and who we are.
void ForgetAmbientSettings();

}  // namespace ridgeline::slurm_agent
