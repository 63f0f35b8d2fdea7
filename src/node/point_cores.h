// The cores that a job's points may use on this node, and whether they are pinned to them.
//
// Cores that are ours alone are pinned to: each rank has its own, and no thread wanders. Elsewhere several jobs of a
// node may all see the same cores, as pods do where nobody gives out cpusets; were each pinned to the first of them,
// they would crowd there and leave the others idle. So there the number of threads is kept, and where they run is left
// to the kernel, which knows who else is there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cores.h"

namespace ridgeline {

struct PointCores {
  std::vector<int> ids;    // as many as a point may keep busy
  bool own = false;        // ours alone: pinned to. Else they only say how many
  std::vector<int> among;  // where its threads may run

  double share() const;  // of their time that is the point's
};

// `wanted`: cores that a point asks for; 0: all there are. They are ours where `own_given`, the cores that the launcher
// says it gave to this job alone ("0,1"; empty: it says nothing), are what this process may run on, or where that is
// a part of the machine and just what is wanted: then somebody has cut it out for us.
PointCores CoresFor(int64_t wanted, const AllowedCores& allowed, const std::string& own_given);

// $RIDGELINE_OWN_CORES (ridgeline/job_dir.h).
std::string OwnCoresGiven();

// How OpenMP's threads wait for each other, as variables for the environment of who has such cores; nothing where
// `given`, or our own environment, says it. To wake a thread that sleeps takes 0.05 to 0.1 ms, and small steps have
// hundreds of parallel regions that take less. So on cores that are ours they look for a while first; elsewhere they
// would take them from other jobs.
std::map<std::string, std::string> WaitingOfThreads(bool own, const std::map<std::string, std::string>& given);

}  // namespace ridgeline
