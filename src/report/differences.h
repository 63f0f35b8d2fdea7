// What tells runs apart that are shown together.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/report.h"

namespace ridgeline {

class Store;

// Of each of some results (their numbers in the store), in words, whatever it has otherwise than another of them:
// fields of its point, its setup, its campaign, its machine, its device and its build. "seed 2, campaign night-2";
// empty where nothing differs, and where there is no result. `told` is what is said of them already, and not again.
std::vector<std::string> TellApart(Store& store, const std::vector<std::optional<int64_t>>& results,
                                   const std::set<std::string>& told);

// Gives a report's answer the column kDiffers: what tells a row apart from the others of its panel, for as many as a
// page shows. An answer without the column `result` is left as it is.
void AddDifferences(const Report& report, Store& store, Table& table);

}  // namespace ridgeline
