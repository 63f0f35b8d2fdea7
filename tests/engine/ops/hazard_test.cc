// The check of hazards finds them.
#include "tests/engine/ops/hazard.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>

namespace ridgeline::engine {
namespace {

struct CopyOperands {
  struct {
    Tensor from;
  } reads;
  struct {
    Tensor to;
  } writes;
};
const Op<CopyOperands> kCopy{OpDef::Pass("copy", BesideBudget("a test's"))};

std::array<std::byte, 8> slab;
const int64_t kOffsets[] = {0, 4};

void Hold(void (*kernel)(std::byte* from, std::byte* to)) {
  slab.fill(std::byte{7});
  const OpCall call(kCopy, {{{0, DType::kU8, 1, 2, 2, 0}}, {{1, DType::kU8, 1, 2, 2, 0}}}, {}, {});
  RunOnWhatItDeclares(call, kOffsets, slab, [&] { kernel(slab.data(), slab.data() + 4); });
}
void Good(std::byte* from, std::byte* to) { std::memcpy(to, from, 2); }
void WritesBeyond(std::byte* from, std::byte* to) { std::memcpy(to, from, 3); }
void WritesWhatItReads(std::byte* from, std::byte* to) {
  Good(from, to);
  from[0] = std::byte{1};
}
void ReadsBeyond(std::byte* from, std::byte* to) { std::memcpy(to, from + 1, 2); }
void ReadsItsResult(std::byte* from, std::byte* to) {
  to[0] = static_cast<std::byte>(static_cast<int>(to[0]) + static_cast<int>(from[0]));
  to[1] = from[1];
}
void LeavesAPart(std::byte* from, std::byte* to) { to[0] = from[0]; }

TEST(Hazard, AKernelThatKeepsToItsCallPasses) {
  Hold(Good);
  for (const std::byte byte : slab) EXPECT_EQ(byte, std::byte{7});
}

TEST(Hazard, AnUndeclaredWriteIsFound) {
  EXPECT_FATAL_FAILURE(Hold(WritesBeyond), "copy changed byte 6 ");
  EXPECT_FATAL_FAILURE(Hold(WritesWhatItReads), "copy changed byte 0 ");
}

TEST(Hazard, AnUndeclaredReadIsFound) {
  EXPECT_FATAL_FAILURE(Hold(ReadsBeyond), "copy made bytes 4 ");
  EXPECT_FATAL_FAILURE(Hold(ReadsItsResult), "copy made bytes 4 ");
}

TEST(Hazard, AnUnwrittenResultIsFound) { EXPECT_FATAL_FAILURE(Hold(LeavesAPart), "copy made bytes 4 "); }

}  // namespace
}  // namespace ridgeline::engine
