#include "predict/step_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/comm/collective.h"
#include "engine/recompute/policy.h"
#include "engine/step/budget.h"
#include "engine/step/program.h"
#include "predict/measured_rates.h"
#include "run/step_figures.h"

namespace ridgeline::predict {
namespace {

// For devices with measured calls. kDeviations: 90 of 100 cases lie within so many standard deviations of the
// logarithm. kErrorBeyond and kErrorUnknown: what calls add to that deviation, as shares of their time, if they lie a
// factor e beyond the measured range, or if their class was not measured. kFewExtrapolated: the largest share of a
// step that such calls may take for the step to count as interpolated.
constexpr double kDeviations = 1.645;
constexpr double kErrorBeyond = 0.25;
constexpr double kErrorUnknown = 0.5;
constexpr double kFewExtrapolated = 0.1;

constexpr double kBackwardOfAttention =
    0.75;                                 // of the rate of the forward pass (Shah et al., "FlashAttention-3", 2024)
constexpr double kReducedBytes = 4;       // of a gradient, as this engine reduces it
constexpr double kUnknownCeiling = 0.75;  // of the peak, if nobody measured a ceiling: about as on other devices

// Returns the standard normal quantile of the share `p`, within 0.00045 (Abramowitz and Stegun, 26.2.23).
double NormalQuantile(double p) {
  const double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
  const double x =
      t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  return p < 0.5 ? -x : x;
}

// A device's figures as rates. The constructor asks for every figure that may be missing, before the first call.
class Rates {
 public:
  Rates(const StepCosts& costs, const Device& device, const Framework& framework)
      : device_(device), framework_(framework) {
    static constexpr Efficiency kOfProcessors;
    const Efficiency& efficiency = device.is_cpu() ? kOfProcessors : framework.efficiency;
    // A device's own efficiency was measured with this engine.
    const bool ours = framework.is_ours() && !(framework.correction && framework.correction->shares);
    const auto own = [&, ours](const char* figure, double otherwise) {
      if (!ours) return otherwise;
      return device.Or(std::string("efficiency.") + figure, otherwise);
    };
    launch_s_ = device.At("chip.launch");
    bytes_per_s_ = device.At("memory.bandwidth") * own("memory", efficiency.memory);
    const double limit = device.is_cpu() ? 1 : device.At("chip.power");
    const double power = std::min(1.0, std::pow(limit / device.Or("chip.rated_power", limit), efficiency.power));
    // On processors, attention multiplies in fp32.
    const double bf16 = CeilingOf(device.is_cpu() ? engine::MathFormat::kF32 : engine::MathFormat::kBF16) * power;
    for (const CallCost& call : costs.calls) {
      if (call.flops == 0 || per_s_.contains(call.format)) continue;
      double share = 1;
      switch (call.format) {
        case engine::MathFormat::kF32:
          break;
        case engine::MathFormat::kTF32:
        case engine::MathFormat::kBF16:
        case engine::MathFormat::kF16:
          share = own("products", efficiency.products);
          break;
        case engine::MathFormat::kFp8:
        case engine::MathFormat::kMxfp8:
          share = own("products_fp8", efficiency.products_fp8);
          break;
        case engine::MathFormat::kFp4:
          share = own("products_fp4", efficiency.products_fp4);
          break;
      }
      per_s_[call.format] = CeilingOf(call.format) * power * share;
    }
    attention_per_s_ = bf16 * own("attention", efficiency.attention);
    efficiency_ = efficiency;
    efficiency_.link = costs.spec.ranks > 1 ? own("link", efficiency.link) : efficiency.link;
    efficiency_.network = costs.spec.ranks > device.domain() ? own("network", efficiency.network) : efficiency.network;
  }

