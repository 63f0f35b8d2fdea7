// What one process of a point is started with: exec starts it so, and who asks is shown it before (node/preview.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "node/ranks.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "trainers/invocation.h"

namespace ridgeline {

class Container;
class DefinedTrainer;

// Where in a point's folder its trainer may write, and its definition's files lie.
inline constexpr const char* kOutputName = "output";

// Where a point's ranks meet, and its files lie.
struct PointPlace {
  std::string master_addr = "127.0.0.1";
  std::string master_port;  // empty: they meet nowhere
  std::string output_dir;
  std::string spec_file;
  std::string result_file;
  std::string progress_file;
  std::string secret_file;  // empty: they need none
  bool is_shown = false;    // nothing is started: what is not known stands as a Placeholder (trainers/invocation.h)
  bool resumes = false;     // of what is shown: as if its checkpoint folder held something
};

// In a folder of this node. `port`: where the ranks of one node meet; 0: nowhere.
PointPlace PlaceIn(const std::filesystem::path& point_dir, const Nodes& nodes, int64_t port);

// On a node that nobody knows yet: placeholders.
PointPlace UnknownPlace(const Nodes& nodes);

struct Starting : Invoked {
  size_t starter_words = 0;  // of argv, at its begin: what starts the rest, as srun or a container's runtime
};

// With every variable that does not depend on the node's cores; nothing is written. `defined`: nullptr of a trainer
// that keeps the contract. `container`: that its process runs in; nullptr: none, or nobody knows yet. `spec`: as the
// node has it. Throws as DefinedTrainer::InvokedFor.
Starting StartOf(const Job& job, const DefinedTrainer* defined, const Container* container, const RunSpec& spec,
                 const RankProcess& process, const Nodes& nodes, const PointPlace& place);

}  // namespace ridgeline
