// The mesh of a run: its ranks, laid out along named axes. Ranks that differ in one axis alone, or in some axes alone,
// form a group, and each collective is among the ranks of one. Along an axis of size 1, every group is one rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::engine {

// The axes, named by what their ranks share. Successive ranks are neighbours along the first axis that is larger
// than 1.
enum class MeshAxis : uint8_t {
  kTensor,   // the products of each layer
  kContext,  // each sequence
  kShard,    // the batch, and what `shard` splits
  kReplica,  // the batch alone: each has a copy of the same part
  kPipeline  // the layers
};
inline constexpr size_t kAxisCount = 5;

// A set of axes.
class MeshAxes {
 public:
  constexpr MeshAxes() = default;
  // Implicit: an axis is a set of one.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr MeshAxes(MeshAxis axis) : bits_(static_cast<uint8_t>(1U << static_cast<unsigned>(axis))) {}
  static constexpr MeshAxes All() {
    MeshAxes all;
    all.bits_ = (1U << kAxisCount) - 1;
    return all;
  }
  constexpr bool Has(MeshAxis axis) const { return (bits_ & MeshAxes(axis).bits_) != 0; }
  constexpr MeshAxes operator|(MeshAxes other) const {
    other.bits_ = static_cast<uint8_t>(other.bits_ | bits_);
    return other;
  }
  constexpr bool operator==(const MeshAxes&) const = default;

 private:
  uint8_t bits_ = 0;
};
constexpr MeshAxes operator|(MeshAxis a, MeshAxis b) { return MeshAxes(a) | MeshAxes(b); }

// Ranks that differ in these axes alone are data-parallel: each has its own rows of the batch.
inline constexpr MeshAxes kDataAxes = MeshAxis::kShard | MeshAxis::kReplica;

// "tensor", "shard+replica"; "all" for all axes.
std::string AxesText(MeshAxes axes);

// Ranks at equal distances: first, first + stride, and so on.
struct RankGroup {
  int64_t ranks = 1;
  int64_t stride = 1;
  int64_t first = 0;
  int64_t Rank(int64_t place) const { return first + place * stride; }
  int64_t PlaceOf(int64_t rank) const { return (rank - first) / stride; }
  bool operator==(const RankGroup&) const = default;
};

struct MeshSizes {
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t shard = 1;
  int64_t replica = 1;
  int64_t pipeline = 1;
};

class Mesh {
 public:
  // One rank.
  Mesh() = default;
  // REQUIRES: no size is below 1.
  explicit Mesh(const MeshSizes& sizes)
      : sizes_{sizes.tensor, sizes.context, sizes.shard, sizes.replica, sizes.pipeline} {}

  int64_t ranks() const;
  int64_t size(MeshAxis axis) const { return sizes_[static_cast<size_t>(axis)]; }
  // The group of the rank along these axes. Throws Error(kInternal) if its ranks are not at equal distances, because an
  // axis between these axes is larger than 1.
  RankGroup GroupOf(int64_t rank, MeshAxes axes) const;
  // The number of ranks in each group along these axes.
  int64_t RanksAlong(MeshAxes axes) const;
  // The rank's place in its group, from 0.
  int64_t PlaceOf(int64_t rank, MeshAxes axes) const { return GroupOf(rank, axes).PlaceOf(rank); }

  // The different ways to form groups of more than one rank, the group of all ranks first. One element for a mesh of
  // one axis that is larger than 1; none for one rank. Equal meshes have them in the same order.
  std::vector<MeshAxes> Groupings() const;

  bool operator==(const Mesh&) const = default;

 private:
  std::array<int64_t, kAxisCount> sizes_ = {1, 1, 1, 1, 1};
};

// REQUIRES: the spec is canonical and checked.
Mesh MeshOf(const RunSpec& spec);

}  // namespace ridgeline::engine
