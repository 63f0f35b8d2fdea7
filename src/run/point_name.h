// Names of points for people.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "ridgeline/run.h"
#include "run/fields.h"

namespace ridgeline {

using NamedValue = std::pair<std::string, std::string>;  // a field's name and its value

// Names a point among others by the fields that distinguish it: "batch_size=8, precision=bf16". Shows control
// characters as escapes. Every command and page names points so; `--point` of `nightly accept` takes such a name.
std::string PointName(std::span<const NamedValue> values);

// The same for some fields of a spec, without those that the point does not have. If none is left, names its model.
std::string PointName(const RunSpec& spec, std::span<const Field* const> fields);

// Names a point that stands alone: "llama-25m, bf16, batch 8, sequence 512, checkpointing full".
std::string PointName(const RunSpec& spec);

}  // namespace ridgeline
