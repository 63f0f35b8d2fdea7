// The facts of a measurement, by name. Reports distinguish their rows by them.
#pragma once

#include <map>
#include <string>

#include "base/json.h"

namespace ridgeline::report {

using ShownFacts = std::map<std::string, std::string>;  // values in the form for people

// Adds the members of an object; those of inner objects as "outer.inner". Adds nothing for other JSON.
void AddFacts(const Json& json, const std::string& prefix, ShownFacts& facts);

// The fields of a point. A trainer's own fields have their own names. `spec`: canonical JSON, as in the store. Throws
// Error(kInvalidInput) if it is invalid.
ShownFacts FactsOfPoint(const std::string& spec);

}  // namespace ridgeline::report
