#include "run/figures.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace ridgeline {
namespace {

// The place of a figure: At<&RunResult::step_ns, &StepTimes::median_ns>.
template <auto... kMembers>
auto& At(RunResult& result) {
  return (result.*....*kMembers);
}

constexpr double kMost = 9e18;  // for an integer: a double that fits an int64_t
constexpr double kAny = 1e300;  // for a number

using R = RunResult;
using T = Throughput;
using S = StepTimes;
using M = MemoryFigures;
using Flops = FlopFigures;
using C = CoreFigures;
using G = GpuFigures;
using P = PrintedFigures;

const Figure kFigures[] = {
    {"emulated", "emulated", At<&R::emulated>, "", "a low precision was computed in a higher one"},
    {"device_name", "device", At<&R::device>, "", "the device's own name"},
    {"communicator_name", "communicator", At<&R::communicator>, "", "the library that moved bytes between ranks"},
    {"parameters", "parameters", At<&R::parameters>, "", "parameters of the model, tied weights counted once", 0,
     kMost},
    {"tokens_per_step", "tokens_per_step", At<&R::tokens_per_step>, "tokens", "an optimizer step, over all ranks", 0,
     kMost},
    {"steady_tokens_per_s", "throughput.steady_tokens_per_s", At<&R::throughput, &T::steady_tokens_per_s>, "tokens/s",
     "tokens a step over the median measured step", 0, kAny},
    {"cold_tokens_per_s", "throughput.cold_tokens_per_s", At<&R::throughput, &T::cold_tokens_per_s>, "tokens/s",
     "all tokens over all steps' time, the first step included", 0, kAny},
    {"step_median_ns", "step_ns.median", At<&R::step_ns, &S::median_ns>, "ns", "over the measured steps", 0, kMost},
    {"step_p95_ns", "step_ns.p95", At<&R::step_ns, &S::p95_ns>, "ns", "95 % of the measured steps took no longer", 0,
     kMost},
    {"step_cv", "step_ns.cv", At<&R::step_ns, &S::cv>, "",
     "coefficient of variation of the measured steps: standard deviation over mean", 0, kAny, "step_median_ns"},
    {"measured_steps", "measured_steps", At<&R::measured_steps>, "steps",
     "steps whose times give the steady figures; a value logged every K steps counts as K steps", 0, kMost},
    {"all_steps_ns", "step_ns.all", At<&R::step_ns, &S::all_ns>, "ns",
     "every optimizer step, warm-up included; with repeats, only those of the first", 0, kMost},
    {"loss", "loss", At<&R::loss>, "", "of an optimizer step; null if it was not finite", -kAny, kAny},
    {"grad_norm", "grad_norm", At<&R::grad_norm>, "", "of an optimizer step; null if it was not finite", 0, kAny},
    {"skipped_steps", "skipped_steps", At<&R::skipped_steps>, "steps",
     "optimizer steps that dynamic loss scaling left out", 0, kMost, "loss"},
    {"planned_peak_bytes", "memory.planned_peak_bytes", At<&R::memory, &M::planned_peak_bytes>, "bytes",
     "the slab: every tensor of the run, at its fullest moment", 0, kMost},
    {"planned_bytes_by_category", "memory.by_category", At<&R::memory, &M::by_category>, "bytes",
     "the planned peak, by what the tensors are for", 0, kMost},
    {"rss_peak_bytes", "memory.rss_peak_bytes", At<&R::memory, &M::rss_peak_bytes>, "bytes",
     "the process's peak resident set; the largest of all ranks", 0, kMost},
    {"device_peak_bytes", "memory.device_peak_bytes", At<&R::memory, &M::device_peak_bytes>, "bytes",
     "the most of the accelerator's memory that was taken, as measured; the largest of all ranks", 0, kMost},
    {"device_reserved_bytes", "memory.device_reserved_bytes", At<&R::memory, &M::device_reserved_bytes>, "bytes",
     "the most of it that the trainer's allocator had reserved, tensors in it or not", 0, kMost},
    {"device_peak_kind", "memory.device_peak_kind", At<&R::memory, &M::device_peak_kind>, "",
     "what device_peak_bytes counts: allocated, in use (on the card) or NVML (held by the trainer's processes)"},
    {"model_causal_flops_per_step", "flops.model_causal", At<&R::flops, &Flops::model_causal>, "FLOP",
     "the model's, a rank: attention where the causal mask leaves work, no recomputation", 0, kAny},
    {"model_noncausal_flops_per_step", "flops.model_non_causal", At<&R::flops, &Flops::model_non_causal>, "FLOP",
     "the same with attention over the full square", 0, kAny},
    {"executed_flops_per_step", "flops.executed", At<&R::flops, &Flops::executed>, "FLOP",
     "FLOPs that were executed, recomputation included", 0, kAny},
    {"printed_mfu", "printed.mfu", At<&R::printed, &P::mfu>, "",
     "model FLOPs utilization, a share, as the trainer prints it by its own convention", 0, kAny},
    {"printed_tflops_per_gpu", "printed.tflops_per_gpu", At<&R::printed, &P::tflops_per_gpu>, "TFLOP/s",
     "a GPU, as the trainer prints it by its own convention", 0, kAny},
    {"metrics", "metrics", At<&R::metrics>, "",
     "figures that the trainer's definition names itself, each with its unit; of a series the median measured value",
     -kAny, kAny},
    {"cores_busy_share", "cores.busy_share", At<&R::cores, &C::busy_share>, "",
     "share of the time of its cores that was in use", 0, 1},
    {"cores_others_share", "cores.others_share", At<&R::cores, &C::others_share>, "",
     "share of that time that others used, steal included", 0, 1, "cores_busy_share"},
    {"cores_throttles", "cores.throttles", At<&R::cores, &C::throttles>, "",
     "how often a core grew too hot for its clock, or the cgroup had used up its share", 0, kMost, "cores_busy_share"},
    {"gpu_power_w", "gpu.power_w", At<&R::gpu, &G::power_w>, "W",
     "drawn by the GPU of rank 0, mean over the measured steps", 0, kAny},
    {"gpu_power_max_w", "gpu.power_max_w", At<&R::gpu, &G::power_max_w>, "W",
     "drawn by it at a moment of the measured steps, the most", 0, kAny},
    {"gpu_power_limit_w", "gpu.power_limit_w", At<&R::gpu, &G::power_limit_w>, "W", "power limit, as set", 0, kAny},
    {"gpu_energy_j", "gpu.energy_j", At<&R::gpu, &G::energy_j>, "J", "taken by the GPU of rank 0 in the measured steps",
     0, kAny},
    {"gpu_sm_clock_mhz", "gpu.sm_clock_mhz", At<&R::gpu, &G::sm_clock_mhz>, "MHz",
     "clock of its multiprocessors, mean over the measured steps", 0, kAny},
    {"gpu_sm_clock_min_mhz", "gpu.sm_clock_min_mhz", At<&R::gpu, &G::sm_clock_min_mhz>, "MHz",
     "clock of its multiprocessors, lowest in the measured steps", 0, kAny},
    {"gpu_memory_clock_mhz", "gpu.memory_clock_mhz", At<&R::gpu, &G::memory_clock_mhz>, "MHz",
     "clock of its memory, mean over the measured steps", 0, kAny},
    {"gpu_temperature_c", "gpu.temperature_c", At<&R::gpu, &G::temperature_c>, "\u00B0C",
     "temperature of the GPU, highest in the measured steps", 0, kAny},
    {"gpu_throttled_share", "gpu.throttled_share", At<&R::gpu, &G::throttled_share>, "",
     "share of the samples in the measured steps with a limit on the clocks that costs speed (power, heat, a "
     "slowdown); of the rank with most",
     0, 1},
    {"gpu_clock_limits", "gpu.clock_limits", At<&R::gpu, &G::clock_limits>, "samples",
     "in which each limit on its clocks held, by nvidia-smi's name", 0, kMost, "gpu_throttled_share"},
    {"gpu_ecc_corrected", "gpu.ecc_corrected", At<&R::gpu, &G::ecc_corrected>, "errors",
     "errors of its memory during the run, corrected", 0, kMost},
    {"gpu_ecc_uncorrected", "gpu.ecc_uncorrected", At<&R::gpu, &G::ecc_uncorrected>, "errors",
     "errors of its memory during the run, not corrected", 0, kMost},
    {"gpu_others", "gpu.others", At<&R::gpu, &G::others>, "processes", "processes of others on the GPU before the run",
     0, kMost},
    {"gpu_others_bytes", "gpu.others_bytes", At<&R::gpu, &G::others_bytes>, "bytes",
     "memory that others used before the run", 0, kMost},
    {"repeat", "repeat", At<&R::repeat>, "",
     "the repeat of its point, if each has a run of its own; its times cover all repeats up to this one", 0, 1000},
    {"started_unix_ns", "started_unix_ns", At<&R::started_unix_ns>, "ns since 1970", "when the run began", 0, kMost},
    {"ended_unix_ns", "ended_unix_ns", At<&R::ended_unix_ns>, "ns since 1970", "when it ended", 0, kMost},
};

// Indexed by Figure::Member's index.
constexpr std::array<std::string_view, 10> kTypes = {"integer", "number",  "true or false", "text",   "integers",
                                                     "numbers", "amounts", "integer",       "number", "figures"};
constexpr std::array<std::string_view, 10> kSqlTypes = {"INTEGER", "REAL", "INTEGER", "TEXT", "TEXT",
                                                        "TEXT",    "TEXT", "INTEGER", "REAL", "TEXT"};

template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;

// The figure beside which this one was taken; nullptr if there is none.
const Figure* OtherOf(const Figure& figure) {
  if (figure.taken_with.empty()) return nullptr;
  return &*std::find_if(std::begin(kFigures), std::end(kFigures),
                        [&](const Figure& f) { return f.name == figure.taken_with; });
}

}  // namespace

