// The container in which a job's trainers run, if its launcher names one (kContainerVariable). exec itself, its clock,
// its limits and its results stay outside, so an image needs nothing from Ridgeline.
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

namespace ridgeline::node {

// A process of a point's trainer, which runs in the container.
struct Inside {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // overrides the image's variables
  std::filesystem::path directory;                 // the working folder; empty: exec's
  std::filesystem::path entered;                   // files that exist once the container runs,
  std::filesystem::path begun;                     // and once its trainer is about to start
};

class Container {
 public:
  // Takes the container from this process's environment, and removes it there; nothing if there is none. Throws
  // Error(kInvalidInput) if it is invalid.
  static std::optional<Container> OfThisJob(const Nodes& nodes);
  // `words`: as in kContainerVariable, for a job on `nodes`. `node`: Slurm's name for this one; empty if Slurm names
  // none.
  Container(std::vector<std::string> words, const Nodes& nodes, std::string node);
  Container(Container&&) noexcept = default;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  Container& operator=(Container&&) = delete;
  // On the first node, removes what a named container of pyxis keeps on all nodes. The others cannot do it: a step that
  // the first node started runs there, too.
  ~Container();

  // Whether Slurm starts the container, in a step of its own.
  bool IsStep() const;
  // The words before the trainer's command. `srun`: the words that start its ranks, if srun starts them; else empty.
  // Mounts the folders of `spec` that exist on this node, too.
  std::vector<std::string> Words(const std::vector<std::string>& srun, const RunSpec& spec) const;
  // The command to start, which follows those words.
  static std::vector<std::string> Command(const Inside& inside);

 private:
  std::vector<std::string> words_;
  Nodes nodes_;
  std::string node_;
};

// Limits how long the containers of a job's points may take, so that together they keep within the job's time.
class ContainerStarts {
 public:
  int64_t LimitNs() const;  // the next one's limit
  void Took(int64_t ns);

 private:
  int64_t left_ns_ = kContainerStartsS * 1'000'000'000;  // for containers that take more than their own share
};

// Why a trainer never started in its container. `log`: the end of its process's output. `entered`: whether the
// container ran. `late_ns`: the limit that it exceeded; 0: it ended earlier. The fault is the image's if pyxis, enroot
// or Apptainer say so; otherwise it is a start's.
Unfit WhyNotBegun(std::string_view log, bool entered, int64_t late_ns);

// Whether slurmstepd reports that the kernel killed a process of the step because memory ran out.
bool SaysKilledForMemory(std::string_view log);

}  // namespace ridgeline::node
