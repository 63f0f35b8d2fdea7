// The requests that the agent answers. One thread; libslurm, and so an Agent, is one a process.
#pragma once

#include <ctime>
#include <string>

#include <nlohmann/json.hpp>

namespace ridgeline::slurm_agent {

using Json = nlohmann::json;

class Agent {
 public:
  // Reads slurm.conf. Where there is none the process ends, with words on standard error: libslurm's way.
  Agent();
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // One request, one reply: {"ok": …} or {"error": {"code", "text"}}.
  Json Answer(const std::string& line);

 private:
  Json Facts(const Json& request);
  Json Ping(const Json& request);
  Json Submit(const Json& request);
  Json Jobs(const Json& request);
  Json Finished(const Json& request);
  Json Cancel(const Json& request);

  time_t jobs_as_of_ = 0;  // slurmctld's time of the jobs it told last
};

// What a shell or an enclosing job has set for Slurm's commands must not reach libslurm, which reads some of it; what
// says where the cluster is and who we are stays.
void ForgetAmbientSettings();

}  // namespace ridgeline::slurm_agent