  double LaunchSeconds(const CallCost& call) const { return call.IsTwo(framework_) ? 2 * launch_s_ : launch_s_; }
  double ComputeSeconds(const CallCost& call) const {
    if (call.flops == 0) return 0;
    const double rate = per_s_.at(call.format);
    const double attention = call.format == engine::MathFormat::kF32 ? rate : attention_per_s_;
    const bool recomputed = call.phase == engine::Phase::kRecompute;
    using enum engine::OpKind;
    switch (call.kind) {
      case kProduct:
        return (recomputed ? framework_.again.products : 1) * call.flops / (rate * call.tiles);
      case kForwardAttention:
        return (recomputed ? framework_.again.attention : 1) * call.flops / attention;
      case kBackwardAttention:
        return (recomputed ? framework_.again.attention : 1) * call.flops / (attention * kBackwardOfAttention);
      case kPass:
      case kTakeOff:
      case kAtOnce:
      case kLanding:
        break;
    }
    return 0;  // such calls state no FLOPs
  }

  double MemorySeconds(const CallCost& call) const {
    using enum engine::OpKind;
    double bytes = call.IsTwo(framework_) ? call.bytes + call.spared_bytes : call.bytes;
    if (call.kind == kPass) bytes *= framework_.passes;
    if (call.phase == engine::Phase::kRecompute) {
      bytes *= call.kind == kProduct ? framework_.again.products
               : call.kind == kPass  ? framework_.again.passes
                                     : framework_.again.attention;
    }
    return bytes / bytes_per_s_;
  }

  double WireSeconds(const CallCost& call) const {
    const double share = call.is_mean ? framework_.reduced_bytes / kReducedBytes : 1;
    const bool twice = call.collective == engine::Collective::kAllReduce;
    double seconds = CollectiveSeconds(share * call.wire_bytes, twice, call.group, device_, efficiency_);
    if (!framework_.is_ours() && call.copies.ranks > 1) {
      const auto copies = static_cast<double>(call.copies.ranks);
      const double part = share * call.collective_bytes / static_cast<double>(call.group.ranks);
      seconds += CollectiveSeconds(2 * (copies - 1) / copies * part, true, call.copies, device_, efficiency_);
    }
    return seconds;
  }

 private:
  // Returns the rate of the fastest product. Products in mxfp8 and fp4 are assumed to get the same share of their
  // peak as in fp8, and products in TF32 the same as in bf16.
  double CeilingOf(engine::MathFormat format) const {
    const std::string peak = fmt::format("peaks.{}", engine::MathFormatName(format));
    if (format == engine::MathFormat::kF32) return device_.At(peak);
    const bool narrow = format == engine::MathFormat::kFp8 || format == engine::MathFormat::kMxfp8 ||
                        format == engine::MathFormat::kFp4;
    const char* seen = narrow ? "fp8" : "bf16";
    const std::string ceiling = fmt::format("ceilings.{}", seen);
    if (!device_.Has(ceiling)) return device_.At(peak) * kUnknownCeiling;
    return device_.At(peak) * device_.At(ceiling) / device_.At(fmt::format("peaks.{}", seen));
  }

  const Device& device_;
  const Framework& framework_;
  Efficiency efficiency_;
  double launch_s_ = 0;
  double bytes_per_s_ = 0;
  double attention_per_s_ = 0;
  std::map<engine::MathFormat, double> per_s_;
};

engine::TimelineSpan SpanOf(const CallCost& call, double begin_s, double end_s) {
  const bool communicates = call.collective != engine::Collective::kNone;
  return {call.op->name,
          call.phase,
          call.layer,
          1e9 * begin_s,
          1e9 * end_s,
          call.flops,
          communicates ? call.collective_bytes : call.bytes,
          call.collective,
          call.axes};
}

// Two streams, as in the engine. Calls run one after another. So do collectives: each starts at its take-off, or when
// the one before it has ended. Calls wait at a collective's landing.
class Streams {
 public:
  double now() const { return now_; }
  double exposed() const { return exposed_; }
  double communication() const { return communication_; }
  double wire() const { return wire_; }  // when the last started collective will have ended

