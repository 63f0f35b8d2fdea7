// What the tables have from the tables of fields and figures: their columns, and the views that join them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/fields.h"
#include "store/sqlite.h"

namespace ridgeline {

// SQL that is true where `row`, of `results`, stands: the next run leaves its point alone.
std::string StandsSql(std::string_view row = "r");

// SQL of what there is to say of a measurement beside its figures, of `r`, its row of `results`, and `p`, its point:
// "steps 4 of 103", or what asks for the unit of its times; NULL where nothing is.
std::string RunNoteSql();

// SQL of a figure that follows from a result's others, of `r` and `p`, by its column in the views: "mfu". Throws
// Error(kInternal) for a name that is none.
std::string DerivedSql(std::string_view column);

// A field of `p`, of `points`, as the views have it: NULL where nobody knows it.
std::string FieldSql(const Field& field);

// The names of a table's columns, or of a view's.
std::vector<std::string> ColumnsOf(Database& database, const std::string& table);

// A field that the file's `points`, or a figure that its `results` have not yet becomes a column: a field's filled from
// the specs that name it, a figure's empty, as it was not taken.
void AddColumns(Database& database);
std::vector<std::string> MissingColumns(Database& database);

// Makes the views anew (docs/store.md describes them).
void MakeViews(Database& database);

// Makes those of OtherViews for this connection alone, which only reads: what they are in the file is never run.
void ShadowOtherViews(Database& database);

std::span<const std::string_view> ViewNames();

// The names of those that are missing, or that another version has made.
std::vector<std::string> OtherViews(Database& database);

}  // namespace ridgeline