std::string_view Figure::type() const { return kTypes[member.index()]; }
std::string_view Figure::sql_type() const { return kSqlTypes[member.index()]; }
bool Figure::is_series() const { return type() == "integers" || type() == "numbers"; }
bool Figure::is_object() const { return type() == "amounts" || type() == "figures"; }

bool Figure::is_optional() const {
  if (const Figure* other = OtherOf(*this)) return other->is_optional();
  return std::visit([]<typename T>(T& (*)(RunResult&)) { return kIsOptional<T>; }, member);
}

std::span<const Figure> Figures() { return kFigures; }

FigureValue ValueOf(const RunResult& result, const Figure& figure) {
  // Safe, because the table's functions only locate a figure and do not change the result.
  auto& whole = const_cast<RunResult&>(result);
  return std::visit(
      [&](auto at) -> FigureValue {
        auto& value = at(whole);
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> || kIsOptional<T>) {
          return value;
        } else {
          return &std::as_const(value);
        }
      },
      figure.member);
}

bool WasTaken(const RunResult& result, const Figure& figure) {
  const FigureValue value = ValueOf(result, figure);
  if (const Figure* other = OtherOf(figure)) return WasTaken(result, *other);
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer != 0;
  if (const auto* number = std::get_if<double>(&value)) return *number != 0;
  if (const auto* integer = std::get_if<std::optional<int64_t>>(&value)) return integer->has_value();
  if (const auto* number = std::get_if<std::optional<double>>(&value)) return number->has_value();
  if (const auto* list = std::get_if<const std::vector<int64_t>*>(&value)) return !(*list)->empty();
  if (const auto* list = std::get_if<const std::vector<double>*>(&value)) return !(*list)->empty();
  return true;
}

void DropSeries(RunResult& result) {
  for (const Figure& figure : Figures()) {
    if (!figure.is_series()) continue;
    std::visit(
        [&](auto at) {
          auto& value = at(result);
          value = {};
        },
        figure.member);
  }
}

}  // namespace ridgeline
