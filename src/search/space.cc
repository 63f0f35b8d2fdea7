#include "search/space.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/price.h"
#include "predict/step_model.h"
#include "run/fields.h"
#include "run/parallelism.h"
#include "run/point_name.h"
#include "run/presets.h"
#include "run/spec.h"
#include "run/step_figures.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::search {
namespace {

using Objective = sweep::SweepSearch::Objective;

constexpr double kOf90 = 1.645;          // 90 of 100 values lie within so many standard deviations
constexpr double kSpreadOfNobody = 3.0;  // a factor, as intervals of 90 % state it, if the processor has no description
                                         // or the step has no interval

// A processor about which only this is assumed: it multiplies ten times for each byte that it moves. Predictions for
// it rank points, and say nothing about seconds.
const predict::Device& SomeProcessor() {
  static const predict::Device device = [] {
    predict::Device made;
    made.name = "a processor that is not described";
    made.gpu = "none";
    const auto set = [&](const char* figure, double value) { made.figures[figure] = {value, "assumed", "", ""}; };
    for (const char* peak :
         {"peaks.fp32", "peaks.tf32", "peaks.bf16", "peaks.fp16", "peaks.fp8", "peaks.mxfp8", "peaks.fp4"}) {
      set(peak, 100e9);
    }
    set("memory.bandwidth", 10e9);
    set("memory.size", 1e15);
    set("chip.multiprocessors", 1);
    set("chip.launch", 3e-6);
    set("chip.power", 100);
    set("link.bandwidth", 4e9);
    set("link.latency", 2e-5);
    set("link.gpus", 1 << 20);
    set("cold.first_iteration", 0);
    return made;
  }();
  return device;
}

Error Wrong(const sweep::Sweep& sweep, const std::string& what, const std::string& hint) {
  return {ErrorKind::kInvalidInput, yaml::FaultText(sweep.file, {sweep.search->place, "search: " + what}), hint};
}

// Returns the axes that the search does not cover. Each combination of their values is searched by itself.
std::vector<const Field*> OtherAxes(const sweep::Sweep& sweep) {
  std::vector<const Field*> fields = sweep::VaryingFields(sweep);
  const auto& over = sweep.search->over;
  std::erase_if(fields, [&](const Field* field) { return std::find(over.begin(), over.end(), field) != over.end(); });
  return fields;
}

// Returns the size of the step that one rank holds: parameters, as far as they are known, x tokens of a micro-step.
double SizeOf(const RunSpec& spec) {
  return static_cast<double>(std::max<int64_t>(CountParameters(spec), 1)) * static_cast<double>(spec.batch_size) *
         static_cast<double>(spec.seq_length);
}

double NumberOf(const FieldValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? 0 : *number;
}

void SetLevels(const std::vector<const Field*>& over, SearchSpace& space) {
  for (const Field* field : over) {
    std::set<FieldValue> values;
    for (const SearchPoint& point : space.points) values.insert(ValueOf(point.point.spec, *field));
    if (values.size() < 2) continue;
    const std::string_view type = field->type();
    const bool is_of_numbers = type == "integer" || type == "number";
    const bool is_in_doublings = is_of_numbers && NumberOf(*values.begin()) > 0;
    space.ordered.push_back(is_of_numbers);
    for (SearchPoint& point : space.points) {
      const FieldValue value = ValueOf(point.point.spec, *field);
      point.levels.push_back(is_in_doublings ? std::log2(NumberOf(value))
                                             : static_cast<double>(std::distance(values.begin(), values.find(value))));
    }
  }
}

// Returns a point of a trainer without a framework file in a form that our own trainer's prediction takes: with as many
// ranks as there are whole models. The ranks of one model are assumed to share its memory and its work evenly.
Point OfWholeModels(const Point& point) {
  Point whole = point;
  RunSpec& spec = whole.spec;
  if (ParallelWords(spec).empty()) return whole;
  spec.ranks = DataParallelRanks(spec);
  spec.tensor_parallel = spec.pipeline_parallel = spec.context_parallel = 1;
  spec.expert_parallel = spec.virtual_pipeline = 1;
  spec.shard_ranks = 0;
  spec.sequence_parallel.reset();
  Canonicalize(spec);
  return whole;
}

}  // namespace

std::vector<SearchSpace> SpaceMaker::Make(const sweep::Sweep& sweep) {
  sweep::Expansion expansion;
  const std::vector<Point> points = sweep::Expand(sweep, &expansion);
  if (points.empty()) {
    throw Wrong(sweep, "the space is empty: every combination is excluded", "leave a combination in");
  }
  if (std::ssize(points) > kMostSearched) {
    throw Wrong(sweep, fmt::format("there are {} points, and a search takes up to {}", points.size(), kMostSearched),
                "let the axes have fewer values");
  }
  const std::vector<const Field*> others = OtherAxes(sweep);
  std::vector<SearchSpace> spaces;
  std::map<std::string, size_t> by_label;
  for (const Point& point : points) {
    const std::string label = others.empty() ? "" : PointName(point.spec, others);
    const auto [at, is_new] = by_label.try_emplace(label, spaces.size());
    if (is_new) spaces.emplace_back().label = label;
    SearchSpace& space = spaces[at->second];
    space.points.push_back(PointOf(sweep, point, space));
  }
  for (SearchSpace& space : spaces) SetLevels(sweep.search->over, space);
  return spaces;
}

