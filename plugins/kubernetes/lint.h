// What no schema says of a Job, and a cluster would reject or, worse, accept and never run.
#pragma once

#include "common/failure.h"

namespace ridgeline::kubernetes {

// Throws Failure(kInvalidInput) naming the place in the manifest, what stands there and what must.
void Lint(const plugin::Json& job);

}  // namespace ridgeline::kubernetes
