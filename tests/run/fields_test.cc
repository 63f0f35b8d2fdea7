#include "run/fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

namespace ridgeline {
namespace {

TEST(Fields, AreSortedUniqueAndDocumented) {
  std::string_view last;
  for (const Field& field : Fields()) {
    EXPECT_LT(last, field.name);
    last = field.name;
    EXPECT_GT(field.help.size(), 10U) << field.name;
    EXPECT_EQ(FindField(field.name), &field);
    EXPECT_EQ(field.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
    if (field.type() == "integer" || field.type() == "number") {
      EXPECT_LT(field.min, field.max) << field.name;
    }
    if (!field.choices.empty()) {
      EXPECT_EQ(field.type(), "text") << field.name;
    }
  }
}

TEST(Settings, AreSortedAndStandInAGroup) {
  std::string_view last;
  for (const Field& setting : Settings()) {
    EXPECT_LT(last, setting.name);
    last = setting.name;
    EXPECT_EQ(FindField(setting.name), &setting);
    EXPECT_EQ(std::count(setting.name.begin(), setting.name.end(), '.'), 1) << setting.name;
    EXPECT_GT(setting.help.size(), 10U) << setting.name;
  }
}

TEST(Settings, InMeasureHaveFlagsLikeTheFieldsThere) {
  EXPECT_EQ(FindField("warmup_steps")->flag(), "--warmup-steps");
  EXPECT_EQ(FindField("measure.refuse_throttled")->flag(), "--refuse-throttled");
  EXPECT_EQ(FindField("checkpoint.every_steps")->flag(), "--checkpoint-every-steps");
}

TEST(Fields, NameEveryMemberOnce) {
  // A RunSpec of distinct members: if two fields shared one, or one were missing, setting all would leave a default.
  std::map<const std::byte*, size_t> members;
  RunSpec spec;
  const auto add = [&](const auto& member) {
    return members.emplace(reinterpret_cast<const std::byte*>(&member), sizeof member).second;
  };
  add(spec.own);
  for (const auto table : {Fields(), Settings()}) {
    for (const Field& field : table) {
      ASSERT_FALSE(field.is_own());
      std::visit(
          [&](const auto& member) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, OwnMember>) {
              EXPECT_TRUE(add(spec.*member)) << field.name;
            }
          },
          field.member);
    }
  }
  // Between members there is only padding. A member without a field would leave a larger gap.
  constexpr std::ptrdiff_t kAlignment = alignof(RunSpec);
  const auto* end = reinterpret_cast<const std::byte*>(&spec);
  for (const auto& [at, bytes] : members) {
    EXPECT_LT(at - end, kAlignment);
    end = at + bytes;
  }
  EXPECT_LT(reinterpret_cast<const std::byte*>(&spec + 1) - end, kAlignment);
}

TEST(Fields, UnknownNamesAreNotFound) {
  for (const char* name : {"", "batch", "batch_sizes", "BATCH_SIZE", "zzz", "aaa", "version"}) {
    EXPECT_EQ(FindField(name), nullptr) << name;
  }
}

TEST(Fields, DefaultsAreWithinTheirOwnLimits) {
  const RunSpec spec;
  for (const Field& field : Fields()) {
    if (const auto* i = std::get_if<int64_t RunSpec::*>(&field.member); i != nullptr && spec.*(*i) != 0) {
      EXPECT_GE(static_cast<double>(spec.*(*i)), field.min) << field.name;
      EXPECT_LE(static_cast<double>(spec.*(*i)), field.max) << field.name;
    }
  }
}

TEST(Fields, WithoutWhatSparesTheLossOnlyTheRestIsLeft) {
  RunSpec spec;
  spec.seed = 7;
  spec.steps = 99;
  spec.ranks = 4;
  spec.learning_rate = 1;
  spec.checkpoint_dir = "there";
  const RunSpec left = Without(spec, Field::kSparesLoss);
  EXPECT_EQ(left.seed, 7);
  EXPECT_EQ(left.learning_rate, 1);
  EXPECT_EQ(left.steps, RunSpec().steps);
  EXPECT_EQ(left.ranks, 1);
  EXPECT_EQ(left.checkpoint_dir, "");
  EXPECT_EQ(Without(spec, Field::kSparesMemory).ranks, 4);
}

TEST(Fields, TextIsForPeople) {
  RunSpec spec;
  spec.batch_size = 8;
  spec.learning_rate = 0.0003;
  spec.tied_head = true;
  EXPECT_EQ(FieldText(spec, *FindField("batch_size")), "8");
  EXPECT_EQ(FieldText(spec, *FindField("learning_rate")), "0.0003");
  EXPECT_EQ(FieldText(spec, *FindField("tied_head")), "true");
  EXPECT_EQ(FieldText(spec, *FindField("precision")), "bf16");
}

}  // namespace
}  // namespace ridgeline