SearchPoint SpaceMaker::PointOf(const sweep::Sweep& sweep, const Point& point, SearchSpace& space) {
  const sweep::Launch launch = sweep::LaunchOf(sweep, point);
  const RunSpec& spec = point.spec;
  SearchPoint made;
  made.point = point;
  made.label = PointName(spec, sweep.search->over);
  const predict::Device* device = DeviceOf(sweep, spec);
  const predict::Framework* framework =
      device == nullptr ? nullptr : plan::EstimatedAs(spec, launch, node_, frameworks_.get());
  const bool is_modelled = framework != nullptr || plan::IsOurTrainer(launch);
  const Point whole = is_modelled ? point : OfWholeModels(point);
  const int64_t shared_by = spec.ranks / whole.spec.ranks;
  const int64_t bytes =
      framework != nullptr ? predict::PeakBytes(*framework, spec) : MemoryOf(whole).planned_peak_bytes / shared_by;
  const plan::SlabLimit limit = plan::SlabLimitOf(spec, launch, node_);
  if (limit.bytes > 0) {
    made.share = static_cast<double>(bytes) / static_cast<double>(limit.bytes);
    made.fits = !plan::IsOurTrainer(launch) || bytes <= limit.bytes;
  } else {
    made.share =
        static_cast<double>(bytes) * static_cast<double>(ProcessesOf(spec)) / static_cast<double>(launch.nodes);
  }
  if (sweep.search->maximize == Objective::kFit) {
    made.worth = SizeOf(spec);
    space.knows_level = true;
    space.basis = "planned memory";
    return made;
  }
  if (sweep.search->maximize == Objective::kCost) {
    const double dollars = plan::DollarsAnHour(sweep, plan::NodesOf(spec, launch, device), device);
    if (dollars == 0) {
      throw Wrong(
          sweep, "cost needs a price, and nothing says one",
          "say what an hour of a node costs, `price: {node: 31.50 USD/h, date: 2026-03}`, or name a device that has a "
          "price, `price: {device: p5}`");
    }
    made.worth = 3600 / dollars;
  }
  const Prediction prediction = PredictionOf(sweep, whole, launch, device, framework);
  made.tokens_per_s =
      static_cast<double>(TokensAStep(spec)) * 1e9 / prediction.step_ns * static_cast<double>(shared_by);
  space.spread = std::max(space.spread, prediction.spread);
  space.knows_level = (space.points.empty() || space.knows_level) && prediction.knows_level;
  space.basis = device == nullptr
                    ? "the work of a step, on a processor that is not described"
                    : fmt::format("{}, {}", device->name, prediction.calibrated ? "calibrated" : "extrapolated");
  if (framework != nullptr) {
    space.basis = fmt::format("{}, {}", device->name, framework->Basis(device->gpu));
  } else if (!plan::IsOurTrainer(launch)) {
    space.basis += "; as our own trainer would take it";
  }
  return made;
}

const predict::MemoryForecast& SpaceMaker::MemoryOf(const Point& point) {
  const auto [at, is_new] = known_memory_.try_emplace(EncodeSpec(plan::MemoryRelevant(point.spec)));
  if (is_new) at->second = forecaster_(point.spec);
  return at->second;
}

// Returns the device to plan for, else the one that the sweep's `price` names, else the device of the point's `gpu`.
// Returns nullptr for a processor without a description.
const predict::Device* SpaceMaker::DeviceOf(const sweep::Sweep& sweep, const RunSpec& spec) {
  if (node_.device != nullptr) return node_.device.get();
  const bool is_priced = !sweep.price.device.empty();
  if (!is_priced && spec.gpu == "none") return nullptr;
  const std::string& name = is_priced ? sweep.price.device : spec.gpu;
  auto known = known_devices_.find(name);
  if (known == known_devices_.end()) {
    known = known_devices_
                .emplace(name, is_priced ? plan::PricedDevice(sweep, devices_) : predict::FindDevice(name, devices_))
                .first;
  }
  return &known->second;
}

SpaceMaker::Prediction SpaceMaker::PredictionOf(const sweep::Sweep& sweep, const Point& point,
                                                const sweep::Launch& launch, const predict::Device* device,
                                                const predict::Framework* framework) {
  RunSpec spec = point.spec;
  const predict::Device& on = device != nullptr ? *device : SomeProcessor();
  spec.gpu = on.gpu;
  const int64_t on_a_node = std::max<int64_t>(1, ProcessesOf(spec) / launch.nodes);
  const auto [at, is_new] =
      known_steps_.try_emplace(fmt::format("{} {} {}", on.name, on_a_node, EncodeSpec(plan::MemoryRelevant(spec))));
  if (!is_new) return at->second;
  try {
    const auto [priced, as] = predict::AsPriced(framework != nullptr ? *framework : predict::Framework{}, spec);
    const predict::StepForecast step = predict::PredictStep(priced, on, as);
    at->second.step_ns = step.step_ns;
    at->second.calibrated = step.calibrated;
    at->second.knows_level = device != nullptr && step.spread;
    at->second.spread = std::log(at->second.knows_level ? *step.spread : kSpreadOfNobody) / kOf90;
    // The ranks of a node share its processor.
    if (device == nullptr) at->second.step_ns *= static_cast<double>(on_a_node);
  } catch (const Error& e) {
    throw Wrong(sweep, fmt::format("the point {}: {}", PointName(point.spec, sweep::VaryingFields(sweep)), e.message()),
                e.hint());
  }
  return at->second;
}

}  // namespace ridgeline::search
