// Kubernetes' strategic merge, of a patch over a pod template.
#pragma once

#include "common/failure.h"

namespace ridgeline::kubernetes {

// `base` with `patch` over it, as `kubectl patch` and kustomize merge a pod template: mappings key by key, null takes a
// key away, lists of things that have names (containers, volumes, env, …) item by item, other lists as a whole;
// `$patch: delete` takes a mapping or a list's item away, `$patch: replace` puts what is given in place of it. Throws
// Failure naming where a patch cannot be merged.
plugin::Json MergeTemplate(const plugin::Json& base, const plugin::Json& patch);

}  // namespace ridgeline::kubernetes
