// What starts one process of a point. exec starts it so, and a preview shows it before (node/preview.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "node/ranks.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "trainers/invocation.h"

namespace ridgeline::node {

class Container;
class DefinedTrainer;

// The folder, inside a point's folder, where its trainer may write and where its definition's files lie.
inline constexpr const char* kOutputName = "output";

// Where a point's ranks meet and where its files lie.
struct PointPlace {
  std::string master_addr = "127.0.0.1";
  std::string master_port;  // empty: they do not meet
  std::string output_dir;
  std::string spec_file;
  std::string result_file;
  std::string progress_file;
  std::string secret_file;  // empty: they need none
  bool is_shown = false;    // nothing is started: unknown values appear as a Placeholder (trainers/invocation.h)
  bool resumes = false;     // for a preview: as if its checkpoint folder had files
};

// A place in a folder of this node. `port`: where the ranks of one node meet; 0: they do not meet.
PointPlace PlaceIn(const std::filesystem::path& point_dir, const Nodes& nodes, int64_t port);

// A place on a node that is not known yet: placeholders.
PointPlace UnknownPlace(const Nodes& nodes);

struct Starting : trainers::Invoked {
  size_t starter_words = 0;  // the leading words of argv that start the rest, such as srun or a container's runtime
};

// Includes every variable that does not depend on the node's cores. Writes nothing. `defined`: nullptr for a trainer
// that keeps the contract. `container`: the one in which its process runs; nullptr: none, or not known yet. `spec`: as
// on the node. Throws as DefinedTrainer::InvokedFor.
Starting StartOf(const Job& job, const DefinedTrainer* defined, const Container* container, const RunSpec& spec,
                 const RankProcess& process, const Nodes& nodes, const PointPlace& place);

}  // namespace ridgeline::node
