// Slurm, asked: through the command-line tools, which every site has, or through ridgeline-slurm-agent, which keeps
// libslurm loaded and asks the controller only for what changed.
//
// Every call may throw Trouble as SlurmError.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/meaning.h"
#include "slurm/parse.h"
#include "slurm/render.h"

namespace ridgeline::slurm {

class SlurmError : public std::exception {
 public:
  SlurmError(Trouble trouble, std::string words) : trouble_(trouble), words_(std::move(words)) {}
  Trouble trouble() const { return trouble_; }
  const char* what() const noexcept override { return words_.c_str(); }

 private:
  Trouble trouble_;
  std::string words_;
};

class Client {
 public:
  virtual ~Client() = default;
  virtual std::string Description() const = 0;  // "sbatch, squeue and sacct"
  virtual Facts GetFacts() = 0;
  // The id of the job. kNoAnswer: it may exist. Whatever was not clearly refused is that.
  virtual int64_t Submit(const BatchJob& batch) = 0;
  // This user's jobs that the controller knows, in one question; nothing where none has changed since the last one.
  virtual std::optional<std::vector<Row>> Jobs() = 0;
  // Jobs of these names, as Slurm has them, that the accounting knows, submitted since.
  virtual std::vector<Row> Accounted(const std::vector<std::string>& job_names, int64_t since_unix_s) = 0;
  // The same of these ids, whatever their names.
  virtual std::vector<Row> AccountedById(const std::vector<int64_t>& ids, int64_t since_unix_s) = 0;
  // "12", "12_[0-4]": told to end. Jobs that have ended already are no trouble.
  virtual void Cancel(const std::vector<std::string>& ids) = 0;
};

// Slurm's tools, asked about this cluster; empty: the one that this machine is of. `timeout_ms`: of one of their calls.
constexpr int64_t kToolTimeoutMs = 60'000;
std::unique_ptr<Client> MakeToolsClient(const std::string& cluster = {}, int64_t timeout_ms = kToolTimeoutMs);
// Throws SlurmError where the agent does not start. Its GetFacts refuses a controller of another release.
std::unique_ptr<Client> MakeAgentClient(const std::filesystem::path& agent);

// Ours, without the variables that change what Slurm's tools do; what says where the cluster is and who we are stays.
// Jobs get it too, and the script takes from it what is not for them.
std::vector<std::string> SubmitEnvironment();

}  // namespace ridgeline::slurm
