// A sweep's points and plan as tables: what `ridgeline plan` prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "plan/plan.h"
#include "run/fields.h"
#include "sweep/expand.h"

namespace ridgeline {

// For people, ids are cut to 8 digits and sizes are "15.5 GB"; for programs, ids are whole and sizes are in bytes.
enum class Audience { kPeople, kPrograms };

// A field's value, as a table has it.
Cell FieldCell(const RunSpec& spec, const Field& field);

// A table with the columns of the point's id and of these fields, and a row's cells of them.
Table PointColumns(const std::vector<const Field*>& fields);
std::vector<Cell> PointCells(std::string_view id, const RunSpec& spec, const std::vector<const Field*>& fields,
                             Audience audience);

// One row a point: id, the fields the sweep varies, its parameters, the predicted peak of one rank, the verdict, and
// what of memory that was compared with; why it is so much, for people where it is not the same for all.
Table PlanTable(const Sweep& sweep, const std::vector<Point>& points, const Plan& plan, Audience audience);

// Every field of a RunSpec: name, type, values, what it means.
Table FieldsTable();

// "6 points: 4 fit (the largest needs 1.20 GB a rank), 2 out of memory (1 fits with shard: full); available 22.1 GB a
// rank (free on this machine)".
std::string PlanSummary(const std::vector<Point>& points, const Plan& plan);

// What the points that are out of memory do not fit in, and what would help: "memory_limit 64.0 GB, shared by 8 ranks;
// 1 would fit with shard: full". Empty where none is.
std::string OutOfMemoryWhy(const Plan& plan);

// What jobs ask for, a line for each that differs: "2 jobs of 3 points: 4 nodes, 8 cores, 1 h a point, slurm:
// {"partition":"large"}". No line where none asks for
// anything.
std::vector<std::string> JobLines(const Sweep& sweep, const Plan& plan);

// "6 points; 2 combinations excluded; 1 duplicate left out".
std::string ExpansionSummary(const Expansion& expansion);

// The points as text. jsonl and json hold whole specs, {"id": …, "spec": {…}}, and are written as they come, so that a
// million points need no memory; text, md and csv are tables of the id and the fields that vary.
// Throws as ForEachPoint, and Error(kUsage) for an unknown format.
Expansion WriteExpanded(const Sweep& sweep, std::string_view format,
                        const std::function<void(std::string_view)>& write);

}  // namespace ridgeline
