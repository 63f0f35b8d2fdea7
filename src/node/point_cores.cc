#include "node/point_cores.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridgeline/job_dir.h"

namespace ridgeline::node {

double PointCores::share() const {
  return among.empty() ? 1 : static_cast<double>(ids.size()) / static_cast<double>(among.size());
}

PointCores CoresFor(int64_t wanted, const AllowedCores& allowed, const std::string& own_given) {
  const int64_t count = wanted > 0 ? std::min(wanted, allowed.count()) : allowed.count();
  PointCores cores;
  cores.ids.assign(allowed.ids.begin(), allowed.ids.begin() + count);
  const bool given = !own_given.empty() && own_given == fmt::format("{}", fmt::join(allowed.ids, ","));
  const bool cut_out = allowed.subset && !cores.ids.empty() && cores.ids.size() == allowed.ids.size();
  cores.own = given || cut_out;
  cores.among = cores.own ? cores.ids : allowed.ids;
  return cores;
}

std::string OwnCoresGiven() {
  const char* given = std::getenv(kOwnCoresVariable);
  return given == nullptr ? "" : given;
}

std::map<std::string, std::string> WaitingOfThreads(bool own, const std::map<std::string, std::string>& given) {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (given.contains(name) || std::getenv(name) != nullptr) return {};
  }
  // About 0.3 ms. libgomp's default of 300,000 keeps cores busy that the ranks' messages need.
  if (own) return {{"GOMP_SPINCOUNT", "10000"}};
  return {{"OMP_WAIT_POLICY", "passive"}};
}

}  // namespace ridgeline::node
