// A sweep's points and plan as tables, as `ridgeline plan` prints them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "plan/plan.h"
#include "run/fields.h"
#include "sweep/expand.h"

namespace ridgeline::plan {

// For people, ids are cut to 8 digits and sizes are like "15.5 GB". For programs, ids are whole and sizes are in bytes.
enum class Audience { kPeople, kPrograms };

// Returns a field's value as a cell.
Cell FieldCell(const RunSpec& spec, const Field& field);

// Return a table with columns for the point's id and these fields, and a row's cells for them.
Table PointColumns(const std::vector<const Field*>& fields);
std::vector<Cell> PointCells(std::string_view id, const RunSpec& spec, const std::vector<const Field*>& fields,
                             Audience audience);

// Returns one row for each point: its id, the fields that the sweep varies, its parameters, the predicted peak of one
// rank, the verdict, and the memory that the peak was compared with. For people, also the basis of that memory if it
// differs between points.
Table PlanTable(const sweep::Sweep& sweep, const std::vector<Point>& points, const Plan& plan, Audience audience);

// Returns every field of a RunSpec: name, type, values, meaning.
Table FieldsTable();

// Returns "6 points: 4 fit (the largest needs 1.20 GB a rank), 2 out of memory (1 fits with shard: full); available
// 22.1 GB a rank (free on this machine)".
std::string PlanSummary(const std::vector<Point>& points, const Plan& plan);

// Returns the limits that the out-of-memory points exceed, and what would help: "memory_limit 64.0 GB, shared by 8
// ranks; 1 would fit with shard: full". Empty if there are no such points.
std::string OutOfMemoryWhy(const Plan& plan);

// Returns what jobs ask for, a line for each difference: "2 jobs of 3 points: 4 nodes, 8 cores, 1 h a point, slurm:
// {"partition":"large"}". Returns no line if no job asks for anything.
std::vector<std::string> JobLines(const sweep::Sweep& sweep, const Plan& plan);

// Returns "6 points; 2 combinations excluded; 1 duplicate left out".
std::string ExpansionSummary(const sweep::Expansion& expansion);

// Writes the points as text. jsonl and json hold whole specs, {"id": …, "spec": {…}}, and are written one by one, so
// that a million points need no memory. text, md and csv are tables of the id and the fields that vary. Throws as
// ForEachPoint does, and Error(kUsage) for an unknown format.
sweep::Expansion WriteExpanded(const sweep::Sweep& sweep, std::string_view format,
                               const std::function<void(std::string_view)>& write);

}  // namespace ridgeline::plan
