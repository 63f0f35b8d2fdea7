// The models of a spec: a preset, a shape of a family, or a name that only its trainer knows.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "run/spec.h"

namespace ridgeline {

// Sets the preset's shape, or for another trainer's spec only the name. Returns the problems, if any.
std::vector<Problem> SetModel(const std::string& name, RunSpec& spec);

// The problem that `family` is given beside a model of another family.
Problem OtherFamily(const std::string& given, const std::string& model, ModelFamily family);

// Appends the problems with a canonical spec's model. Returns false if nothing more can be said about the spec.
bool CheckModel(const RunSpec& spec, std::vector<Problem>& problems);

// The usual name of the model in an encoded spec. The text of a younger preset (presets.h) has another name.
std::string ModelOfText(const Json& document);

}  // namespace ridgeline
