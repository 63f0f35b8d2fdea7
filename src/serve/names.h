// What points are called in a page: by what tells them from those around them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace ridgeline {

// Of points of a sweep, by their ids, against that sweep's others.
std::map<std::string, std::string> NamesInSweep(Store& store, const std::string& sweep,
                                                const std::vector<std::string>& ids);

// "llama-25m, bf16, batch 8, sequence 512, checkpointing full": a point by itself, from its spec (canonical JSON).
std::string NameOfPoint(const std::string& spec);

}  // namespace ridgeline
