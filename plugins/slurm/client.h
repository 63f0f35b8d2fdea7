// Access to Slurm: through the command-line tools, which every site has, or through ridgeline-slurm-agent, which keeps
// libslurm loaded and asks the controller only for changes.
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
  // Returns the id of the job. After kNoAnswer the job may exist: every failure that is not clearly a refusal is
  // kNoAnswer.
  virtual int64_t Submit(const BatchJob& batch) = 0;
  // Asks the controller whether it would take the job. Submits nothing. Throws SlurmError if not.
  virtual void Test(const BatchJob& /*batch*/) const {}
  // Returns this user's jobs that the controller knows, with one question. Returns nothing if none has changed since
  // the last one.
  virtual std::optional<std::vector<Row>> Jobs() = 0;
  // Returns jobs with these names in Slurm that the accounting knows and that were submitted since.
  virtual std::vector<Row> Accounted(const std::vector<std::string>& job_names, int64_t since_unix_s) = 0;
  // The same for these ids, whatever their names.
  virtual std::vector<Row> AccountedById(const std::vector<int64_t>& ids, int64_t since_unix_s) = 0;
  // Tells jobs to end: "12", "12_[0-4]". Jobs that have ended already cause no error.
  virtual void Cancel(const std::vector<std::string>& ids) = 0;
};

// Slurm's tools, used for this cluster; empty: the cluster of this machine. `timeout_ms`: for one call of a tool.
constexpr int64_t kToolTimeoutMs = 60'000;
std::unique_ptr<Client> MakeToolsClient(const std::string& cluster = {}, int64_t timeout_ms = kToolTimeoutMs);
// Throws SlurmError if the agent does not start. Its GetFacts refuses a controller of another release.
std::unique_ptr<Client> MakeAgentClient(const std::filesystem::path& agent);

// Our environment without the variables that change what Slurm's tools do. Keeps the variables that say where the
// cluster is and who we are. Jobs get it too, and the script removes what is not for them.
std::vector<std::string> SubmitEnvironment();

}  // namespace ridgeline::slurm
