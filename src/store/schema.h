// The tables, and the migrations of older files. docs/store.md describes each table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite.h"

namespace ridgeline::store {

// Marks a file as ours: "RdgL" in PRAGMA application_id.
inline constexpr int64_t kApplicationId = 0x5264674c;

// Migration n (from 1) takes a file from PRAGMA user_version n - 1 to n. Past migrations are never edited.
std::span<const std::string_view> Migrations();

// Makes an empty file ours, or brings an older one up to date, whole or not at all. Throws Error(kInvalidInput) for a
// newer file and for another program's file.
void Migrate(Database& database, std::span<const std::string_view> migrations);

// What Migrate would add to a file.
struct SchemaGap {
  size_t version = 0;                     // of the file; 0: it is empty
  std::vector<std::string> columns = {};  // of fields and figures that the file lacks, if its version is the newest
};

// Returns nothing if nothing is missing. Columns that this version does not know are left alone. Throws as Migrate
// does, and if the tables are not as Ridgeline makes them.
std::optional<SchemaGap> GapOf(Database& database, std::span<const std::string_view> migrations);

// Throws the Error(kInvalidInput) for a file with this gap, which is not to be changed.
[[noreturn]] void RefuseGap(const Database& database, const SchemaGap& gap);

// What the file defines besides Ridgeline's own tables, indexes and views, such as "trigger steal". A table with one of
// our names that is a view or a virtual table, or has computed columns, is not ours; the functions above refuse it.
std::vector<std::string> Strangers(Database& database);

}  // namespace ridgeline::store
