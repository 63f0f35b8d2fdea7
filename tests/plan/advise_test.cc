// Advice, held against what the planner and the clock say of the same points.
#include "plan/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "plan/memory.h"

namespace ridgeline {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

Device ShippedDevice(const std::string& name) {
  return FindDevice(name, {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "devices"});
}

Advice AdviceFor(const char* model, const char* device, int64_t ranks, int64_t seq_length) {
  return Advise({FindPreset(model), ranks, seq_length}, ShippedDevice(device));
}

std::string Says(const Advice& advice, const std::string& topic) {
  for (const Advice::Sentence& sentence : advice.sentences) {
    if (sentence.topic == topic) return sentence.text;
  }
  return {};
}

TEST(Advise, TheQuickestIsTheQuickestOfThoseThatFit) {
  const Advice advice = AdviceFor("llama-1b", "p5", 8, 2048);
  ASSERT_FALSE(advice.fitting.empty());
  const auto rate = [](const AdvisedPoint& point) { return point.step.steady_tokens_per_s(point.spec); };
  for (const AdvisedPoint& point : advice.fitting) {
    EXPECT_LE(rate(point), rate(advice.fitting.front()));
    EXPECT_LE(point.peak_bytes, SlabLimitOn(point.spec, ShippedDevice("p5")).bytes);
    EXPECT_EQ(point.spec.ranks, 8);
  }
  for (const char* topic : {"fit", "checkpointing", "batch", "precision", "bound", "GPUs", "memory", "cost"}) {
    EXPECT_NE(Says(advice, topic), "") << topic;
  }
  EXPECT_THAT(Says(advice, "fit"), HasSubstr("It fits without activation checkpointing: in bf16 up to batch"));
  EXPECT_THAT(Says(advice, "cost"), AllOf(HasSubstr("55.04 USD an hour"), HasSubstr("2026-08-26")));
  for (const Advice::Sentence& sentence : advice.sentences) {
    EXPECT_EQ(sentence.basis, sentence.topic == "fit" ? "planned" : "predicted, extrapolated");
  }
}

TEST(Advise, SaysWhatNeedsCheckpointingAndWhatDoesNotFit) {
  EXPECT_THAT(Says(AdviceFor("stack-32b", "p5", 8, 8192), "fit"),
              HasSubstr("It needs activation checkpointing: in bf16 batch 1 takes"));
  const Advice none = AdviceFor("llama-64b", "h100", 1, 2048);
  EXPECT_TRUE(none.fitting.empty());
  EXPECT_THAT(Says(none, "fit"),
              AllOf(HasSubstr("It does not fit in bf16"), HasSubstr("of 84.3 GB; shared by 16 GPUs it takes")));
  EXPECT_EQ(none.sentences.size(), 1U) << "of what does not fit there is nothing else to say";
}

TEST(Advise, TriesTheFormatsThatTheDeviceMultiplies) {
  EXPECT_THAT(Says(AdviceFor("llama-350m", "b200", 1, 1024), "precision"),
              AllOf(HasSubstr("nvfp4"), HasSubstr("mxfp8"), HasSubstr("x bf16)")));
  const std::string a100 = Says(AdviceFor("llama-350m", "a100", 1, 1024), "precision");
  EXPECT_THAT(a100, HasSubstr("bf16"));
  EXPECT_EQ(a100.find("fp8"), std::string::npos);
}

TEST(Advise, OfALoneGpuSaysNothingOfMoreThanItsDomain) {
  const Advice advice = AdviceFor("llama-124m", "h100", 8, 512);
  EXPECT_EQ(Says(advice, "GPUs"), "") << "16 of them need a network, and it has none";
  EXPECT_EQ(Says(advice, "cost"), "");
}

}  // namespace
}  // namespace ridgeline
