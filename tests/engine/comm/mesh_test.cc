// The groups of a mesh, and collectives among their ranks: over Gloo, with ranks as threads, and as a virtual rank.
#include "engine/comm/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <set>

#include "engine/comm/collective.h"
#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/tensor/fp16.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum MeshAxis;

std::vector<int64_t> RanksOf(const RankGroup& group) {
  std::vector<int64_t> ranks;
  for (int64_t place = 0; place < group.ranks; ++place) ranks.push_back(group.Rank(place));
  return ranks;
}

TEST(Mesh, ItsFirstAxisHasSuccessiveRanks) {
  const Mesh mesh({.tensor = 2, .shard = 3, .pipeline = 2});
  EXPECT_EQ(mesh.ranks(), 12);
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kTensor)), ElementsAre(8, 9));
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kShard)), ElementsAre(7, 9, 11));
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kPipeline)), ElementsAre(3, 9));
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kContext)), ElementsAre(9));
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kTensor | kShard)), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(RanksOf(mesh.GroupOf(9, kShard | kPipeline)), ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_EQ(mesh.GroupOf(9, MeshAxes::All()), (RankGroup{12, 1, 0}));
  EXPECT_EQ(mesh.PlaceOf(9, kShard), 1);
  EXPECT_THROW(mesh.GroupOf(9, kTensor | kPipeline), Error) << "its ranks are not at equal distances";
}

TEST(Mesh, EachRankIsInOneGroupOfAGrouping) {
  const Mesh mesh({.tensor = 2, .context = 3, .shard = 2, .pipeline = 4});
  const std::vector<MeshAxes> groupings = mesh.Groupings();
  EXPECT_EQ(groupings.size(), 10U);  // runs of four axes
  EXPECT_EQ(groupings.front(), MeshAxes::All());
  for (const MeshAxes axes : groupings) {
    SCOPED_TRACE(AxesText(axes));
    std::set<int64_t> seen;
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      const RankGroup group = mesh.GroupOf(rank, axes);
      EXPECT_EQ(group.ranks, mesh.RanksAlong(axes));
      EXPECT_EQ(group.Rank(group.PlaceOf(rank)), rank);
      for (const int64_t member : RanksOf(group)) EXPECT_EQ(mesh.GroupOf(member, axes), group);
      seen.insert(group.first);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), mesh.ranks() / mesh.RanksAlong(axes));
  }
}

