// Kubernetes' strategic merge of a patch over a pod template.
#pragma once

#include "common/failure.h"

namespace ridgeline::kubernetes {

// Returns `base` with `patch` merged over it, as `kubectl patch` and kustomize merge a pod template. Mappings merge key
// by key, and null removes a key. Lists whose items have names (containers, volumes, env, …) merge item by item, other
// lists are replaced. `$patch: delete` removes a mapping or an item, `$patch: replace` puts the given value in its
// place. Throws Failure that names the place if a patch cannot be merged.
plugin::Json MergeTemplate(const plugin::Json& base, const plugin::Json& patch);

}  // namespace ridgeline::kubernetes
