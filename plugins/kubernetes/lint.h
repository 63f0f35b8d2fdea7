// Checks of a Job that no schema makes: manifests that a cluster would reject or, worse, accept and never run.
#pragma once

#include <cstddef>

#include "common/failure.h"
#include "kubernetes/kinds.h"

namespace ridgeline::kubernetes {

inline constexpr size_t kLabelBytes = 63;  // most bytes of a label's value, and of a name that becomes one

// `job`: a batch/v1 Job, of which an object of this kind is made. Throws Failure(kInvalidInput) that names the place in
// the manifest, its value and what it must be.
void Lint(const plugin::Json& job, const Kind& kind);

}  // namespace ridgeline::kubernetes
