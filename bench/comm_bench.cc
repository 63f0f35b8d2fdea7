// The collectives of two ranks on this machine, over loopback. docs/sharding.md compares Gloo and MPI by its figures.
#include <benchmark/benchmark.h>

#include <thread>
#include <vector>

#include "base/port.h"
#include "engine/comm/gloo/gloo_communicator.h"

namespace ridgeline {
namespace {

constexpr int64_t kRounds = 20;

template <typename Collective>
void TwoRanks(benchmark::State& state, const Collective& collective) {
  const int64_t bytes = state.range(0) << 20;  // of the whole
  const ReservedPort port;
  const auto rank = [&](int64_t number, const auto& rounds) {
    const auto communicator = engine::ConnectGloo({number, 2, "127.0.0.1", port.number(), 300}, {});
    std::vector<float> whole(static_cast<size_t>(bytes) / sizeof(float), 1.0F);
    collective(*communicator, whole);
    communicator->Barrier();
    rounds([&] { collective(*communicator, whole); });
  };
  std::thread other([&] {
    rank(1, [](const auto& once) {
      for (int64_t i = 0; i < kRounds; ++i) once();
    });
  });
  rank(0, [&](const auto& once) {
    for (auto _ : state) once();
  });
  other.join();
  state.SetBytesProcessed(state.iterations() * bytes);
}

void AllGather(benchmark::State& state) {
  TwoRanks(state, [](engine::Communicator& c, std::vector<float>& whole) {
    auto* full = reinterpret_cast<std::byte*>(whole.data());
    const auto part = static_cast<int64_t>(whole.size() * sizeof(float)) / 2;
    c.AllGather(full + c.rank() * part, full, part);
  });
}

void ReduceScatter(benchmark::State& state) {
  TwoRanks(state, [](engine::Communicator& c, std::vector<float>& whole) {
    c.ReduceScatterMean(whole.data(), static_cast<int64_t>(whole.size()) / 2);
  });
}

BENCHMARK(AllGather)->Arg(1)->Arg(16)->Arg(256)->Iterations(kRounds)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ReduceScatter)->Arg(1)->Arg(16)->Arg(256)->Iterations(kRounds)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ridgeline
