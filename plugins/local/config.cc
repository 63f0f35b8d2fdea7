#include "local/config.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "common/options.h"

namespace ridgeline::local {

using plugin::Failure;
using plugin::Json;

std::vector<std::vector<int>> SlotCores(const Json& config, const std::vector<int>& allowed) {
  if (const auto own = config.find("local"); own != config.end() && !own->empty()) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("launch: local: '{}' is not a setting of the local launcher, which has none of its own",
                              own->is_object() ? own->begin().key() : own->dump()),
                  "max_parallel and cpus stand directly under launch:");
  }
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

}  // namespace ridgeline::local
