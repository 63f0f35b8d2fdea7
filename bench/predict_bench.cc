// How many steps a second the step model prices on one core, up to the largest model, and how long the first step
// takes. Goals: 2000 a second, including llama-64b sharded in MXFP8, and 50 ms for the first.
#include <benchmark/benchmark.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "predict/device.h"
#include "predict/memory_forecast.h"
#include "predict/step_model.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

const predict::Device& MachineOfB200() {
  static const predict::Device device =
      predict::FindDevice("p6-b200", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "devices"});
  return device;
}

RunSpec BenchSpec(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (!problems.empty()) throw std::invalid_argument(problems.front().message);
  return spec;
}

// The time that the process's first prediction takes, in ms.
double FirstMs() {
  const auto begin = std::chrono::steady_clock::now();
  predict::PredictStep(BenchSpec({{"model", "llama-64b"}, {"precision", "mxfp8"}, {"ranks", 64}, {"shard", "full"}}),
                       MachineOfB200());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void Predict(benchmark::State& state, const Json& values) {
  static const double first_ms = FirstMs();
  const RunSpec spec = BenchSpec(values);
  for (auto _ : state) benchmark::DoNotOptimize(predict::PredictStep(spec, MachineOfB200()));
  state.counters["predictions/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["first_ms"] = first_ms;
}
BENCHMARK_CAPTURE(Predict, llama_64b_bf16, Json{{"model", "llama-64b"}})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Predict, llama_64b_mxfp8, Json{{"model", "llama-64b"}, {"precision", "mxfp8"}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Predict, llama_64b_bf16_full, Json{{"model", "llama-64b"}, {"ranks", 64}, {"shard", "full"}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Predict, llama_64b_mxfp8_full,
                  Json{{"model", "llama-64b"}, {"precision", "mxfp8"}, {"ranks", 64}, {"shard", "full"}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(
    Predict, llama_64b_mxfp8_full_checkpointed,
    Json{{"model", "llama-64b"}, {"precision", "mxfp8"}, {"ranks", 64}, {"shard", "full"}, {"checkpointing", "full"}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(
    Predict, llama_64b_mxfp8_full_8_micro_steps,
    Json{{"model", "llama-64b"}, {"precision", "mxfp8"}, {"ranks", 64}, {"shard", "full"}, {"grad_accumulation", 8}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Predict, gpt_1b_fp8, Json{{"model", "gpt-1b"}, {"precision", "fp8"}, {"seq_length", 1024}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ridgeline
