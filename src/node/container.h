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
#include "node/ranks.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/run.h"

namespace ridgeline {

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
  static std::optional<Container> OfThisJob(const Nodes& nodes);
  // `words` as kContainerVariable has them, of a job on `nodes`. `node`: what Slurm calls this one; empty: it says so
  // of none.
  Container(std::vector<std::string> words, const Nodes& nodes, std::string node);
  Container(Container&&) noexcept = default;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  Container& operator=(Container&&) = delete;
  // On the first node, removes what a named container of pyxis keeps on all of them. The others cannot: a step that the
  // first has started runs there, too.
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
  Nodes nodes_;
  std::string node_;
};

// How long the containers of a job's points may take, so that all of them keep within the job's time.
class ContainerStarts {
 public:
  int64_t LimitNs() const;  // of the next
  void Took(int64_t ns);

 private:
  int64_t left_ns_ = kContainerStartsS * 1'000'000'000;  // for those that take more than each has
};

// Why a trainer never began in its container. `log`: the end of what its process said, `entered`: whether the container
// ran, `late_ns`: the limit by which it had not; 0: it ended before. The image's fault is what pyxis, enroot or
// Apptainer say of the image; all else is a start's.
Unfit WhyNotBegun(std::string_view log, bool entered, int64_t late_ns);

// Whether slurmstepd says that the kernel killed a process of the step for want of memory.
bool SaysKilledForMemory(std::string_view log);

}  // namespace ridgeline
