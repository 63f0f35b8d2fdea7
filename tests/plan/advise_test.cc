// Advice, held against what the planner and the clock say of the same points.
#include "plan/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "plan/memory.h"
#include "predict/memory.h"
#include "run/spec.h"

namespace ridgeline {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

Device ShippedDevice(const std::string& name) {
  return FindDevice(name, {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "devices"});
}

Advice AdviceFor(const char* model, const char* device, int64_t ranks, int64_t seq_length) {
  return Advise({.model = {{"model", model}}, .ranks = ranks, .seq_length = seq_length}, ShippedDevice(device));
}

std::string Says(const Advice& advice, const std::string& topic) {
  for (const Advice::Sentence& sentence : advice.sentences) {
    if (sentence.topic == topic) return sentence.text;
  }
  return {};
}

TEST(Advise, TheQuickestIsTheQuickestOfThoseThatFit) {
  const Advice advice = AdviceFor("llama-350m", "p5", 8, 4096);
  ASSERT_FALSE(advice.fitting.empty());
  const auto rate = [](const AdvisedPoint& point) { return point.step.steady_tokens_per_s(point.spec); };
  for (const AdvisedPoint& point : advice.fitting) {
    EXPECT_LE(rate(point), rate(advice.fitting.front()));
    EXPECT_LE(point.peak_bytes, SlabLimitOn(point.spec, ShippedDevice("p5")).bytes);
    EXPECT_EQ(point.spec.ranks, 8);
  }
  for (const char* topic : {"fit", "quickest", "checkpointing", "batch", "bound", "GPUs", "memory", "cost"}) {
    EXPECT_NE(Says(advice, topic), "") << topic;
  }
  EXPECT_THAT(Says(advice, "fit"), HasSubstr("without activation checkpointing: bf16 up to batch"));
  EXPECT_THAT(Says(advice, "cost"), AllOf(HasSubstr("55.04 USD an hour"), HasSubstr("2026-08-26")));
  for (const Advice::Sentence& sentence : advice.sentences) {
    const bool is_planned = sentence.topic == "fit" || sentence.topic == "state";
    EXPECT_EQ(sentence.basis, is_planned ? "planned" : "predicted, extrapolated");
  }
}

TEST(Advise, SaysWhatNeedsCheckpointing) {
  const Advice advice = AdviceFor("stack-32b", "p5", 8, 8192);
  EXPECT_THAT(Says(advice, "fit"), AllOf(HasSubstr("It needs activation checkpointing: batch 1 takes"),
                                         HasSubstr("with full it fits: bf16 up to batch 3 a GPU")));
  EXPECT_EQ(Says(advice, "checkpointing"), "") << "which would say the same again, or something else";
}

// GPUs are the fewest, not the nearest power of two.
TEST(Advise, SaysWhatWouldLetAModelFit) {
  const Advice none = AdviceFor("llama-8b", "h100", 1, 1024);
  EXPECT_TRUE(none.fitting.empty());
  EXPECT_THAT(Says(none, "fit"), HasSubstr("It does not fit: "));
  std::string remedies;
  for (const Advice::Sentence& sentence : none.sentences) {
    if (sentence.topic == "remedy") remedies += sentence.text + "\n";
  }
  EXPECT_THAT(remedies, AllOf(HasSubstr("With bf16 state (state_precision: bf16) it takes"),
                              HasSubstr("With no clipping of gradients (grad_clip: 0) it takes"),
                              HasSubstr("A GPU of which CUDA shows 1")));
  const size_t shared = remedies.find("Shared by ");
  ASSERT_NE(shared, std::string::npos) << remedies;
  const int64_t ranks = std::stoll(remedies.substr(shared + 10));
  const auto bytes = [](int64_t gpus) {
    std::vector<Problem> problems;
    return PredictMemory(BuildSpec({{"model", "llama-8b"},
                                    {"precision", "bf16"},
                                    {"checkpointing", "full"},
                                    {"seq_length", 1024},
                                    {"grad_clip", 1},
                                    {"ranks", gpus},
                                    {"shard", gpus > 1 ? "full" : "none"},
                                    {"device", "meta"},
                                    {"gpu", "h100"},
                                    {"batch_size", 1}},
                                   problems))
        .planned_peak_bytes;
  };
  const SlabLimit limit = SlabLimitOn({}, ShippedDevice("h100"));
  EXPECT_LE(bytes(ranks), limit.bytes);
  EXPECT_GT(bytes(ranks - 1), limit.bytes);
}

TEST(Advise, OwnsWhatTheStateCosts) {
  AdviceAbout about{.model = {{"model", "llama-10m"}}, .ranks = 1, .seq_length = 128};
  about.state_precision = "bf16";
  about.grad_clip = 0;
  EXPECT_EQ(Says(Advise(about, ShippedDevice("a100")), "state"), "") << "there is nothing to leave out";
}

TEST(Advise, TriesTheFormatsThatTheDeviceMultiplies) {
  EXPECT_THAT(Says(AdviceFor("llama-10m", "b200", 1, 256), "quickest"),
              AllOf(HasSubstr("nvfp4"), HasSubstr("mxfp8"), HasSubstr("x bf16)")));
  const std::string a100 = Says(AdviceFor("llama-10m", "a100", 1, 256), "quickest");
  EXPECT_THAT(a100, HasSubstr("bf16"));
  EXPECT_EQ(a100.find("fp8"), std::string::npos);
}

TEST(Advise, OfALoneGpuSaysNothingOfMoreThanItsDomain) {
  const Advice advice = AdviceFor("llama-10m", "h100", 8, 256);
  EXPECT_EQ(Says(advice, "GPUs"), "") << "16 of them need a network, and it has none";
  EXPECT_EQ(Says(advice, "cost"), "");
}

}  // namespace
}  // namespace ridgeline
