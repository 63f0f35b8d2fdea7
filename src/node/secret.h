// The secret by which the ranks of a job recognize each other. It is in a file that only its owner can read, and
// RIDGELINE_SECRET_FILE names the file. It is in no environment and on no command line itself, because others can read
// those.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline::node {

class RanksSecret {
 public:
  // `makes_it`: true on node 0. Either the nodes share the job's folder, or the program that starts us on each of them
  // brings a secret there and names its file in RIDGELINE_SECRET_FILE.
  RanksSecret(const std::filesystem::path& job_dir, bool makes_it);
  RanksSecret(const RanksSecret&) = delete;
  RanksSecret& operator=(const RanksSecret&) = delete;
  // Removes the file that it made.
  ~RanksSecret();

  // The file's name. If it is the job's, node 0 creates it at the first call, and replaces one that a killed attempt
  // left. On other nodes it may not exist yet, or may still be the old one: ranks read it until they are admitted.
  // Throws Error(kInfrastructure) if it cannot be written.
  std::string File();

 private:
  std::filesystem::path file_;
  bool makes_it_;
  bool made_ = false;
};

}  // namespace ridgeline::node
