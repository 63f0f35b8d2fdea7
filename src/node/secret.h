// What the ranks of a job know each other by: a secret in a file that its owner alone can read, whose name they find in
// RIDGELINE_SECRET_FILE. It is in no environment and on no command line itself: others can read those.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline {

class RanksSecret {
 public:
  // `makes_it`: node 0 does. Nodes share the job's folder, or whoever starts us on each of them brings a secret there
  // and names its file in RIDGELINE_SECRET_FILE.
  RanksSecret(const std::filesystem::path& job_dir, bool makes_it);
  RanksSecret(const RanksSecret&) = delete;
  RanksSecret& operator=(const RanksSecret&) = delete;
  // Removes what it made.
  ~RanksSecret();

  // The file's name. Where it is the job's, node 0 makes it at the first call, in place of what an attempt that was
  // killed has left. Elsewhere it may not be there yet, or still be that one: ranks read it until they are let in.
  // Throws Error(kInfrastructure) where it cannot be written.
  std::string File();

 private:
  std::filesystem::path file_;
  bool makes_it_;
  bool made_ = false;
};

}  // namespace ridgeline
