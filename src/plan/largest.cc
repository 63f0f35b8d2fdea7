#include "plan/largest.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/fields.h"
#include "run/parallelism.h"
#include "run/point_name.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::plan {
namespace {

class LargestSearch {
 public:
  // Tries multiples of `unit`.
  LargestSearch(const Field& field, int64_t unit, RunSpec spec, SlabLimit limit, const Forecaster& forecaster)
      : member_(std::get<int64_t RunSpec::*>(field.member)),
        unit_(unit),
        most_(static_cast<int64_t>(field.max)),
        forecaster_(forecaster) {
    found_.spec = std::move(spec);
    found_.spec.*member_ = unit_;
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
  // Returns whether so many units fit. If so, they become the largest value that is known to fit.
  bool Try(int64_t units) {
    RunSpec spec = found_.spec;
    spec.*member_ = units * unit_;
    if (units > most_ / unit_ || !CheckSpec(spec).empty()) {
      found_.by_memory = false;
      return false;
    }
    const predict::MemoryForecast forecast = forecaster_(spec);
    const bool fits = forecast.planned_peak_bytes <= found_.limit.bytes;
    if (!fits) found_.by_memory = true;
    if (fits || units == 1) {
      found_.spec = spec;
      found_.forecast = forecast;
      found_.fits = fits;
    }
    return fits;
  }

  int64_t RunSpec::*member_;
  int64_t unit_;
  int64_t most_;
  const Forecaster& forecaster_;
  Largest found_;
};

// Returns the batch sizes to try when one should fit, multiples of `unit`, the largest first. Seven eighths fit if a
// tenth of the memory is used by others, and half fits if nearly half is used.
std::vector<int64_t> LowerAndLower(int64_t batch_size, int64_t unit) {
  std::vector<int64_t> sizes = {batch_size};
  for (const int64_t eighths : {7, 6, 4}) {
    const int64_t lower = (batch_size / 8 * eighths + batch_size % 8 * eighths / 8) / unit * unit;
    if (lower >= 1 && lower < sizes.back()) sizes.push_back(lower);
  }
  return sizes;
}

constexpr size_t kShownAnswers = 12;

const Field& Searched(const std::string& name) {
  if (name != "batch_size" && name != "seq_length") {
    throw Error(ErrorKind::kUsage, fmt::format("plan: the largest '{}' cannot be searched for", name),
                "--largest takes batch_size or seq_length");
  }
  return *FindField(name);
}

std::vector<const Field*> Others(const sweep::Sweep& sweep, const std::string& searched) {
  std::vector<const Field*> fields = sweep::VaryingFields(sweep);
  std::erase_if(fields, [&](const Field* field) { return field->name == searched; });
  return fields;
}

}  // namespace

std::vector<Largest> FindLargest(const sweep::Sweep& sweep, const std::string& field, const NodeMemory& node,
                                 const Forecaster& forecaster, const predict::Frameworks* frameworks) {
  const Field& searched = Searched(field);
  std::set<std::string> seen;
  std::vector<Largest> found;
  for (const Point& point : sweep::Expand(sweep)) {
    RunSpec spec = point.spec;
    const auto member = std::get<int64_t RunSpec::*>(searched.member);
    spec.*member = 1;
    if (!seen.insert(EncodeSpec(spec)).second) continue;
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    const predict::Framework* framework = EstimatedAs(spec, launch, node, frameworks);
    if (!IsOurTrainer(launch) && framework == nullptr) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("plan: --largest needs the memory of a point, which no framework file gives for trainer "
                              "{} and the point {}",
                              spec.trainer, point.id),
                  "docs/frameworks.md lists the frameworks; without `trainer`, the memory is that of ridgeline-train");
    }
    SlabLimit limit = SlabLimitOf(spec, launch, node);
    if (limit.bytes == 0) {
      throw Error(ErrorKind::kUsage, "plan: --largest needs to know what memory there is, and nothing limits it",
                  spec.device == "meta" ? "the meta device has no memory: say `device: cpu`"
                                        : "say what a node has: --memory 64GB");
    }
    if (framework == nullptr) {
      const int64_t unit = LeastForTokens(spec, member);
      found.push_back(LargestSearch(searched, unit, std::move(spec), std::move(limit), forecaster).Run());
      continue;
    }
    std::string estimated = framework->Basis(node.device != nullptr ? node.device->gpu : spec.gpu);
    const Forecaster estimates = [&](const RunSpec& tried) {
      return predict::MemoryForecast{.planned_peak_bytes = predict::PeakBytes(*framework, tried), .by_category = {}};
    };
    found.push_back(LargestSearch(searched, 1, std::move(spec), std::move(limit), estimates).Run());
    found.back().estimated = std::move(estimated);
  }
  return found;
}

Largest LargestBatchWithin(RunSpec spec, SlabLimit limit, const Forecaster& forecaster) {
  const int64_t unit = LeastForTokens(spec, &RunSpec::batch_size);
  return LargestSearch(Searched("batch_size"), unit, std::move(spec), std::move(limit), forecaster).Run();
}

