// The harness's cost of a point: `ridgeline run` over points whose trainer does nothing, on the local launcher. Goal:
// at most 5 ms a point. It runs the real programs with files and database on a real disk, but without
// `ridgeline-train`.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

void RunNoopPoints(benchmark::State& state) {
  const int64_t points = state.range(0);
  const SystemClock clock;
  std::vector<fs::path> used;  // removed at the end: ext4 makes new files slowly just after many were removed
  for (auto _ : state) {
    std::string pattern = (fs::temp_directory_path() / "ridgeline-bench.XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return state.SkipWithError("no folder");
    const fs::path dir = used.emplace_back(pattern);
    std::ofstream(dir / "noop.yaml") << "name: noop\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1.."
                                     << points << "+1]}\nlaunch: {trainer: [" << RIDGELINE_BINARY_DIR
                                     << "/bench/noop_trainer]}\n";
    const int64_t start_ns = clock.MonotonicNs();
    const Captured run = Run({std::string(RIDGELINE_BINARY_DIR) + "/bin/ridgeline", "run", dir / "noop.yaml", "--db",
                              dir / "noop.db", "--to", dir / "out"});
    const int64_t wall_ns = clock.MonotonicNs() - start_ns;
    if (!run.status.ok()) return state.SkipWithError(run.stderr_text.c_str());
    state.SetIterationTime(static_cast<double>(wall_ns) * 1e-9);
    state.counters["ms_per_point"] = static_cast<double>(wall_ns) * 1e-6 / static_cast<double>(points);
  }
  for (const fs::path& dir : used) fs::remove_all(dir);
}
BENCHMARK(RunNoopPoints)->Arg(50)->Arg(500)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ridgeline
