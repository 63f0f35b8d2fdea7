// The container that a job's trainers run in, where its launcher names one (kContainerVariable): exec itself, its
// clock, its limits and its results stay outside, so that an image needs nothing of Ridgeline's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/preflight.h"
#include "ridgeline/run.h"

namespace ridgeline {

// How long a container may take to begin. Its image was fetched before.
inline constexpr int64_t kContainerStartsS = 600;

// What runs in it: a process of a point's trainer.
struct Inside {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // whatever the image says of the same names
  std::filesystem::path directory;                 // that it runs in; empty: where exec does
  std::filesystem::path entered;                   // files that are there once the container runs,
  std::filesystem::path begun;                     // and once its trainer is there to be started
};

class Container {
 public:
  // The one of this process's environment, and takes it out of there; nothing where there is none. Throws
  // Error(kInvalidInput) where it is none.
  static std::optional<Container> OfThisJob();
  // `words` as kContainerVariable has them. `node`: what Slurm calls this one; empty: it says so of none.
  Container(std::vector<std::string> words, std::string node);
  Container(Container&&) noexcept = default;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  Container& operator=(Container&&) = delete;
  // Removes what a named container of pyxis keeps on this node.
  ~Container();

  // Whether Slurm starts it, in a step of its own.
  bool IsStep() const;
  // What stands before the trainer's command. `srun`: what starts its ranks, where srun does; else empty. The folders
  // of `spec` that are there on this node are mounted, too.
  std::vector<std::string> Words(const std::vector<std::string>& srun, const RunSpec& spec) const;
  // What is started, behind those.
  static std::vector<std::string> Command(const Inside& inside);

 private:
  std::vector<std::string> words_;
  std::string node_;
};

// Why a trainer never began in its container. `log`: the end of what its process said, `entered`: whether the container
// ran, `late`: it had not by the limit.
Unfit WhyNotBegun(std::string_view log, bool entered, bool late);

// Whether slurmstepd says that the kernel killed a process of the step for want of memory.
bool SaysKilledForMemory(std::string_view log);

}  // namespace ridgeline