TEST(Mesh, DataParallelRanksAreShardsOfCopies) {
  const Mesh mesh({.tensor = 2, .shard = 2, .replica = 3});
  EXPECT_THAT(RanksOf(mesh.GroupOf(5, kShard)), ElementsAre(5, 7));
  EXPECT_THAT(RanksOf(mesh.GroupOf(5, kReplica)), ElementsAre(1, 5, 9));
  EXPECT_THAT(RanksOf(mesh.GroupOf(5, kDataAxes)), ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_EQ(mesh.PlaceOf(5, kDataAxes), 2);
}

TEST(Mesh, OfASpecHasWhatIsLeftAsCopies) {
  const auto of = [](ShardMode shard, int64_t shard_ranks) {
    RunSpec spec;
    spec.ranks = 12;
    spec.tensor_parallel = 2;
    spec.shard = shard;
    spec.shard_ranks = shard_ranks;
    return MeshOf(spec);
  };
  EXPECT_EQ(of(ShardMode::kNone, 0), Mesh({.tensor = 2, .replica = 6}));
  EXPECT_EQ(of(ShardMode::kFull, 0), Mesh({.tensor = 2, .shard = 6}));
  EXPECT_EQ(of(ShardMode::kOptimizer, 2), Mesh({.tensor = 2, .shard = 2, .replica = 3}));
}

TEST(Mesh, OneAxisLargerThanOneGivesOneGrouping) {
  EXPECT_THAT(Mesh({.shard = 8}).Groupings(), ElementsAre(MeshAxes::All()));
  EXPECT_TRUE(Mesh().Groupings().empty());
}

float ValueFor(int64_t rank, int64_t i) { return static_cast<float>((int64_t{8} << rank) + i % 5); }

// Every collective over a group, with sums in fp32 that no other set of ranks gives.
void ExpectCollectivesAmong(Communicator& group, const std::vector<int64_t>& members, int64_t part) {
  const auto n = std::ssize(members);
  ASSERT_EQ(group.world(), n);
  const int64_t own = members[static_cast<size_t>(group.rank())];
  std::vector<float> mine(static_cast<size_t>(part));
  for (int64_t i = 0; i < part; ++i) mine[static_cast<size_t>(i)] = ValueFor(own, i);
  std::vector<float> gathered(static_cast<size_t>(part * n));
  group.AllGather(reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(gathered.data()),
                  part * 4);
  for (int64_t i = 0; i < part * n; ++i) {
    ASSERT_EQ(gathered[static_cast<size_t>(i)], ValueFor(members[static_cast<size_t>(i / part)], i % part)) << i;
  }
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMean}) {
    const auto expected = [&](int64_t i) {
      float sum = 0;
      for (const int64_t member : members) sum += ValueFor(member, i);
      return reduction == Reduction::kSum ? sum : sum / static_cast<float>(n);
    };
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      const auto at = [&](const std::vector<std::byte>& values, int64_t i) {
        if (dtype == DType::kF32) return reinterpret_cast<const float*>(values.data())[i];
        const uint16_t bits = reinterpret_cast<const uint16_t*>(values.data())[i];
        return dtype == DType::kBF16 ? Bf16Value(bits) : FromFp16(bits);
      };
      std::vector<std::byte> full(static_cast<size_t>(part * n * SizeOf(dtype)));
      for (int64_t i = 0; i < part * n; ++i) {
        if (dtype == DType::kF32) reinterpret_cast<float*>(full.data())[i] = ValueFor(own, i);
        if (dtype == DType::kBF16) reinterpret_cast<uint16_t*>(full.data())[i] = Bf16Bits(ValueFor(own, i));
        if (dtype == DType::kF16) reinterpret_cast<uint16_t*>(full.data())[i] = ToFp16(ValueFor(own, i));
      }
      std::vector<std::byte> all = full;
      group.ReduceScatter(full.data(), dtype, part, reduction);
      const float unit = dtype == DType::kF32 ? 0x1p-23F : dtype == DType::kBF16 ? 0x1p-8F : 0x1p-11F;
      const float relative = unit * static_cast<float>(n);  // a rounding each
      for (int64_t i = group.rank() * part; i < (group.rank() + 1) * part; ++i) {
        ASSERT_NEAR(at(full, i), expected(i), relative * expected(i));
      }
      group.AllReduce(all.data(), dtype, part * n, reduction);
      for (int64_t i = 0; i < part * n; ++i) {
        ASSERT_NEAR(at(all, i), expected(i), relative * expected(i)) << i;
      }
    }
  }
  int64_t largest = own;
  group.AllReduce(std::span(&largest, 1), Reduction::kMax);
  ASSERT_EQ(largest, *std::ranges::max_element(members));
}

