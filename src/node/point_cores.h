// The cores that a job's points may use on this node, and whether they are pinned to them.
//
// Points are pinned to cores that are ours alone: each rank has its own, and no thread moves. Elsewhere, several jobs
// of a node may all see the same cores, as pods do if nothing assigns cpusets. If each were pinned to the first of
// them, they would crowd there and leave the others idle. So there only the number of threads is kept. The kernel,
// which knows the other programs, decides where they run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cores.h"

namespace ridgeline::node {

struct PointCores {
  std::vector<int> ids;    // as many cores as a point may keep busy
  bool own = false;        // ours alone, so points are pinned to them; else only their number counts
  std::vector<int> among;  // cores that its threads may run on

  double share() const;  // the point's share of their time
};

// `wanted`: cores that a point requests; 0: all. `own_given`: the cores that the launcher says it gave to this job
// alone ("0,1"; empty: it says nothing). The cores are ours if `own_given` are the cores that this process may run on.
// They are also ours if those are a part of the machine and exactly as many as wanted, because then someone set them
// aside for us.
PointCores CoresFor(int64_t wanted, const AllowedCores& allowed, const std::string& own_given);

// $RIDGELINE_OWN_CORES (ridgeline/job_dir.h).
std::string OwnCoresGiven();

// How OpenMP's threads wait for each other, as environment variables for a program with such cores. Nothing if `given`
// or our own environment sets it. Waking a sleeping thread takes 0.05 to 0.1 ms, and small steps have hundreds of
// parallel regions that take less. So on cores that are ours, threads first poll for a while. Elsewhere this would take
// the cores from other jobs.
std::map<std::string, std::string> WaitingOfThreads(bool own, const std::map<std::string, std::string>& given);

}  // namespace ridgeline::node
