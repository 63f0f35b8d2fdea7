// The reports of a job's nodes on their parts of a point, in files of the point's folder, if they share it. A node
// reports its name when it begins, and later how the point ended for it (trainers/node_part.h). A node that fails takes
// its ranks with it. To the ranks on other nodes that looks as if the trainer had crashed there, but no process is left
// to report how it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/watch.h"
#include "ridgeline/run.h"
#include "trainers/node_part.h"

namespace ridgeline::node {

// Reports that the calling node, under its scheduler's name for it, is at the point. Throws Error(kInfrastructure) if
// it cannot be written; so does EndPart.
void TakePart(const std::filesystem::path& point_dir, int64_t node, const std::string& name);
// Reports that it no longer is. `dir`: the point's folder, or the job's for a node that can run none of its points.
void EndPart(const std::filesystem::path& dir, const std::string& point_id, int64_t node, const std::string& payload);

// One point, as seen by the calling node.
struct PartsOf {
  std::filesystem::path job_dir;
  std::string point_id;
  int64_t nodes = 1;
  const trainers::Trainer* trainer = nullptr;  // the trainer whose logs are read; null: another kind
};

struct OtherParts {
  std::vector<trainers::NodePart> ended;  // sorted
  std::vector<std::string> at_it;         // the names of nodes that have not ended
};

struct PartsWait {
  int64_t at_it_ns = 0;    // the wait for a node that is at the point
  int64_t absent_ns = 0;   // the wait for a node that has not come
  bool all_share = false;  // whether all share the folder, as far as known; else those whose lock exists
  std::function<bool()> give_up;
};

// The first node calls this when the point has ended on it with `own`. Waits for the ends of the other nodes that share
// its folder. Ignores what an earlier attempt left.
OtherParts WaitForParts(const PartsOf& parts, const RunResult& own, const PartsWait& wait);

// Whether a node's file in the point's folder says that it is no longer at the point.
bool HasEndedPart(const std::filesystem::path& point_dir, int64_t node);

// The longest time, after a point has failed on one node, until OthersWatch has ended it on the others.
int64_t EndsOthersNs(int64_t grace_ns);

struct OthersPatience {
  int64_t grace_ns = 0;
  int64_t others_end_ns = 0;  // time after the first node has ended well
};

// While a point runs on several nodes, watches whether it has failed on another one. Its processes here would otherwise
// wait for those until their time is up. They have the grace time to end by themselves, because they may be able to
// report the cause. On every node but the first, also ends processes that still run long after the first node has ended
// well: if a person submitted the job, nothing else would end them. The first node may have more work than others, such
// as saving for all.
class OthersWatch {
 public:
  OthersWatch(PartsOf parts, int64_t node, int64_t begin_unix_ns, const OthersPatience& patience, const Clock& clock);
  StopReason Look();  // kNone: they may continue

 private:
  bool AnotherFailed();
  int64_t PauseNs() const;

  PartsOf parts_;
  int64_t node_;
  int64_t begin_unix_ns_;
  OthersPatience patience_;
  const Clock& clock_;
  int64_t next_look_ns_ = 0;
  std::optional<int64_t> failed_ns_;       // when the failure was noticed
  std::optional<int64_t> first_ended_ns_;  // when the first node ended well
  std::set<int64_t> done_;                 // nodes that ended well
};

}  // namespace ridgeline::node
