// What is known of a measurement, by name: what reports tell their rows apart by.
#pragma once

#include <map>
#include <string>

#include "base/json.h"

namespace ridgeline {

using Facts = std::map<std::string, std::string>;  // values as people write them

// Adds the members of an object, those of inner objects as "outer.inner". Adds nothing of other JSON.
void AddFacts(const Json& json, const std::string& prefix, Facts& facts);

// The fields of a point, a trainer's own among them under their own names. `spec`: canonical JSON, as the store has it;
// throws Error(kInvalidInput) where it is none.
Facts FactsOfPoint(const std::string& spec);

}  // namespace ridgeline
