#include "engine/device/trace.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "base/error.h"
#include "engine/device/layout.h"

namespace ridgeline::engine {
namespace {

struct MixOperands {
  struct {
    Tensor a, b;
  } reads;
  struct {
    Tensor out;
  } writes;
  struct {
    Tensor parts;
  } scratch;
};
struct MixAttrs {
  double share = 0;
};
constexpr BudgetPlace kOfTest = BesideBudget("a test's");
const Op<MixOperands, MixAttrs> kMix{OpDef::Product("mix", kOfTest, nullptr, {})};
const Op<MixOperands, MixAttrs> kOther{OpDef::Pass("other", kOfTest)};
const Op<MixOperands, int> kWithANumber{OpDef::Pass("with_a_number", kOfTest)};

// An op has a row with its kind, or does not compile.
static_assert(!std::is_constructible_v<OpDef, const char*>);
static_assert(!std::is_constructible_v<Op<MixOperands>, const char*>);
static_assert(!std::is_default_constructible_v<Op<MixOperands>>);

TEST(Trace, ACallKeepsItsOperandsByName) {
  Trace trace;
  const Tensor a = trace.Persistent(DType::kF32, 3, 4, Category::kData);
  const Tensor out = trace.Temporary(DType::kBF16, 3, 4, Category::kActivations);
  const Tensor parts = trace.Temporary(DType::kF32, 1, 64, Category::kWorkspace);
  trace.SetLayer(5);
  trace.SetPhase(Phase::kBackward);
  trace.Call(kMix, {{a, {}}, {out}, {parts}}, {.flops = 24, .format = MathFormat::kBF16}, {.share = 0.25});
  const OpCall& call = trace.calls().at(0);
  EXPECT_EQ(call.operands(kMix).reads.a.storage, a.storage);
  EXPECT_FALSE(call.operands(kMix).reads.b.defined());
  EXPECT_EQ(call.operands(kMix).writes.out.dtype, DType::kBF16);
  EXPECT_EQ(call.attrs(kMix).share, 0.25);
  EXPECT_EQ(call.reads().size(), 2U);
  EXPECT_EQ(call.writes().size(), 1U);
  EXPECT_EQ(call.scratch().size(), 1U);
  EXPECT_EQ(call.layer, 5);
  EXPECT_EQ(call.phase, Phase::kBackward);
}

TEST(Trace, BytesAreThoseOfWhatIsReadAndWritten) {
  Trace trace;
  const Tensor a = trace.Persistent(DType::kF32, 3, 4, Category::kData);
  const Tensor parts = trace.Temporary(DType::kF32, 1, 64, Category::kWorkspace);
  trace.Call(kMix, {{a, a}, {a}, {parts}});
  EXPECT_EQ(trace.calls()[0].bytes(), 3 * 48);
  trace.Call(kMix, {{a, {}}, {a}, {parts}}, {.more_bytes = -8});
  EXPECT_EQ(trace.calls()[1].bytes(), 2 * 48 - 8);
}

TEST(Trace, ACallOfAnotherOpIsRefused) {
  Trace trace;
  trace.Call(kMix, {});
  EXPECT_NO_THROW(trace.calls()[0].operands(kMix));
  EXPECT_THROW(trace.calls()[0].operands(kOther), Error);
  EXPECT_THROW(trace.calls()[0].attrs(kOther), Error);
}

TEST(Trace, AttributesOfOneTypeAreReadWhicheverOpTheyAreOf) {
  Trace trace;
  trace.Call(kMix, {}, {}, {.share = 0.25});
  trace.Call(kOther, {}, {}, {.share = 0.5});
  trace.Call(kWithANumber, {}, {}, 7);
  EXPECT_EQ(trace.calls()[0].attrs<MixAttrs>().share, 0.25);
  EXPECT_EQ(trace.calls()[1].attrs<MixAttrs>().share, 0.5);
  EXPECT_THROW(trace.calls()[2].attrs<MixAttrs>(), Error);
}

TEST(Trace, ACostThatTheKindOfTheOpDoesNotHaveIsRefused) {
  Trace trace;
  EXPECT_THROW(trace.Call(kOther, {}, {.flops = 24}), Error);
  EXPECT_THROW(trace.Call(kOther, {}, {.wire_bytes = 8}), Error);
  EXPECT_THROW(trace.Call(kMix, {}, {.wire_bytes = 8}), Error);
  EXPECT_TRUE(trace.calls().empty());
}

TEST(Trace, InputsAreOneTensorAndOnlyWhereAskedFor) {
  Trace trace;
  EXPECT_FALSE(trace.inputs().defined());
  EXPECT_TRUE(trace.storages().empty());
  const Tensor inputs = trace.Inputs();
  EXPECT_EQ(trace.Inputs().storage, inputs.storage);
  EXPECT_EQ(trace.inputs().storage, inputs.storage);
  EXPECT_EQ(inputs.bytes(), static_cast<int64_t>(sizeof(StepInputs)));
  EXPECT_TRUE(trace.storages().at(0).persistent);
}

TEST(Layout, EveryStorageBeginsAtAMultipleOf256) {
  Trace trace;
  const Tensor a = trace.Persistent(DType::kF32, 1, 3, Category::kData);
  const Tensor b = trace.Persistent(DType::kU8, 1, 257, Category::kData);
  const Tensor out = trace.Temporary(DType::kBF16, 1, 1, Category::kActivations);
  const Tensor parts = trace.Temporary(DType::kBF16, 1, 1, Category::kWorkspace);
  trace.Call(kMix, {{a, b}, {out}, {parts}});
  const Layout layout = PlanLayout(trace);
  for (const int64_t offset : layout.offsets) EXPECT_EQ(offset % 256, 0);
  EXPECT_EQ(layout.slab_bytes, 256 + 512 + 256 + 256);
}

}  // namespace
}  // namespace ridgeline::engine
