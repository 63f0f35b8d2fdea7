#include "engine/comm/mesh.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "base/error.h"
#include "run/parallelism.h"

namespace ridgeline::engine {
namespace {

constexpr const char* kAxisNames[kAxisCount] = {"tensor", "context", "shard", "replica", "pipeline"};

MeshAxis AxisAt(size_t i) { return static_cast<MeshAxis>(i); }

}  // namespace

std::string AxesText(MeshAxes axes) {
  if (axes == MeshAxes::All()) return "all";
  std::string text;
  for (size_t i = 0; i < kAxisCount; ++i) {
    if (axes.Has(AxisAt(i))) text += (text.empty() ? "" : "+") + std::string(kAxisNames[i]);
  }
  return text;
}

int64_t Mesh::ranks() const { return std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>()); }

int64_t Mesh::RanksAlong(MeshAxes axes) const {
  int64_t ranks = 1;
  for (size_t i = 0; i < kAxisCount; ++i) ranks *= axes.Has(AxisAt(i)) ? sizes_[i] : 1;
  return ranks;
}

RankGroup Mesh::GroupOf(int64_t rank, MeshAxes axes) const {
  RankGroup group{.first = rank};
  int64_t stride = 1;  // between neighbours along the axis
  for (size_t i = 0; i < kAxisCount; ++i) {
    const int64_t size = sizes_[i];
    if (size > 1 && axes.Has(AxisAt(i))) {
      if (group.ranks == 1) group.stride = stride;
      if (stride != group.ranks * group.stride) {
        throw Error(ErrorKind::kInternal,
                    fmt::format("the axes {} form no group: an axis between them is larger than 1", AxesText(axes)));
      }
      group.ranks *= size;
      group.first -= rank / stride % size * stride;
    }
    stride *= size;
  }
  return group;
}

std::vector<MeshAxes> Mesh::Groupings() const {
  std::vector<MeshAxis> large;
  for (size_t i = 0; i < kAxisCount; ++i) {
    if (sizes_[i] > 1) large.push_back(AxisAt(i));
  }
  std::vector<MeshAxes> groupings;
  if (!large.empty()) groupings.push_back(MeshAxes::All());
  for (size_t first = 0; first < large.size(); ++first) {
    MeshAxes axes;
    for (size_t last = first; last < large.size(); ++last) {
      axes = axes | large[last];
      if (last - first + 1 < large.size()) groupings.push_back(axes);
    }
  }
  return groupings;
}

Mesh MeshOf(const RunSpec& spec) {
  return Mesh({.tensor = spec.tensor_parallel,
               .context = spec.context_parallel,
               .shard = ShardRanks(spec),
               .replica = DataParallelRanks(spec) / ShardRanks(spec),
               .pipeline = spec.pipeline_parallel});
}

}  // namespace ridgeline::engine
