// The tables, and how older files are brought up to them. docs/store.md describes each.
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

// Migration n (from 1) takes a file of PRAGMA user_version n - 1 to n. Past ones are never edited.
std::span<const std::string_view> Migrations();

// Makes an empty file ours, or brings an older one up to date: whole or not at all. Throws Error(kInvalidInput) for a
// newer file and for another program's.
void Migrate(Database& database, std::span<const std::string_view> migrations);

// The same question without the change: throws where the file is empty, of another program, of another version, or
// without the column of a field or a figure. Columns that nobody here knows are left to who wrote them. Both throw for
// a file whose tables are not as Ridgeline makes them.
void RequireSchema(Database& database, std::span<const std::string_view> migrations);

// What the file defines beside Ridgeline's own tables, indexes and views: "trigger steal". A table of ours that is a
// view, a virtual table, or has columns that are computed, is none of ours.
std::vector<std::string> Strangers(Database& database);

}  // namespace ridgeline
