// Finds what distinguishes runs that are shown together.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/report.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::report {

// For each of some results (their numbers in the store), in words, everything that differs from another of them: fields
// of its point, its setup, its campaign, its machine, its device and its build. "seed 2, campaign night-2"; empty if
// nothing differs, or if there is no result. `told`: what is already shown, and is not repeated.
std::vector<std::string> TellApart(store::Store& store, const std::vector<std::optional<int64_t>>& results,
                                   const std::set<std::string>& told);

// Adds the column kDiffers to a report's answer: what distinguishes a row from the others of its panel, for as many as
// a page shows. An answer without the column `result` is unchanged.
void AddDifferences(const Report& report, store::Store& store, Table& table);

}  // namespace ridgeline::report
