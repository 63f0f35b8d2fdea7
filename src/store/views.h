// The parts of the tables that follow from fields and figures: their columns, and the views that join them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/fields.h"
#include "store/sqlite.h"

namespace ridgeline::store {

// SQL that is true if `row`, of `results`, stands. Then the next run leaves its point alone.
std::string StandsSql(std::string_view row = "r");

// SQL of a note on a measurement besides its figures, from `r`, its row of `results`, and `p`, its point: "steps 4 of
// 103", or a question about the unit of its times. NULL if there is no note.
std::string RunNoteSql();

// SQL of a figure that follows from others of a result, from `r` and `p`, by its column in the views: "mfu". Throws
// Error(kInternal) for an unknown name.
std::string DerivedSql(std::string_view column);

// SQL of a field of `p`, of `points`, as the views have it: NULL if it is not known.
std::string FieldSql(const Field& field);

// The column names of a table or a view.
std::vector<std::string> ColumnsOf(Database& database, const std::string& table);

// Adds a column for each field that the file's `points` lacks, and for each figure that its `results` lacks. A field's
// column is filled from the specs that name it. A figure's column is empty, because the figure was not taken.
void AddColumns(Database& database);
std::vector<std::string> MissingColumns(Database& database);

// Makes the views again (docs/store.md describes them).
void MakeViews(Database& database);

// Makes our version of the views for this connection alone, which only reads. So views of the file that differ are
// never run.
void ShadowOtherViews(Database& database);

std::span<const std::string_view> ViewNames();

// The names of views that are missing or that another version made.
std::vector<std::string> OtherViews(Database& database);

}  // namespace ridgeline::store