void OverGloo(const Mesh& mesh, const std::function<void(Communicator&)>& fn) {
  const ReservedPort port;
  const auto errors = testing::OnThreads(mesh.ranks(), [&](int64_t rank) {
    fn(*ConnectGloo(testing::PlaceOf(rank, mesh.ranks(), port), {{"spec", "the same"}}, mesh));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Mesh, CollectivesOverGlooAreAmongTheRightRanks) {
  for (const Mesh& mesh : {Mesh({.tensor = 2, .shard = 2}), Mesh({.tensor = 2, .shard = 3, .pipeline = 2})}) {
    OverGloo(mesh, [&](Communicator& all) {
      for (const int64_t part : {3, 4096}) {
        for (const MeshAxes axes : mesh.Groupings()) {
          SCOPED_TRACE(AxesText(axes));
          Communicator& group = all.Along(axes);
          EXPECT_EQ(&group, &all.Along(axes));
          ExpectCollectivesAmong(group, RanksOf(mesh.GroupOf(all.rank(), axes)), part);
        }
      }
      EXPECT_EQ(&all.Along(kTensor | kShard | kPipeline), &all);
      ExpectCollectivesAmong(all.Along(kContext), {all.rank()}, 3);
      all.Barrier();
    });
  }
}

// Segments of several rings share a connection between two ranks.
TEST(Mesh, LongCollectivesOfSeveralGroupsDoNotMix) {
  const Mesh mesh({.tensor = 2, .shard = 2});
  OverGloo(mesh, [&](Communicator& all) {
    for (int round = 0; round < 2; ++round) {
      for (const MeshAxes axes : mesh.Groupings()) {
        ExpectCollectivesAmong(all.Along(axes), RanksOf(mesh.GroupOf(all.rank(), axes)), (1 << 20) + 12);
      }
    }
  });
}

TEST(Mesh, AVirtualRanksGroupsHaveItsOwnData) {
  const Mesh mesh({.tensor = 4, .shard = 2});
  const auto all = MakeVirtualCommunicator(mesh);
  for (const auto& [axes, ranks] : {std::pair<MeshAxes, size_t>{kTensor, 4}, {kShard, 2}, {MeshAxes::All(), 8}}) {
    ExpectCollectivesAmong(all->Along(axes), std::vector<int64_t>(ranks, 0), 5);
  }
}

TEST(Mesh, ARankThatKeepsItsGroupWaitingIsNamedByAll) {
  const Mesh mesh({.tensor = 2, .shard = 2});
  const ReservedPort port;
  std::latch others(3);
  const auto errors = testing::OnThreads(4, [&](int64_t rank) {
    const auto c = ConnectGloo(testing::PlaceOf(rank, 4, port, 4), {}, mesh);
    c->Barrier();
    if (rank == 3) return others.wait();
    try {
      // Ranks 0 and 1 are ahead of rank 2 by collectives of another group, and wait for it afterwards.
      if (rank < 2) {
        for (int i = 0; i < 5; ++i) c->Along(kTensor).Barrier();
      }
      c->Along(rank == 2 ? kTensor : kShard).Barrier();
      if (rank == 0) c->Along(kShard).Barrier();
    } catch (...) {
      others.count_down();
      throw;
    }
  });
  for (const size_t rank : {0, 1, 2}) {
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("rank 3 on "), HasSubstr("did not answer within 4 s"))) << rank;
  }
}

// The collectives' kernels, each of which also lands: an OpRunner looks at every call by itself.
CpuKernelTable OfFlightsAtOnce() {
  CpuKernelTable table;
  AddCollectivesCpu(table);
  for (auto& [op, kernel] : table) {
    if (op->kind == OpKind::kLanding) kernel.run = [](const OpCall&, const CpuRun&, KernelState*) {};
    if (op->kind != OpKind::kTakeOff) continue;
    kernel.run = [](const OpCall& call, const CpuRun& run, KernelState* state) {
      CpuKernelTable begins;
      AddCollectivesCpu(begins);
      begins.at(call.op).run(call, run, state);
      run.collectives->Wait(CollectiveAttrsOf(call).flight);
    };
  }
  return table;
}

