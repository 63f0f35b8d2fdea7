// One suite for every communicator: what each collective writes on each rank.
#include "engine/comm/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "tests/engine/comm/ranks.h"

namespace ridgeline::engine {
namespace {

struct Kind {
  std::string name;
  int64_t world = 1;
};

class EveryCommunicator : public ::testing::TestWithParam<Kind> {
 protected:
  // Calls fn on every rank that has a process.
  static void Run(const std::function<void(Communicator&)>& fn) {
    if (GetParam().name == "gloo") {
      testing::WithGloo(GetParam().world, fn);
    } else {
      fn(*(GetParam().name == "self" ? MakeSelfCommunicator()
                                     : MakeVirtualCommunicator(Mesh({.shard = GetParam().world}))));
    }
  }
  // The rank whose data a rank is assumed to have sent.
  static int64_t Sender(int64_t rank) { return GetParam().name == "virtual" ? 0 : rank; }
};

// A rank's bytes. They differ between ranks and between blocks. Made of whole blocks, since sanitizers are slow.
std::vector<std::byte> BytesOf(int64_t rank, int64_t size) {
  constexpr int64_t kBlock = 4096;
  std::vector<std::byte> block(kBlock);
  for (int64_t i = 0; i < kBlock; ++i)
    block[static_cast<size_t>(i)] = static_cast<std::byte>((rank * 31 + i * 7) % 251);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    std::copy_n(block.begin(), std::min(kBlock, size - begin), bytes.begin() + begin);
    bytes[static_cast<size_t>(begin)] = static_cast<std::byte>(begin / kBlock % 253);
  }
  return bytes;
}

float ValueOf(int64_t rank, int64_t i) { return static_cast<float>((rank + 1) * ((i * 37) % 101)) / 8.0F; }

// Nothing, less than a segment, a segment and a bit, and more segments than are sent at once.
std::vector<int64_t> SizesFor(int64_t world) {
  return {0, 1, 4, 12, 4096, (1 << 20) + 4, 5 * (1 << 20) / std::max<int64_t>(world - 1, 1) / 4 * 4 + 4};
}

TEST_P(EveryCommunicator, KnowsItself) {
  std::mutex mutex;
  int64_t ranks = 0;
  Run([&](Communicator& c) {
    EXPECT_EQ(c.name(), GetParam().name);
    EXPECT_EQ(c.world(), GetParam().world);
    EXPECT_EQ(c.ranks_here(), GetParam().name == "gloo" ? GetParam().world : 1);
    const std::lock_guard lock(mutex);
    ranks += c.rank() + 1;
  });
  EXPECT_EQ(ranks, GetParam().name == "gloo" ? GetParam().world * (GetParam().world + 1) / 2 : 1);
}

TEST_P(EveryCommunicator, AllGatherHasEveryRanksPartInOrder) {
  Run([&](Communicator& c) {
    for (const int64_t bytes : SizesFor(c.world())) {
      for (const bool in_place : {false, true}) {
        std::vector<std::byte> full(static_cast<size_t>(bytes * c.world()), std::byte{0xee});
        const std::vector<std::byte> mine = BytesOf(c.rank(), bytes);
        std::byte* place = full.data() + c.rank() * bytes;
        if (in_place) std::copy(mine.begin(), mine.end(), place);
        c.AllGather(in_place ? place : mine.data(), full.data(), bytes);
        for (int64_t rank = 0; rank < c.world(); ++rank) {
          const std::vector<std::byte> theirs = BytesOf(Sender(rank), bytes);
          EXPECT_TRUE(bytes == 0 || std::memcmp(full.data() + rank * bytes, theirs.data(), theirs.size()) == 0)
              << bytes << " bytes of rank " << rank << " at rank " << c.rank();
        }
      }
    }
  });
}

TEST_P(EveryCommunicator, ReduceScatterLeavesTheMeanOfThisRanksPart) {
  Run([&](Communicator& c) {
    for (const int64_t bytes : SizesFor(c.world())) {
      const int64_t part = bytes / 4;
      std::vector<float> full(static_cast<size_t>(part * c.world()));
      for (size_t i = 0; i < full.size(); ++i) full[i] = ValueOf(c.rank(), static_cast<int64_t>(i));
      c.ReduceScatterMean(full.data(), part);
      float worst = 0;
      for (int64_t i = c.rank() * part; i < (c.rank() + 1) * part; ++i) {
        double mean = 0;
        for (int64_t rank = 0; rank < c.world(); ++rank) {
          mean += static_cast<double>(ValueOf(Sender(rank), i)) / static_cast<double>(c.world());
        }
        worst = std::max(worst, std::abs(full[static_cast<size_t>(i)] - static_cast<float>(mean)) /
                                    (1 + std::abs(static_cast<float>(mean))));
      }
      EXPECT_LE(worst, 1e-6F) << part << " elements of rank " << c.rank();
    }
  });
}

TEST_P(EveryCommunicator, AllReduceGivesEveryRankTheSameBits) {
  std::mutex mutex;
  std::vector<std::vector<double>> sums;
  Run([&](Communicator& c) {
    std::vector<double> values = {0.1 * static_cast<double>(c.rank() + 1), -1.0 / static_cast<double>(c.rank() + 3)};
    std::vector<int64_t> largest = {c.rank(), -c.rank(), int64_t{1} << 60};
    float single = 0.25F;
    c.AllReduce(values, Reduction::kSum);
    c.AllReduce(largest, Reduction::kMax);
    c.AllReduce(std::span(&single, 1), Reduction::kSum);
    EXPECT_EQ(largest, (std::vector<int64_t>{Sender(c.world() - 1), 0, int64_t{1} << 60}));
    EXPECT_EQ(single, 0.25F * static_cast<float>(c.world()));
    const std::lock_guard lock(mutex);
    sums.push_back(values);
  });
  double expected = 0;
  for (int64_t rank = 0; rank < GetParam().world; ++rank) expected += 0.1 * static_cast<double>(Sender(rank) + 1);
  for (const auto& sum : sums) {
    EXPECT_EQ(sum, sums.front());
    EXPECT_NEAR(sum[0], expected, 1e-12);
  }
}

TEST_P(EveryCommunicator, NobodyPassesABarrierBeforeAllAreThere) {
  std::mutex mutex;
  int64_t arrived = 0;
  Run([&](Communicator& c) {
    for (int64_t round = 1; round <= 20; ++round) {
      {
        const std::lock_guard lock(mutex);
        ++arrived;
      }
      c.Barrier();
      const int64_t ranks = c.name() == "gloo" ? c.world() : 1;
      {
        const std::lock_guard lock(mutex);
        EXPECT_GE(arrived, round * ranks);
      }
      c.Barrier();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, EveryCommunicator,
                         ::testing::Values(Kind{"self", 1}, Kind{"virtual", 8}, Kind{"gloo", 2}, Kind{"gloo", 3},
                                           Kind{"gloo", 5}),
                         [](const auto& info) { return info.param.name + std::to_string(info.param.world); });

}  // namespace
}  // namespace ridgeline::engine
