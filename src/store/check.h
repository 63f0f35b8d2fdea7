// Looks for damage in a store.
#pragma once

#include <string>
#include <vector>

#include "store/sqlite.h"

namespace ridgeline::store {

std::vector<std::string> CheckStore(Database& database);

}  // namespace ridgeline::store