  void Call(double seconds) { now_ += seconds; }
  // `overlap`: the share of the time in which calls go on. Calls wait for the rest at once.
  void Begin(int32_t flight, double seconds, double overlap) {
    const double waited = (1 - overlap) * seconds;
    now_ += waited;
    exposed_ += waited;
    wire_ = std::max(wire_, now_) + overlap * seconds;
    communication_ += seconds;
    landing_[flight] = wire_;
  }
  void Land(int32_t flight) {
    const double landed = landing_[flight];
    if (landed <= now_) return;
    exposed_ += landed - now_;
    now_ = landed;
  }

 private:
  double now_ = 0;
  double wire_ = 0;
  double exposed_ = 0;
  double communication_ = 0;
  std::unordered_map<int32_t, double> landing_;
};

void Scale(StepForecast& forecast, double factor) {
  for (double StepForecast::*const sum :
       {&StepForecast::step_ns, &StepForecast::compute_ns, &StepForecast::memory_ns, &StepForecast::exposed_ns,
        &StepForecast::launch_ns, &StepForecast::communication_ns}) {
    forecast.*sum *= factor;
  }
  for (ForecastLine& line : forecast.lines) {
    line.ns *= factor;
    line.compute_ns *= factor;
  }
}

// Whether steps like it were measured, on any device. No step was whose ranks share products.
bool IsLikeMeasuredSteps(const RunSpec& spec) { return spec.tensor_parallel == 1; }

// Returns the spread that published rows show for the step. No rows cover processors, fp32, TF32 or 4 bits.
std::optional<double> SpreadOfRows(const RunSpec& spec, const Device& device, const Framework& framework) {
  const bool has_rows =
      spec.precision != Precision::kFp32 && spec.precision != Precision::kTf32 && spec.precision != Precision::kNvfp4;
  if (device.is_cpu() || !has_rows || !IsLikeMeasuredSteps(spec)) return std::nullopt;
  return framework.Spread(device.gpu, SizeOfStep(spec));
}

// Times calls by measurements of the same class on the device, where they exist, and by its rates otherwise.
class Times {
 public:
  Times(const StepCosts& costs, const Device& device, const Framework& framework, const Rates& rates)
      : ranks_(costs.spec.ranks),
        spread_(SpreadOfRows(costs.spec, device, framework)),
        is_like_measured_(IsLikeMeasuredSteps(costs.spec)),
        overlap_(framework.overlap),
        rates_(rates) {
    // Measurements between ranks include the wait.
    const bool waits = !device.is_cpu() && (device.measured.empty() || !framework.is_ours());
    if (waits) straggle_ = framework.straggle * ExpectedLargest(ranks_);
    if (!device.measured.empty() && framework.is_ours()) measured_.emplace(device, costs.spec.ranks);
  }

  struct Call {
    double compute_s = 0;  // time of its products; the longer of the two counts
    double memory_s = 0;
    double launch_s = 0;  // in addition to them
  };
  Call Of(const CallCost& call) {
    Call time{rates_.ComputeSeconds(call), rates_.MemorySeconds(call), 0};
    const double work_s = std::max(time.compute_s, time.memory_s);
    if (work_s == 0) return time;  // work that a framework keeps is not launched
    time.launch_s = rates_.LaunchSeconds(call);
    const std::optional<double> seen_s = measured_ ? Seen(call, work_s + time.launch_s) : std::nullopt;
    if (!seen_s) return time;
    time.launch_s = std::min(time.launch_s, *seen_s);
    const double rest_s = *seen_s - time.launch_s;
    return time.compute_s > time.memory_s ? Call{rest_s, 0, time.launch_s} : Call{0, rest_s, time.launch_s};
  }
  double Wire(const CallCost& call) {
    if (measured_ && call.group.ranks == ranks_) {  // only collectives of all ranks were measured
      if (const auto time = measured_->Of(call.shape)) return Counted(*time);
    }
    return rates_.WireSeconds(call);
  }
  // The share of a collective's time that does not slow calls down.
  double overlap() const { return measured_ ? measured_->overlap() : overlap_; }