Table LargestTable(const sweep::Sweep& sweep, const std::string& field, const std::vector<Largest>& largest,
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
  const bool estimates = std::ranges::any_of(largest, [](const Largest& row) { return !row.estimated.empty(); });
  if (estimates) table.columns.emplace_back("estimated");
  const auto bytes = [&](int64_t value) { return for_people ? Cell(FormatBytes(value)) : Cell(value); };
  for (const Largest& row : largest) {
    std::vector<Cell> cells;
    for (const Field* other : others) cells.push_back(FieldCell(row.spec, *other));
    const auto member = std::get<int64_t RunSpec::*>(FindField(field)->member);
    cells.push_back(row.fits     ? Cell(row.spec.*member)
                    : for_people ? Cell(fmt::format("none: even {} does not fit", row.spec.*member))
                                 : Cell(int64_t{0}));
    cells.push_back(bytes(row.forecast.planned_peak_bytes));
    cells.push_back(bytes(row.limit.bytes));
    cells.emplace_back(row.by_memory ? row.limit.basis : "the model: it takes no more");
    if (estimates) cells.push_back(row.estimated.empty() ? Cell() : Cell(row.estimated));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<int64_t> BatchesThatFit::Of(const sweep::Sweep& sweep, const Point& point, const yaml::Place& place) const {
  const auto wrong = [&](const char* what, const char* hint) {
    return Error(ErrorKind::kInvalidInput, yaml::FaultText(sweep.file, {place, what}), hint);
  };
  const sweep::Launch launch = sweep::LaunchOf(sweep, point);
  if (!IsOurTrainer(launch)) {
    throw wrong("batch_size: max uses the memory of ridgeline-train, but this point has another trainer",
                "name batch sizes for it");
  }
  const SlabLimit limit = SlabLimitOf(point.spec, launch, node_);
  if (limit.bytes == 0) {
    throw wrong("batch_size: max is the largest that fits, and nothing says what memory the point has",
                point.spec.device == "meta"
                    ? "the meta device has no memory: say `device: cpu`"
                    : "set a limit under launch:, such as memory_limit: 16GB, or name the `gpu`. The memory that is "
                      "free now would make it another point each time");
  }
  std::string key = EncodePoint(point.spec);
  const auto [known, is_new] =
      known_.try_emplace(fmt::format("{} {}", limit.bytes, EncodeSpec(MemoryRelevant(point.spec))));
  if (is_new) known->second = LargestBatchWithin(point.spec, limit, forecaster_);
  Largest largest = known->second;
  const int64_t batch_size = largest.spec.batch_size;
  largest.spec = point.spec;
  largest.spec.batch_size = batch_size;
  std::vector<int64_t> sizes;
  for (const int64_t size : LowerAndLower(batch_size, LeastForTokens(point.spec, &RunSpec::batch_size))) {
    sizes.push_back(size);
    Point tried = point;
    tried.spec.batch_size = size;
    tried.id = PointId(tried.spec);
    if (!ended_ || !ended_(sweep, tried)) break;
  }
  const auto [at, is_first] = answer_of_.try_emplace(std::move(key), answers_.size());
  if (is_first) answers_.emplace_back();
  answers_[at->second] = {std::move(largest), sizes};
  return sizes;
}

std::shared_ptr<const BatchesThatFit> UseLargestBatches(sweep::Sweep& sweep, const NodeMemory& node,
                                                        const Forecaster& forecaster,
                                                        BatchesThatFit::EndedForMemory ended) {
  auto batches = std::make_shared<const BatchesThatFit>(node, forecaster, std::move(ended));
  sweep.largest = batches;
  return batches;
}

std::vector<std::string> LargestBatchLines(const sweep::Sweep& sweep, const BatchesThatFit& batches) {
  const std::vector<const Field*> others = Others(sweep, "batch_size");
  std::vector<std::string> lines;
  for (const BatchesThatFit::Answer& answer : batches.answers()) {
    if (lines.size() == kShownAnswers) {
      lines.push_back(fmt::format("batch_size: max of {} more points", batches.answers().size() - kShownAnswers));
      break;
    }
    const Largest& largest = answer.largest;
    std::string line = fmt::format("batch_size: max is {}", answer.batch_sizes.back());
    if (!others.empty()) line += fmt::format(" ({})", PointName(largest.spec, others));
    if (answer.batch_sizes.size() > 1) {
      std::vector<std::string> tried;
      for (size_t i = 0; i + 1 < answer.batch_sizes.size(); ++i) tried.push_back(std::to_string(answer.batch_sizes[i]));
      line += fmt::format(", as {} ran out of memory", Join(tried, " and "));
    }
    line += fmt::format(": {}{} of {} a rank ({})", FormatBytes(largest.forecast.planned_peak_bytes),
                        answer.batch_sizes.size() > 1 ? fmt::format(" for {}", answer.batch_sizes.front()) : "",
                        FormatBytes(largest.limit.bytes),
                        largest.by_memory ? largest.limit.basis : "the model takes no more");
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ridgeline::plan
