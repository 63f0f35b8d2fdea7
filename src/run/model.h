// What a spec's model may be: a preset, a shape of a family, or a name that its trainer alone knows.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "run/spec.h"

namespace ridgeline {

// Sets the shape to the preset's, or of another trainer's spec the name alone. Returns what is wrong, or nothing.
std::vector<Problem> SetModel(const std::string& name, RunSpec& spec);

// That `family` is given beside a model of another.
Problem OtherFamily(const std::string& given, const std::string& model, const std::string& family);

// Appends what is wrong with a canonical spec's model. False where nothing else can be said of the spec.
bool CheckModel(const RunSpec& spec, std::vector<Problem>& problems);

// The name of the model in an encoded spec, as people know it: the text of a younger preset (presets.h) has another.
std::string ModelOfText(const Json& document);

}  // namespace ridgeline
