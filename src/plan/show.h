// A sweep's points and plan as tables: what `ridgeline plan` prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "plan/plan.h"
#include "sweep/expand.h"

namespace ridgeline {

// For people, ids are cut to 8 digits and sizes are "15.5 GB"; for programs, ids are whole and sizes are in bytes.
enum class Audience { kPeople, kPrograms };

// One row a point: id, the fields the sweep varies, predicted peak, verdict.
Table PlanTable(const Sweep& sweep, const std::vector<Point>& points, const Plan& plan, Audience audience);

// Every field of a RunSpec: name, type, values, what it means.
Table FieldsTable();

// "6 points: 4 fit (the largest needs 1.20 GB), 2 out of memory; available 22.1 GB".
std::string PlanSummary(const Plan& plan);

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
