#include "engine/memory/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace ridgeline::engine {
namespace {

void ExpectNoOverlap(const std::vector<Lifetime>& lives, const MemoryPlan& plan) {
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % kSlabAlignment, 0);
    EXPECT_LE(plan.offsets[a] + lives[a].bytes, plan.slab_bytes);
    for (size_t b = a + 1; b < lives.size(); ++b) {
      const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      const bool apart =
          plan.offsets[a] + lives[a].bytes <= plan.offsets[b] || plan.offsets[b] + lives[b].bytes <= plan.offsets[a];
      ASSERT_TRUE(!together || apart || lives[a].bytes == 0 || lives[b].bytes == 0) << a << " and " << b;
    }
  }
}

TEST(Planner, OneLifetimeIsThePeak) {
  const std::vector<Lifetime> lives = {{100, 0, 3}};
  const MemoryPlan plan = PlanMemory(lives, 4);
  EXPECT_EQ(plan.slab_bytes, kSlabAlignment);
  EXPECT_EQ(plan.live_peak_bytes, kSlabAlignment);
}

TEST(Planner, StoragesThatNeverMeetShareTheirPlace) {
  const std::vector<Lifetime> lives = {{1024, 0, 1}, {1024, 2, 3}, {1024, 4, 4}};
  const MemoryPlan plan = PlanMemory(lives, 5);
  EXPECT_EQ(plan.slab_bytes, 1024);
  ExpectNoOverlap(lives, plan);
}

TEST(Planner, LastCallOfOneAndFirstOfAnotherOverlap) {
  const std::vector<Lifetime> lives = {{64, 0, 2}, {64, 2, 4}};
  const MemoryPlan plan = PlanMemory(lives, 5);
  EXPECT_EQ(plan.slab_bytes, 2 * kSlabAlignment);
  EXPECT_EQ(plan.peak_call, 2);
}

TEST(Planner, NestedLivesStackWithoutHoles) {
  std::vector<Lifetime> lives;
  for (int32_t layer = 0; layer < 50; ++layer) {
    lives.push_back({1000 + 64 * (layer % 7), 2 * layer, 199 - 2 * layer});  // saved
    lives.push_back({5000, 2 * layer, 2 * layer + 1});                       // scratch of the forward pass
    lives.push_back({7000, 198 - 2 * layer, 199 - 2 * layer});               // scratch of the backward pass
  }
  const MemoryPlan plan = PlanMemory(lives, 200);
  ExpectNoOverlap(lives, plan);
  EXPECT_EQ(plan.slab_bytes, plan.live_peak_bytes);
}

// Lives of a few calls, of hundreds, and of nearly all, as in the micro-steps of a model.
TEST(Planner, LongProgramsNeverOverlap) {
  constexpr int32_t kCalls = 20'000;
  std::mt19937 random(11);
  std::vector<Lifetime> lives;
  for (int i = 0; i < 3000; ++i) {
    const int32_t longest = i % 100 == 0 ? kCalls : i % 5 == 0 ? 700 : 9;
    const auto first = static_cast<int32_t>(random() % kCalls);
    const auto last = std::min(first + static_cast<int32_t>(random() % static_cast<uint32_t>(longest)), kCalls - 1);
    lives.push_back({static_cast<int64_t>(random() % 5000), first, last});
  }
  const MemoryPlan plan = PlanMemory(lives, kCalls);
  ExpectNoOverlap(lives, plan);
  EXPECT_GE(plan.slab_bytes, plan.live_peak_bytes);
}

TEST(Planner, RandomProgramsNeverOverlapAndRepeatExactly) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const int32_t calls = 50 + static_cast<int32_t>(random() % 100);
    std::vector<Lifetime> lives;
    for (int i = 0; i < 120; ++i) {
      const auto first = static_cast<int32_t>(random() % static_cast<uint32_t>(calls));
      const auto last = std::min<int32_t>(calls - 1, first + static_cast<int32_t>(random() % 20));
      lives.push_back({static_cast<int64_t>(random() % 100'000), first, last});
    }
    const MemoryPlan plan = PlanMemory(lives, calls);
    ExpectNoOverlap(lives, plan);
    EXPECT_GE(plan.slab_bytes, plan.live_peak_bytes);
    EXPECT_LE(static_cast<double>(plan.slab_bytes), 1.15 * static_cast<double>(plan.live_peak_bytes));
    EXPECT_EQ(PlanMemory(lives, calls).offsets, plan.offsets);
  }
}

// Compares with the definition: each storage, the longest life first, takes the lowest offset that is free all its
// life.
TEST(Planner, EachTakesTheLowestOffsetThatIsFree) {
  std::mt19937 random(3);
  std::vector<Lifetime> lives;
  for (int i = 0; i < 300; ++i) {
    const auto first = static_cast<int32_t>(random() % 90);
    lives.push_back({static_cast<int64_t>(1 + random() % 9000), first, first + static_cast<int32_t>(random() % 10)});
  }
  std::stable_sort(lives.begin(), lives.end(), [](const Lifetime& a, const Lifetime& b) {
    return std::pair(a.last - a.first, a.bytes) > std::pair(b.last - b.first, b.bytes);
  });
  lives.push_back({int64_t{1} << 30, 0, 0});  // so large that the first order is good enough
  lives.back().last = 99;
  std::rotate(lives.begin(), lives.end() - 1, lives.end());
  const MemoryPlan plan = PlanMemory(lives, 100);
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < lives.size(); ++i) {
    const auto is_free = [&](int64_t offset) {
      for (size_t other = 0; other < i; ++other) {
        if (lives[other].first > lives[i].last || lives[i].first > lives[other].last) continue;
        if (offset < offsets[other] + AlignUp(lives[other].bytes) && offsets[other] < offset + AlignUp(lives[i].bytes))
          return false;
      }
      return true;
    };
    std::vector<int64_t> candidates = {0};
    for (size_t other = 0; other < i; ++other) candidates.push_back(offsets[other] + AlignUp(lives[other].bytes));
    std::sort(candidates.begin(), candidates.end());
    offsets.push_back(*std::find_if(candidates.begin(), candidates.end(), is_free));
  }
  EXPECT_EQ(plan.offsets, offsets);
}

TEST(Planner, EmptyStoragesTakeNothing) {
  const std::vector<Lifetime> lives = {{0, 0, 5}, {64, 0, 5}, {0, 2, 3}};
  EXPECT_EQ(PlanMemory(lives, 6).slab_bytes, kSlabAlignment);
}

}  // namespace
}  // namespace ridgeline::engine
