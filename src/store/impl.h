// Shared by the parts of a Store.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite.h"
#include "store/store.h"

namespace ridgeline::store {

// SQL: the states of jobs that have not ended.
inline constexpr std::string_view kLive = "('intent', 'submitted', 'running')";

// Parses {"name": "text"} as DumpTexts writes it. Throws Error(kInvalidInput) that names `source`.
std::map<std::string, std::string> ParseTexts(const std::string& text, const std::string& source);

struct Store::Impl {
  Database database;
  int depth = 0;  // of nested Transact calls

  std::vector<JobRecord> Jobs(const std::string& where, const std::string* bound);
};

}  // namespace ridgeline::store
