// Expanding a grid of a million points, as `ridgeline plan bench/million.yaml --expand-only -o jsonl` does. Goal: 2 s
// and 1 GiB.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <string>
#include <string_view>

#include "plan/show.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline {
namespace {

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

void ExpandAMillion(benchmark::State& state) {
  for (auto _ : state) {
    const sweep::Sweep sweep = sweep::LoadSweep(RIDGELINE_SOURCE_DIR "/bench/million.yaml");
    size_t bytes = 0;
    const sweep::Expansion expansion =
        plan::WriteExpanded(sweep, "jsonl", [&](std::string_view text) { bytes += text.size(); });
    if (expansion.points != 1'000'000) state.SkipWithError("not a million points");
    state.counters["bytes"] = static_cast<double>(bytes);
    state.counters["rss_peak_mb"] = PeakMegabytes();
  }
}
BENCHMARK(ExpandAMillion)->Unit(benchmark::kMillisecond);

// The cost of a point when nothing is reused from the point before.
void EncodeOneSpec(benchmark::State& state) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-25m"}}, problems);
  for (auto _ : state) benchmark::DoNotOptimize(PointId(spec));
}
BENCHMARK(EncodeOneSpec);

}  // namespace
}  // namespace ridgeline