// The calls of every collective along an axis, run by the CPU's kernels.
TEST(Mesh, OpsSumOverTheRanksOfTheirAxis) {
  constexpr int64_t kPart = 5;
  const Mesh mesh({.tensor = 2, .shard = 2});
  OverGloo(mesh, [&](Communicator& all) {
    for (const MeshAxis axis : {kTensor, kShard}) {
      CpuKernelTable table = OfFlightsAtOnce();
      OpRunner runner;
      CollectiveQueue queue(all);
      runner.collectives = &queue;
      Flights flights(runner.trace, mesh);
      std::vector<Tensor> sums;
      const auto tensor = [&](DType dtype, int64_t count, float value) {
        return runner.Make(dtype, 1, count, std::vector<float>(static_cast<size_t>(count), value));
      };
      const auto own = static_cast<float>(int64_t{1} << all.rank());
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
        sums.push_back(tensor(dtype, 2 * kPart, own));
        flights.Land(flights.AllReduce(axis, sums.back(), Reduction::kSum));
        const Tensor full = tensor(dtype, 2 * kPart, own);
        sums.push_back(tensor(dtype, kPart, 100));
        flights.Land(flights.ReduceScatter(axis, full, sums.back(), false, Reduction::kSum));
      }
      sums.push_back(tensor(DType::kF32, 1, own));
      flights.SumOverRanks(axis, sums.back());
      const Tensor largest = tensor(DType::kF32, 3, own);
      flights.MaxOverRanks(axis, largest);
      runner.Run(table);
      const RankGroup group = mesh.GroupOf(all.rank(), axis);
      const auto sum = static_cast<float>((int64_t{1} << group.Rank(0)) + (int64_t{1} << group.Rank(1)));
      for (const Tensor& tensor : sums) EXPECT_THAT(runner.Read(tensor), ::testing::Each(sum)) << AxesText(axis);
      EXPECT_THAT(runner.Read(largest), ::testing::Each(static_cast<float>(int64_t{1} << group.Rank(1))));
    }
  });
}

TEST(Mesh, AGroupOfOneRankRecordsNothing) {
  Trace trace;
  Flights flights(trace, Mesh({.tensor = 4}));
  const Tensor full = trace.Persistent(DType::kF32, 1, 8, Category::kData);
  const Tensor one = trace.Persistent(DType::kF32, 1, 1, Category::kData);
  flights.Land(flights.AllReduce(kShard, full, Reduction::kSum));
  flights.Land(flights.AllGather(kShard, full, full));
  flights.SumOverRanks(kShard, one);
  flights.MaxOverRanks(kShard, full);
  EXPECT_TRUE(trace.calls().empty());
  const Tensor other = trace.Persistent(DType::kF32, 1, 8, Category::kData);
  EXPECT_THROW(flights.AllGather(kShard, other, full), Error);
  EXPECT_THROW(flights.ReduceScatter(kShard, full, other, false), Error);
  flights.Land(flights.AllReduce(kTensor, full));
  EXPECT_EQ(trace.calls().size(), 2U);
  EXPECT_EQ(CollectiveAttrsOf(trace.calls()[0]).axes, MeshAxes::All()) << "the group has all ranks";
}

TEST(Mesh, CollectivesSayTheirAxesAndTheirBytes) {
  Trace trace;
  Flights flights(trace, Mesh({.tensor = 4, .shard = 2}));
  const Tensor full = trace.Persistent(DType::kBF16, 1, 64, Category::kData);
  flights.AllReduce(kTensor, full, Reduction::kSum);
  flights.AllReduce(kShard, full, Reduction::kSum);
  flights.AllReduce(kTensor | kShard, full, Reduction::kSum);
  EXPECT_EQ(trace.calls()[0].cost.wire_bytes, 2.0 * 128 * 3 / 4);
  EXPECT_EQ(trace.calls()[1].cost.wire_bytes, 2.0 * 128 / 2);
  EXPECT_EQ(trace.calls()[2].cost.wire_bytes, 2.0 * 128 * 7 / 8);
  EXPECT_EQ(AxesText(CollectiveAttrsOf(trace.calls()[0]).axes), "tensor");
  EXPECT_EQ(AxesText(CollectiveAttrsOf(trace.calls()[1]).axes), "shard");
  EXPECT_EQ(AxesText(CollectiveAttrsOf(trace.calls()[2]).axes), "all");
  const Tensor narrow = trace.Persistent(DType::kBF16, 1, 16, Category::kData);
  EXPECT_THROW(flights.ReduceScatter(kTensor, full, narrow, true), Error) << "bf16 is not accumulated";
  EXPECT_THROW(flights.AllReduce(kTensor, full, Reduction::kMax), Error);
}

}  // namespace
}  // namespace ridgeline::engine
