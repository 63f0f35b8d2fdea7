#include "local/config.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "common/options.h"

namespace ridgeline::local {

using plugin::Failure;
using plugin::Json;

namespace {

void RefuseOwnSettings(const Json& config) {
  if (const auto own = config.find("local"); own != config.end() && !own->empty()) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("launch: local: '{}' is not a setting of the local launcher, which has none of its own",
                              own->is_object() ? own->begin().key() : own->dump()),
                  "max_parallel and cpus stand directly under launch:");
  }
}

}  // namespace

std::vector<std::vector<int>> SlotCores(const Json& config, const std::vector<int>& allowed) {
  RefuseOwnSettings(config);
  const auto cores = static_cast<int64_t>(allowed.size());
  const int64_t asked_slots = plugin::CountUnderLaunch(config, "max_parallel");
  const int64_t slots = asked_slots > 0 ? asked_slots : 1;
  const int64_t asked_cores = plugin::CountUnderLaunch(config, "cpus");
  const int64_t each = asked_cores > 0 ? asked_cores : cores / slots;
  if (each < 1 || slots > cores / each) {
    throw Failure(
        Failure::Kind::kInvalidInput,
        fmt::format("launch: {} at once with {} each need {}, and this process may use {}",
                    slots == 1 ? "1 job" : fmt::format("{} jobs", slots),
                    each <= 1 ? "1 core" : fmt::format("{} cores", each), slots * (each < 1 ? 1 : each), cores),
        "lower max_parallel or cpus: jobs that share cores would measure each other");
  }
  std::vector<std::vector<int>> sets;
  for (int64_t slot = 0; slot < slots; ++slot) {
    const auto first = allowed.begin() + static_cast<ptrdiff_t>(slot * each);
    sets.emplace_back(first, first + static_cast<ptrdiff_t>(each));
  }
  return sets;
}

void CheckJob(const Json& job, size_t slot_cores) {
  RefuseOwnSettings(job.value("config", Json::object()));
  if (const auto nodes = job.value("nodes", int64_t{1}); nodes > 1) {
    throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: nodes is {}, and this machine is one", nodes),
                  "let all ranks be on one node, or use a launcher of a cluster");
  }
  if (const auto cpus = job.value("cpus", int64_t{0}); cpus > static_cast<int64_t>(slot_cores)) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("the job needs {} cores, and a job gets {} here", cpus, slot_cores),
                  "lower max_parallel or the job's cpus");
  }
}

}  // namespace ridgeline::local
