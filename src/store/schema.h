// The tables, and the migrations of older files. docs/store.md describes each table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite.h"

namespace ridgeline {

// Marks a file as ours: "RdgL" in PRAGMA application_id.
inline constexpr int64_t kApplicationId = 0x5264674c;

// Migration n (from 1) takes a file from PRAGMA user_version n - 1 to n. Past migrations are never edited.
std::span<const std::string_view> Migrations();

// Makes an empty file ours, or brings an older one up to date, whole or not at all. Throws Error(kInvalidInput) for a
// newer file and for another program's file.
void Migrate(Database& database, std::span<const std::string_view> migrations);

// Whether the file is of an older version, or lacks the column of a field or a figure. Throws as Migrate does.
bool IsOlder(Database& database, std::span<const std::string_view> migrations);

// Checks the same without changing the file. Throws if the file is empty, belongs to another program, has another
// version, or lacks the column of a field or a figure. Columns that this version does not know are left alone. Both
// functions throw if the tables are not as Ridgeline makes them.
void RequireSchema(Database& database, std::span<const std::string_view> migrations);

// What the file defines besides Ridgeline's own tables, indexes and views, such as "trigger steal". A table with one of
// our names that is a view or a virtual table, or has computed columns, is not ours; the functions above refuse it.
std::vector<std::string> Strangers(Database& database);

}  // namespace ridgeline
