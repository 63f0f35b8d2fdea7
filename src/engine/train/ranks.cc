#include "engine/train/ranks.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/version.h"
#include "engine/comm/gloo/gloo_communicator.h"
#include "engine/comm/gloo/rank_environment.h"
#include "run/fields.h"

namespace ridgeline {
namespace {

std::map<std::string, std::string> IdentityOf(const RunSpec& spec) {
  std::map<std::string, std::string> identity;
  for (const Field& field : Fields()) identity[std::string(field.name)] = FieldText(spec, field);
  identity["trainer"] = fmt::format("{} {}", kVersion, GitCommit());
  return identity;
}

// As it travels from rank to rank.
struct PackedFigures {
  std::array<char, 64> host{};
  int64_t planned_peak_bytes = 0;
  int64_t rss_peak_bytes = 0;
  int64_t refused_connections = 0;
};

}  // namespace

std::unique_ptr<Communicator> ConnectRanks(const RunSpec& spec) {
  if (spec.device == "meta") return MakeSelfCommunicator();
  if (spec.communicator == "virtual") return MakeVirtualCommunicator(spec.ranks);
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
  return spec.ranks == 1 ? MakeSelfCommunicator() : ConnectGloo(*place, IdentityOf(spec));
}

double MeanOverRanks(double value, Communicator& communicator) {
  communicator.AllReduce(std::span(&value, 1), Reduction::kSum);
  return value / static_cast<double>(communicator.world());
}

void GatherRankFigures(Communicator& communicator, RunResult& result) {
  if (communicator.name() != "gloo") return;
  PackedFigures mine;
  const std::string& host = result.environment.at("hostname");
  std::copy_n(host.begin(), std::min(host.size(), mine.host.size() - 1), mine.host.begin());
  mine.planned_peak_bytes = result.memory.planned_peak_bytes;
  mine.rss_peak_bytes = result.memory.rss_peak_bytes;
  mine.refused_connections = communicator.refused_connections();
  std::vector<PackedFigures> all(static_cast<size_t>(communicator.world()));
  communicator.AllGather(reinterpret_cast<const std::byte*>(&mine), reinterpret_cast<std::byte*>(all.data()),
                         sizeof mine);
  int64_t refused = 0;
  for (const PackedFigures& rank : all) {
    refused += rank.refused_connections;
    result.ranks.push_back({rank.host.data(), rank.planned_peak_bytes, rank.rss_peak_bytes});
    result.memory.rss_peak_bytes = std::max(result.memory.rss_peak_bytes, rank.rss_peak_bytes);
  }
  if (refused > 0) result.evidence["refused_connections"] = std::to_string(refused);
}

}  // namespace ridgeline
