// What no schema says of a Job, and a cluster would reject or, worse, accept and never run.
#pragma once

#include <cstddef>

#include "common/failure.h"

namespace ridgeline::kubernetes {

inline constexpr size_t kLabelBytes = 63;  // the most of a label\'s value, and of a name that becomes one

// Throws Failure(kInvalidInput) naming the place in the manifest, what stands there and what must.
void Lint(const plugin::Json& job);

}  // namespace ridgeline::kubernetes
