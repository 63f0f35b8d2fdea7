// Every collective that a trace can hold, on emulated devices, compared with the CPU's results over Gloo: eager and
// captured, in any order that the streams' events allow.
#include "engine/comm/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/engine/comm/nccl/device_ranks.h"

namespace ridgeline::engine {
namespace {

using testing::kDouble;
using testing::Program;

// A step with every collective, flights that overlap, and work before, between and after them. Returns the tensors to
// compare.
std::vector<Tensor> Record(Program& program, int64_t part, int64_t rank, int64_t world) {
  Flights flights(program.trace, Mesh({.shard = world}));
  std::vector<Tensor> results;
  auto seed = static_cast<uint32_t>(100 * rank);
  const auto normal = [&](DType dtype, int64_t elements) {
    return program.Make(dtype, 1, elements, NormalFloats(elements, ++seed));
  };
  const auto twice = [&](Tensor values) {
    program.trace.Call(kDouble, {{values}, {values}});
    results.push_back(values);
  };
  const Tensor own = normal(DType::kF32, part);
  const Tensor gathered = program.Empty(DType::kF32, 1, part * world);
  twice(own);
  const Flight gather = flights.AllGather(MeshAxis::kShard, own, gathered);
  const Tensor meanwhile = normal(DType::kF32, part);
  twice(meanwhile);
  const Tensor whole = normal(DType::kF32, part * world);
  twice(whole);
  const Flight all = flights.AllReduce(MeshAxis::kShard, whole);
  twice(meanwhile);
  flights.Land(gather);
  twice(gathered);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool accumulate : {false, true}) {
      const Tensor sum = normal(DType::kF32, part * world);
      twice(sum);
      results.pop_back();  // the flight overwrites it
      const Tensor mean = normal(dtype, part);
      const Flight reduce = flights.ReduceScatter(MeshAxis::kShard, sum, mean, accumulate);
      twice(meanwhile);
      flights.Land(reduce);
      if (dtype == DType::kF32) twice(mean);
      results.push_back(mean);
    }
  }
  flights.Land(all);
  twice(whole);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {  // in place
    const Tensor full = normal(dtype, part * world);
    flights.Land(flights.AllGather(MeshAxis::kShard, full.Cols(rank * part, part), full));
    results.push_back(full);
  }
  const Tensor scalar = normal(DType::kF32, 1);
  twice(scalar);
  flights.SumOverRanks(MeshAxis::kShard, scalar);
  twice(scalar);
  const Tensor few = normal(DType::kF32, 5);
  twice(few);
  flights.MaxOverRanks(MeshAxis::kShard, few);
  twice(few);
  return results;
}

std::vector<std::vector<float>> OnCpu(Communicator& ranks, int64_t part) {
  Program program;
  const std::vector<Tensor> results = Record(program, part, ranks.rank(), ranks.world());
  program.UseCpu(ranks);
  program.Step();
  return program.Read(results);
}

// NCCL adds in its own order. An fp32 result is within an ulp or two of the largest addend; a bf16 result may round to
// the next number.
void ExpectClose(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& want,
                 const std::vector<Tensor>& tensors) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t t = 0; t < want.size(); ++t) {
    const float relative = tensors[t].dtype == DType::kF32 ? 2e-6F : 0x1p-7F;
    for (size_t i = 0; i < want[t].size(); ++i) {
      ASSERT_NEAR(got[t][i], want[t][i], relative * (1 + std::abs(want[t][i]))) << "element " << i << " of " << t;
    }
  }
}

class Collectives : public ::testing::TestWithParam<std::tuple<int, int, int>> {};  // world, part, seed

