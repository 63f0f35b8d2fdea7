#include "engine/train/ranks.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/comm/gloo/gloo_communicator.h"
#include "engine/comm/gloo/rank_environment.h"
#include "ridgeline/limits.h"
#include "run/fields.h"
#include "run/gpu_limits.h"

namespace ridgeline::engine {
namespace {

std::map<std::string, std::string> IdentityOf(const RunSpec& spec) {
  std::map<std::string, std::string> identity;
  for (const Field& field : Fields()) identity[std::string(field.name)] = FieldText(spec, field);
  identity["trainer"] = fmt::format("{} {}", kVersion, GitCommit());
  return identity;
}

// Figures of which the largest over the ranks' GPUs counts.
constexpr std::array kMostOfGpus = {&GpuFigures::ecc_corrected, &GpuFigures::ecc_uncorrected, &GpuFigures::others,
                                    &GpuFigures::others_bytes};

// A rank's figures, as ranks send them. Negative: not known.
struct PackedFigures {
  std::array<char, 64> host{};
  int64_t planned_peak_bytes = 0;
  int64_t rss_peak_bytes = 0;
  int64_t device_peak_bytes = 0;
  int64_t refused_connections = 0;
  int64_t step_ns = 0;
  int64_t p95_ns = 0;
  int64_t wait_ns = -1;
  std::array<int64_t, kMostOfGpus.size()> most_of_gpus{};
  double throttled_share = -1;
  std::array<int64_t, kGpuClockLimits> clock_limits{};  // in the order of GpuClockLimits
};

PackedFigures Pack(const RunResult& result, int64_t refused_connections, std::optional<int64_t> waited_ns) {
  PackedFigures packed;
  const std::string& host = result.environment.at("hostname");
  std::copy_n(host.begin(), std::min(host.size(), packed.host.size() - 1), packed.host.begin());
  packed.planned_peak_bytes = result.memory.planned_peak_bytes;
  packed.rss_peak_bytes = result.memory.rss_peak_bytes;
  packed.device_peak_bytes = result.memory.device_peak_bytes;
  packed.refused_connections = refused_connections;
  packed.step_ns = result.step_ns.median_ns;
  packed.p95_ns = result.step_ns.p95_ns;
  packed.wait_ns = waited_ns.value_or(-1);
  for (size_t i = 0; i < kMostOfGpus.size(); ++i) packed.most_of_gpus[i] = (result.gpu.*kMostOfGpus[i]).value_or(-1);
  packed.throttled_share = result.gpu.throttled_share.value_or(-1);
  std::ranges::transform(GpuClockLimits(), packed.clock_limits.begin(), [&](const GpuClockLimit& limit) {
    const auto held = result.gpu.clock_limits.find(std::string(limit.name));
    return held == result.gpu.clock_limits.end() ? -1 : held->second;
  });
  return packed;
}

// A step waits for the slowest rank, so the largest share of held-down clocks counts, with that GPU's limits.
void TakeWorse(const PackedFigures& rank, GpuFigures& gpu) {
  for (size_t i = 0; i < kMostOfGpus.size(); ++i) {
    std::optional<int64_t>& most = gpu.*kMostOfGpus[i];
    if (rank.most_of_gpus[i] > most.value_or(-1)) most = rank.most_of_gpus[i];
  }
  if (rank.throttled_share <= gpu.throttled_share.value_or(-1)) return;
  gpu.throttled_share = rank.throttled_share;
  gpu.clock_limits.clear();
  for (size_t i = 0; i < kGpuClockLimits; ++i) {
    if (rank.clock_limits[i] >= 0) gpu.clock_limits.emplace(GpuClockLimits()[i].name, rank.clock_limits[i]);
  }
}

// Says nothing if one figure is smaller than `least`: a run that left before its first measured step has no times, and
// not every device knows how long it waited. Says nothing either for so many ranks that the text is too long for
// evidence.
void SayOfRanks(const char* name, const std::vector<PackedFigures>& all, int64_t PackedFigures::*figure, int64_t least,
                RunResult& result) {
  Json list = Json::array();
  for (const PackedFigures& rank : all) {
    if (rank.*figure < least) return;
    list.push_back(rank.*figure);
  }
  if (std::string text = DumpJson(list); text.size() <= kMaxTextBytes) result.evidence[name] = std::move(text);
}

}  // namespace

std::unique_ptr<Communicator> ConnectRanks(const RunSpec& spec) {
  if (spec.device == "meta") return MakeSelfCommunicator();
  if (spec.communicator == "virtual") return MakeVirtualCommunicator(MeshOf(spec));
  const std::optional<RankEnvironment> place = ReadRankEnvironment();
  if (!place && spec.ranks > 1) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("the spec has ranks: {}, and nothing says which of them this process is", spec.ranks),
                "start it with `ridgeline exec` or torchrun, or as one rank alone with communicator: virtual");
  }
  if (place && place->world != spec.ranks) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("the spec has ranks: {}, and WORLD_SIZE is {}", spec.ranks, place->world),
                "start as many processes as the spec has ranks");
  }
  return spec.ranks == 1 ? MakeSelfCommunicator() : ConnectGloo(*place, IdentityOf(spec), MeshOf(spec));
}

double MeanOverRanks(double value, Communicator& communicator) {
  Communicator& ranks = communicator.Along(kDataAxes);
  ranks.AllReduce(std::span(&value, 1), Reduction::kSum);
  return value / static_cast<double>(ranks.world());
}

void GatherRankFigures(Communicator& communicator, std::optional<int64_t> waited_ns, RunResult& result) {
  if (communicator.name() != "gloo") return;
  const PackedFigures mine = Pack(result, communicator.refused_connections(), waited_ns);
  std::vector<PackedFigures> all(static_cast<size_t>(communicator.world()));
  communicator.AllGather(reinterpret_cast<const std::byte*>(&mine), reinterpret_cast<std::byte*>(all.data()),
                         sizeof mine);
  int64_t refused = 0;
  for (const PackedFigures& rank : all) {
    refused += rank.refused_connections;
    result.ranks.push_back({rank.host.data(), rank.planned_peak_bytes, rank.rss_peak_bytes});
    result.memory.rss_peak_bytes = std::max(result.memory.rss_peak_bytes, rank.rss_peak_bytes);
    result.memory.device_peak_bytes = std::max(result.memory.device_peak_bytes, rank.device_peak_bytes);
    TakeWorse(rank, result.gpu);
  }
  SayOfRanks("rank_step_ns", all, &PackedFigures::step_ns, 1, result);
  SayOfRanks("rank_p95_ns", all, &PackedFigures::p95_ns, 1, result);
  SayOfRanks("rank_wait_ns", all, &PackedFigures::wait_ns, 0, result);
  if (refused > 0) result.evidence["refused_connections"] = std::to_string(refused);
}

}  // namespace ridgeline::engine
