// What a job's nodes say of their parts in a point, in files of the point's folder, where they share that: that they
// are at it, by their names, and how it ended for them (trainers/node_part.h). A node that fails takes its ranks with
// it, and to theirs on other nodes that looks as if the trainer had crashed there; but nobody is left who would say how
// it ended.
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

namespace ridgeline {

// Of the node that calls it, by the name that its scheduler has for it: it is at the point. Throws
// Error(kInfrastructure) where it cannot be written; so does EndPart.
void TakePart(const std::filesystem::path& point_dir, int64_t node, const std::string& name);
// It is not any more. `dir`: the point's folder, or the job's of a node that can run none of its points.
void EndPart(const std::filesystem::path& dir, const std::string& point_id, int64_t node, const std::string& payload);

// Of one point, for the node that calls it.
struct PartsOf {
  std::filesystem::path job_dir;
  std::string point_id;
  int64_t nodes = 1;
  const Trainer* trainer = nullptr;  // whose logs are read; null: another's
};

struct OtherParts {
  std::vector<NodePart> ended;     // sorted
  std::vector<std::string> at_it;  // the names of those that have not ended
};

struct PartsWait {
  int64_t at_it_ns = 0;    // for a node that is at the point
  int64_t absent_ns = 0;   // for one that has not come
  bool all_share = false;  // the folder, as far as is known; else those whose lock is there
  std::function<bool()> give_up;
};

// For the first node, when the point has ended on it, as `own` says: waits for how it ended for the others that share
// its folder. What an earlier attempt left does not count.
OtherParts WaitForParts(const PartsOf& parts, const RunResult& own, const PartsWait& wait);

// Whether a node's file in the point's folder says that it is not at it any more.
bool HasEndedPart(const std::filesystem::path& point_dir, int64_t node);

// How long it takes at most, after a point has failed on one node, until OthersWatch has ended it on the others.
int64_t EndsOthersNs(int64_t grace_ns);

struct OthersPatience {
  int64_t grace_ns = 0;
  int64_t others_end_ns = 0;  // after the first node has ended well
};

// Looks on while a point runs on several nodes, whether it has failed on another: its processes here would wait for
// those until their time is up. They have the grace time to end by themselves, as they may be able to say why. On any
// node but the first they are ended, too, that still run long after the first has ended well: whoever submitted the job
// by hand would have nobody else who ends it. The first may have more to do than others, as saving for all.
class OthersWatch {
 public:
  OthersWatch(PartsOf parts, int64_t node, int64_t begin_unix_ns, const OthersPatience& patience, const Clock& clock);
  StopReason Look();  // kNone: they may go on

 private:
  bool AnotherFailed();
  int64_t PauseNs() const;

  PartsOf parts_;
  int64_t node_;
  int64_t begin_unix_ns_;
  OthersPatience patience_;
  const Clock& clock_;
  int64_t next_look_ns_ = 0;
  std::optional<int64_t> failed_ns_;       // since when that is known
  std::optional<int64_t> first_ended_ns_;  // well
  std::set<int64_t> done_;                 // nodes that have ended well
};

}  // namespace ridgeline