  // How long a step waits for the slowest rank, as a share of its time on a median rank.
  double straggle() const { return straggle_; }

  // `step_s`: the sum of the calls. Sets the spread and applies the measured bias; without measurements, times stay.
  void Weigh(double step_s, StepForecast& forecast) const {
    if (!measured_) {
      // This spread also holds for shares that a file states, because no step was compared with them.
      if (!forecast.emulated) forecast.spread = spread_;
      return;
    }
    forecast.extrapolated = step_s > 0 ? extrapolated_s_ / step_s : 0;
    forecast.calibrated = is_like_measured_ && forecast.extrapolated <= kFewExtrapolated;
    if (is_like_measured_) {
      forecast.spread = std::exp(kDeviations * std::hypot(measured_->error(), step_s > 0 ? error_s_ / step_s : 0));
    }
    Scale(forecast, measured_->bias());
  }

 private:
  // Returns the time by measurements; nothing if the class was not measured: `otherwise_s` is then extrapolated.
  std::optional<double> Seen(const CallCost& call, double otherwise_s) {
    if (const auto time = measured_->Of(call.shape)) return Counted(*time);
    extrapolated_s_ += otherwise_s;
    error_s_ += kErrorUnknown * otherwise_s;
    return std::nullopt;
  }
  double Counted(const MeasuredRates::Time& time) {
    if (time.beyond > 0) {
      extrapolated_s_ += time.s;
      error_s_ += kErrorBeyond * time.beyond * time.s;
    }
    return time.s;
  }

