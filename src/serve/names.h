// The names of points on a page, from what distinguishes them from those around them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace ridgeline::serve {

// The names of a sweep's points, by their ids, compared with that sweep's others.
std::map<std::string, std::string> NamesInSweep(store::Store& store, const std::string& sweep,
                                                const std::vector<std::string>& ids);

// A single point, from its spec (canonical JSON).
std::string NameOfPoint(const std::string& spec);

}  // namespace ridgeline::serve