TEST_P(Collectives, GiveWhatTheCpusGiveEagerAndCaptured) {
  const auto [world, part, seed] = GetParam();
  cuda_on_cpu::ResetMachine({.devices = world, .seed = static_cast<uint64_t>(seed)});
  const auto errors = testing::OnDevices(world, 60, [&, part = part](Communicator& ranks) {
    const auto want = OnCpu(ranks, part);
    Program program;
    const std::vector<Tensor> results = Record(program, part, ranks.rank(), ranks.world());
    program.UseDevice(ranks.rank(), MakeCudaCollectives(ranks, FakeNccl));
    program.Step();
    const auto eager = program.Read(results);
    ExpectClose(eager, want, results);
    for (int step = 0; step < 3; ++step) {
      program.Step();
      EXPECT_EQ(program.Read(results), eager) << "replay " << step;
    }
  });
  EXPECT_THAT(errors, ::testing::Each(""));
  EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
  EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         ::testing::Combine(::testing::Values(2, 4), ::testing::Values(1, 7, 64, 2051),
                                            ::testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return "Ranks" + std::to_string(std::get<0>(info.param)) + "Part" +
                                  std::to_string(std::get<1>(info.param)) + "Seed" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST(Collectives, AVirtualRankGetsItsOwnDataAsOnTheCpu) {
  cuda_on_cpu::ResetMachine({.seed = 1});
  const auto ranks = MakeVirtualCommunicator(Mesh({.shard = 4}));
  const auto want = OnCpu(*ranks, 35);
  Program program;
  const std::vector<Tensor> results = Record(program, 35, 0, 4);
  program.UseDevice(0, MakeCudaCollectives(*ranks));
  for (int step = 0; step < 3; ++step) {
    program.Step();
    EXPECT_EQ(program.Read(results), want) << step;
  }
}

TEST(Collectives, ASingleRankHasNone) { EXPECT_EQ(MakeCudaCollectives(*MakeSelfCommunicator()), nullptr); }

// Sums along each axis of a mesh, in both dtypes, and a mean that is accumulated. Values are exact in bf16.
std::vector<Tensor> RecordAlongAxes(Program& program, const Mesh& mesh, int64_t rank) {
  constexpr int64_t kPart = 70;
  Flights flights(program.trace, mesh);
  std::vector<Tensor> results;
  const auto tensor = [&](DType dtype, int64_t count) {
    return program.Make(dtype, 1, count, std::vector<float>(static_cast<size_t>(count), static_cast<float>(1 << rank)));
  };
  for (const MeshAxis axis : {MeshAxis::kTensor, MeshAxis::kShard}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      results.push_back(tensor(dtype, 2 * kPart));
      const Flight all = flights.AllReduce(axis, results.back(), Reduction::kSum);
      results.push_back(tensor(dtype, kPart));
      const Flight part = flights.ReduceScatter(axis, tensor(dtype, 2 * kPart), results.back(), false, Reduction::kSum);
      flights.Land(all);
      flights.Land(part);
      results.push_back(tensor(dtype, kPart));
      flights.Land(flights.ReduceScatter(axis, tensor(DType::kF32, 2 * kPart), results.back(), true));
    }
    results.push_back(tensor(DType::kF32, 1));
    flights.SumOverRanks(axis, results.back());
    results.push_back(tensor(DType::kF32, 3));
    flights.MaxOverRanks(axis, results.back());
    const Tensor own = tensor(DType::kBF16, kPart);
    results.push_back(program.Empty(DType::kBF16, 1, 2 * kPart));
    flights.Land(flights.AllGather(axis, own, results.back()));
  }
  return results;
}

TEST(Collectives, AreAmongTheRanksOfTheirAxis) {
  const Mesh mesh({.tensor = 2, .shard = 2});
  cuda_on_cpu::ResetMachine({.devices = 4, .seed = 1});
  const auto errors = testing::OnDevices(mesh, 60, [&](Communicator& ranks) {
    Program program;
    const std::vector<Tensor> results = RecordAlongAxes(program, mesh, ranks.rank());
    program.UseDevice(ranks.rank(), MakeCudaCollectives(ranks, FakeNccl));
    Program on_cpu;
    RecordAlongAxes(on_cpu, mesh, ranks.rank());
    on_cpu.UseCpu(ranks);
    on_cpu.Step();
    const auto want = on_cpu.Read(results);
    const auto other = static_cast<float>(1 << (ranks.rank() ^ 1)) + static_cast<float>(1 << ranks.rank());
    EXPECT_THAT(want.front(), ::testing::Each(other)) << "the sum along the first axis";
    for (int step = 0; step < 2; ++step) {
      program.Step();
      EXPECT_EQ(program.Read(results), want) << step;
    }
  });
  EXPECT_THAT(errors, ::testing::Each(""));
  EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
}

TEST(Collectives, GroupsOfAVirtualRankGetItsOwnDataAsOnTheCpu) {
  cuda_on_cpu::ResetMachine({.seed = 1});
  const auto ranks = MakeVirtualCommunicator(Mesh({.tensor = 2, .shard = 2}));
  Program on_cpu;
  const std::vector<Tensor> results = RecordAlongAxes(on_cpu, ranks->mesh(), 0);
  on_cpu.UseCpu(*ranks);
  on_cpu.Step();
  Program program;
  RecordAlongAxes(program, ranks->mesh(), 0);
  program.UseDevice(0, MakeCudaCollectives(*ranks));
  for (int step = 0; step < 2; ++step) {
    program.Step();
    EXPECT_EQ(program.Read(results), on_cpu.Read(results)) << step;
  }
}

}  // namespace
}  // namespace ridgeline::engine