  const int64_t ranks_;
  const std::optional<double> spread_;
  const bool is_like_measured_;
  double straggle_ = 0;
  const double overlap_;
  const Rates& rates_;
  std::optional<MeasuredRates> measured_;
  double extrapolated_s_ = 0;
  double error_s_ = 0;
};

constexpr std::string_view kLaunches = "launches";

std::string_view LargestOf(const StepForecast& forecast) {
  const std::pair<double, std::string_view> parts[] = {{forecast.compute_ns, "compute"},
                                                       {forecast.memory_ns, "memory"},
                                                       {forecast.exposed_ns, "communication"},
                                                       {forecast.launch_ns, kLaunches}};
  return std::ranges::max_element(parts, {}, &std::pair<double, std::string_view>::first)->second;
}

// Returns the step as if it had fewer layers or micro-steps. A collective that started before the dropped calls and was
// to land among them lands where one started among them would have: it gathers the next layer's weights in its place.
template <typename Dropped>
StepCosts Without(const StepCosts& costs, const Dropped& dropped) {
  struct Took {
    const engine::OpDef* op = nullptr;
    bool kept = false;
  };
  std::unordered_map<int32_t, Took> took_off;
  // Started before the dropped calls, landed among them.
  std::unordered_map<const engine::OpDef*, std::deque<int32_t>> astray;
  StepCosts left{costs.spec, {}};
  left.calls.reserve(costs.calls.size());
  for (const CallCost& call : costs.calls) {
    const bool kept = !dropped(call);
    if (call.kind == engine::OpKind::kTakeOff) took_off[call.flight] = {call.op, kept};
    if (call.kind != engine::OpKind::kLanding) {
      if (kept) left.calls.push_back(call);
      continue;
    }
    const Took took = took_off[call.flight];
    std::deque<int32_t>& waiting = astray[took.op];
    if (took.kept && !kept) {
      waiting.push_back(call.flight);
    } else if (kept) {
      CallCost landing = call;
      if (!took.kept) {
        if (waiting.empty()) continue;  // it started among the dropped calls, and nothing took its place
        landing.flight = waiting.front();
        waiting.pop_front();
      }
      left.calls.push_back(landing);
    }
  }
  return left;
}

// Computes the fields that follow from the sums.
void Finish(StepForecast& forecast) {
  forecast.bound = LargestOf(forecast);
  std::sort(forecast.lines.begin(), forecast.lines.end(), [](const ForecastLine& a, const ForecastLine& b) {
    return a.ns != b.ns ? a.ns > b.ns : std::pair(a.op, a.phase) < std::pair(b.op, b.phase);
  });
}

// Returns `less` plus `times` the difference between `more` and `less`.
StepForecast Extrapolated(const StepForecast& less, const StepForecast& more, double times) {
  StepForecast all = more;
  for (double StepForecast::*const sum :
       {&StepForecast::step_ns, &StepForecast::compute_ns, &StepForecast::memory_ns, &StepForecast::exposed_ns,
        &StepForecast::launch_ns, &StepForecast::communication_ns, &StepForecast::straggle_ns}) {
    all.*sum = less.*sum + times * (more.*sum - less.*sum);
  }
  for (ForecastLine& line : all.lines) {
    const auto before = std::ranges::find_if(
        less.lines, [&](const ForecastLine& other) { return other.op == line.op && other.phase == line.phase; });
    const ForecastLine from = before == less.lines.end() ? ForecastLine{} : *before;
    line.calls = from.calls + std::llround(times * static_cast<double>(line.calls - from.calls));
    line.ns = from.ns + times * (line.ns - from.ns);
    line.compute_ns = from.compute_ns + times * (line.compute_ns - from.compute_ns);
  }
  Finish(all);
  return all;
}

bool IsOfGpusAlone(engine::MathFormat format) {
  using enum engine::MathFormat;
  return format == kTF32 || format == kFp8 || format == kMxfp8 || format == kFp4;
}

// No published row covers a step bound by launches. A device with measured calls has its own spread.
StepForecast WithKnownSpread(StepForecast forecast, const Device& device, const Framework& framework) {
  const bool by_rows = device.measured.empty() || !framework.is_ours();
  if (by_rows && forecast.bound == kLaunches) forecast.spread.reset();
  return forecast;
}

}  // namespace

double StepForecast::steady_tokens_per_s(const RunSpec& spec) const {
  return step_ns == 0 ? 0 : static_cast<double>(TokensAStep(spec)) * 1e9 / step_ns;
}

double StepForecast::cold_tokens_per_s(const RunSpec& spec) const {
  const auto steps = static_cast<double>(spec.warmup_steps + spec.steps);
  const double ns = first_ns + steps * step_ns;
  return ns == 0 ? 0 : static_cast<double>(TokensAStep(spec)) * steps * 1e9 / ns;
}

StepCosts CostsOf(RunSpec spec, const Device& device) {
  spec.device = "meta";
  spec.gpu = device.gpu;
  const engine::StepProgram program = engine::TraceStep(spec);
  StepCosts costs{spec, {}};
  const engine::Mesh mesh = engine::MeshOf(spec);
  const auto multiprocessors = static_cast<int64_t>(device.At("chip.multiprocessors"));
  costs.calls.reserve(program.trace.calls().size());
  int32_t micro_step = 0;
  bool went_back = false;  // a layer's backward pass has run
  for (const engine::OpCall& call : program.trace.calls()) {
    if (call.phase == engine::Phase::kBackward && call.layer >= 0) went_back = true;
    if (call.phase == engine::Phase::kForward && std::exchange(went_back, false)) ++micro_step;
    CallCost cost{.op = call.op,
                  .phase = call.phase,
                  .format = engine::MultipliedFormat(call),
                  .flops = call.cost.flops,
                  .bytes = call.bytes() + engine::ScratchBytes(call),
                  .spared_bytes = call.cost.spared_bytes,
                  .wire_bytes = call.cost.wire_bytes,
                  .layer = call.layer,
                  .collective = call.op->collective,
                  .micro_step = micro_step,
                  .kind = call.op->kind};
    // As the trainer reports it. On processors, all narrow formats and TF32 are emulated.
    cost.is_emulated =
        call.cost.emulated || (device.is_cpu() && call.cost.flops > 0 && IsOfGpusAlone(call.cost.format));
    using enum engine::OpKind;
    if (cost.kind == kProduct) {
      const auto [m, n, k] = call.op->dims(call);
      cost.tiles = TileShare(m, n, k, multiprocessors);
    }
    if (cost.kind == kTakeOff || cost.kind == kAtOnce || cost.kind == kLanding) {
      const engine::CollectiveAttrs& attrs = engine::CollectiveAttrsOf(call);
      cost.flight = attrs.flight;
      cost.axes = attrs.axes;
      cost.group = mesh.GroupOf(program.rank, attrs.axes);
      cost.is_mean = cost.kind == kTakeOff && cost.collective != engine::Collective::kAllGather &&
                     attrs.reduction == engine::Reduction::kMean;
      cost.collective_bytes = static_cast<double>(call.reads().front().bytes());
      if (cost.is_mean && cost.collective == engine::Collective::kReduceScatter &&
          micro_step + 1 < spec.grad_accumulation) {
        cost.copies = mesh.GroupOf(program.rank, engine::MeshAxis::kReplica);
      }
    }
    if (!device.measured.empty()) cost.shape = engine::CallShapeOf(call);
    costs.calls.push_back(cost);
  }
  return costs;
}

double ExpectedLargest(int64_t count) {
  if (count <= 1) return 0;
  const auto n = static_cast<double>(count);
  return NormalQuantile((n - 0.375) / (n + 0.25));
}

namespace {

StepForecast SumOf(const StepCosts& costs, const Device& device, const Framework& framework,
                   engine::Timeline* timeline = nullptr) {
  const Rates rates(costs, device, framework);
  Times times(costs, device, framework, rates);
  Streams streams;
  StepForecast forecast;
  // Few enough for a linear search.
  std::vector<std::pair<std::pair<const engine::OpDef*, engine::Phase>, ForecastLine>> by_op;
  for (const CallCost& call : costs.calls) {
    const std::pair key(call.op, call.phase);
    auto entry = std::ranges::find(by_op, key, [](const auto& other) { return other.first; });
    if (entry == by_op.end()) entry = by_op.insert(entry, {key, {call.op->name, engine::PhaseName(call.phase)}});
    ForecastLine& line = entry->second;
    ++line.calls;
    forecast.emulated = forecast.emulated || call.is_emulated;
    const double before = streams.now();
    using enum engine::OpKind;
    if (call.kind == kTakeOff || call.kind == kAtOnce) {
      const double wire_s = times.Wire(call);
      streams.Begin(call.flight, wire_s, times.overlap());
      if (timeline != nullptr) timeline->TakeOff(call.flight, SpanOf(call, streams.wire() - wire_s, streams.wire()));
      if (call.kind == kAtOnce) {
        streams.Land(call.flight);
        if (timeline != nullptr) timeline->Land(call.flight);
      }
    } else if (call.kind == kLanding) {
      streams.Land(call.flight);
      if (timeline != nullptr) timeline->Land(call.flight);
    } else {
      const auto [compute_s, memory_s, launch_s] = times.Of(call);
      const double work_s = std::max(compute_s, memory_s);
      streams.Call(work_s + launch_s);
      if (timeline != nullptr && work_s > 0) timeline->Compute(SpanOf(call, before, streams.now()));
      forecast.launch_ns += 1e9 * launch_s;
      (compute_s > memory_s ? forecast.compute_ns : forecast.memory_ns) += 1e9 * work_s;
      if (compute_s > memory_s) line.compute_ns += 1e9 * work_s;
    }
    line.ns += 1e9 * (streams.now() - before);
  }
  forecast.step_ns = 1e9 * streams.now();
  forecast.exposed_ns = 1e9 * streams.exposed();
  forecast.communication_ns = 1e9 * streams.communication();
  forecast.first_ns = 1e9 * device.Or("cold.first_iteration", framework.first_iteration_s);
  forecast.start_ns = device.is_cpu() ? 0 : 1e9 * framework.start_s;
  for (auto& [key, line] : by_op) forecast.lines.push_back(line);
  times.Weigh(streams.now(), forecast);
  if (framework.correction) {
    Scale(forecast, framework.correction->factor);
    if (timeline != nullptr) timeline->Stretch(framework.correction->factor);
  }
  if (times.straggle() > 0) {
    const double wait_ns = times.straggle() * forecast.step_ns;
    if (timeline != nullptr) {
      timeline->Compute({.op = kStragglers,
                         .phase = engine::Phase::kOptimizer,
                         .begin_ns = forecast.step_ns,
                         .end_ns = forecast.step_ns + wait_ns});
    }
    forecast.straggle_ns = wait_ns;
    forecast.exposed_ns += wait_ns;
    forecast.step_ns += wait_ns;
    forecast.lines.push_back({.op = kStragglers, .phase = "step", .calls = 1, .ns = wait_ns});
  }
  Finish(forecast);
  return forecast;
}

}  // namespace

StepForecast Forecast(const StepCosts& costs, const Device& device, const Framework& framework,
                      engine::Timeline* timeline) {
  return WithKnownSpread(SumOf(costs, device, framework, timeline), device, framework);
}

TracedStep::TracedStep(const RunSpec& spec, const Device& device) {
  // All micro-steps are alike but the first, which starts the sums, and the last, which reduces them.
  constexpr int64_t kMicroSteps = 3;
  constexpr int32_t kMiddle = 1;
  const int64_t cycle = spec.checkpointing.layers_per_group;
  // The fewest layers with the same remainder of a group as the spec's. The trace has one more group, between others.
  int64_t layers = spec.bf16_first_layers + spec.bf16_last_layers + std::max<int64_t>(3, 2 * cycle);
  if (layers < spec.layers) layers += (spec.layers - layers) % cycle;
  const bool fewer_layers = spec.layers > layers + cycle;
  const int64_t first = (spec.bf16_first_layers / cycle + 1) * cycle;
  const bool fewer_micro_steps = spec.grad_accumulation > kMicroSteps;
  RunSpec some = spec;
  if (fewer_layers) some.layers = layers + cycle;
  if (fewer_micro_steps) some.grad_accumulation = kMicroSteps;
  if (fewer_layers) layers_ = static_cast<double>(spec.layers - layers) / static_cast<double>(cycle);
  if (fewer_micro_steps) micro_steps_ = static_cast<double>(spec.grad_accumulation - kMicroSteps + 1);
  all_.more = CostsOf(std::move(some), device);
  all_.more.spec = spec;  // the interval goes by the size of the whole step
  const auto without = [&](bool group, bool middle) {
    return Without(all_.more, [&](const CallCost& call) {
      return (group && call.layer >= first && call.layer < first + cycle) || (middle && call.micro_step == kMiddle);
    });
  };
  if (fewer_layers) all_.less = without(true, false);
  if (fewer_micro_steps) fewer_.more = without(false, true);
  if (fewer_layers && fewer_micro_steps) fewer_.less = without(true, true);
}

StepForecast TracedStep::PriceLayers(const Layers& layers, const Device& device, const Framework& framework) const {
  const StepForecast more = SumOf(layers.more, device, framework);
  return layers_ == 0 ? more : Extrapolated(SumOf(layers.less, device, framework), more, layers_);
}

StepForecast TracedStep::Price(const Device& device, const Framework& framework) const {
  const StepForecast all = PriceLayers(all_, device, framework);
  return WithKnownSpread(
      micro_steps_ == 0 ? all : Extrapolated(PriceLayers(fewer_, device, framework), all, micro_steps_), device,
      framework);
}

StepForecast PredictStep(const RunSpec& spec, const Device& device, const Framework& framework) {
  return TracedStep(spec, device).Price(device, framework);
}

}  // namespace ridgeline::predict
