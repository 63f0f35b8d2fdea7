#include "plan/largest.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/fields.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline {
namespace {

class Search {
 public:
  Search(const Field& field, RunSpec spec, SlabLimit limit, const Forecaster& forecaster)
      : member_(std::get<int64_t RunSpec::*>(field.member)),
        most_(static_cast<int64_t>(field.max)),
        forecaster_(forecaster) {
    found_.spec = std::move(spec);
    found_.limit = std::move(limit);
  }

  Largest Run() {
    int64_t fits = 0;
    int64_t too_much = 1;
    while (Try(too_much)) {
      fits = too_much;
      too_much *= 2;
    }
    while (too_much - fits > 1) {
      const int64_t between = fits + (too_much - fits) / 2;
      (Try(between) ? fits : too_much) = between;
    }
    return std::move(found_);
  }

 private:
  // Whether it fits; then it is the largest so far that is known to.
  bool Try(int64_t value) {
    RunSpec spec = found_.spec;
    spec.*member_ = value;
    if (value > most_ || !CheckSpec(spec).empty()) {
      found_.by_memory = false;
      return false;
    }
    const MemoryForecast forecast = forecaster_(spec);
    const bool fits = forecast.planned_peak_bytes <= found_.limit.bytes;
    if (!fits) found_.by_memory = true;
    if (fits || value == 1) {
      found_.spec = spec;
      found_.forecast = forecast;
      found_.fits = fits;
    }
    return fits;
  }

  int64_t RunSpec::*member_;
  int64_t most_;
  const Forecaster& forecaster_;
  Largest found_;
};

const Field& Searched(const std::string& name) {
  if (name != "batch_size" && name != "seq_length") {
    throw Error(ErrorKind::kUsage, fmt::format("plan: the largest '{}' cannot be searched for", name),
                "--largest takes batch_size or seq_length");
  }
  return *FindField(name);
}

std::vector<const Field*> Others(const Sweep& sweep, const std::string& searched) {
  std::vector<const Field*> fields = VaryingFields(sweep);
  std::erase_if(fields, [&](const Field* field) { return field->name == searched; });
  return fields;
}

}  // namespace

std::vector<Largest> FindLargest(const Sweep& sweep, const std::string& field, const NodeMemory& node,
                                 const Forecaster& forecaster) {
  const Field& searched = Searched(field);
  std::set<std::string> seen;
  std::vector<Largest> found;
  for (const Point& point : Expand(sweep)) {
    RunSpec spec = point.spec;
    spec.*std::get<int64_t RunSpec::*>(searched.member) = 1;
    if (!seen.insert(EncodeSpec(spec)).second) continue;
    const Launch launch = LaunchOf(sweep, point);
    if (!IsOurTrainer(launch)) {
      throw Error(ErrorKind::kUsage, "plan: --largest goes by the memory of ridgeline-train, and the sweep has another",
                  "leave `trainer` out of a copy of the sweep to see what our own would take");
    }
    SlabLimit limit = SlabLimitOf(spec, launch, node);
    if (limit.bytes == 0) {
      throw Error(ErrorKind::kUsage, "plan: --largest needs to know what memory there is, and nothing limits it",
                  spec.device == "meta" ? "the meta device has no memory: say `device: cpu`"
                                        : "say what a node has: --memory 64GB");
    }
    found.push_back(Search(searched, std::move(spec), std::move(limit), forecaster).Run());
  }
  return found;
}

Table LargestTable(const Sweep& sweep, const std::string& field, const std::vector<Largest>& largest,
                   Audience audience) {
  const bool for_people = audience == Audience::kPeople;
  const std::vector<const Field*> others = Others(sweep, field);
  Table table;
  for (const Field* other : others) table.columns.emplace_back(other->name);
  table.columns.push_back("largest_" + field);
  const char* unit = for_people ? "_per_rank" : "_bytes";
  table.columns.push_back(std::string("predicted_peak") + unit);
  table.columns.push_back(std::string("available") + unit);
  table.columns.emplace_back("limited_by");
  const auto bytes = [&](int64_t value) { return for_people ? Cell(FormatBytes(value)) : Cell(value); };
  for (const Largest& row : largest) {
    std::vector<Cell> cells;
    for (const Field* other : others) cells.push_back(FieldCell(row.spec, *other));
    const auto member = std::get<int64_t RunSpec::*>(FindField(field)->member);
    cells.push_back(row.fits ? Cell(row.spec.*member) : for_people ? Cell("none: 1 is too much") : Cell(int64_t{0}));
    cells.push_back(bytes(row.forecast.planned_peak_bytes));
    cells.push_back(bytes(row.limit.bytes));
    cells.emplace_back(row.by_memory ? row.limit.basis : "the model: it takes no more");
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace ridgeline
