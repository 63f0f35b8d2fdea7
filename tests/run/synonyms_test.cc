#include "run/synonyms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "run/fields.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

std::string MeantByField(const std::string& name) { return Meant(name, SettableNames()); }

TEST(Synonyms, SuggestsOurNameForAnotherFrameworksField) {
  EXPECT_EQ(MeantByField("lr"), ", here 'learning_rate'");
  EXPECT_EQ(MeantByField("tp"), ", here 'tensor_parallel'");
  EXPECT_EQ(MeantByField("dtype"), ", here 'precision'");
  EXPECT_EQ(MeantByField("activation-checkpointing"), ", here 'checkpointing'");
  EXPECT_EQ(MeantByField("Gradient_Accumulation_Steps"), ", here 'grad_accumulation'");
  EXPECT_THAT(MeantByField("dp"), HasSubstr("here 'ranks': data-parallel ranks are all ranks over tensor_parallel"));
  EXPECT_THAT(MeantByField("fsdp"), HasSubstr("here 'shard': `full` shares weights"));
  EXPECT_EQ(Meant("grid", {"name", "matrix"}), ", here 'matrix'");
  EXPECT_EQ(Meant("lr", {"name", "matrix"}), "") << "which is no section";
}

TEST(Synonyms, ASlipOrAnotherCaseIsAnsweredAsBefore) {
  EXPECT_EQ(MeantByField("batch_sise"), ", did you mean 'batch_size'?");
  EXPECT_EQ(MeantByField("Seq_Length"), ", did you mean 'seq_length'?");
}

TEST(Synonyms, SuggestsOurNameForAnotherFrameworksValue) {
  const auto said = [](const char* field, const char* value) -> std::string {
    RunSpec spec;
    const auto problems = SetField(spec, field, Json(value));
    return problems.empty() ? "accepted" : problems.front().message;
  };
  EXPECT_THAT(said("gpu", "H100"), HasSubstr("did you mean 'h100'?"));
  EXPECT_THAT(said("precision", "bfloat16"), HasSubstr("here 'bf16'"));
  EXPECT_THAT(said("precision", "BF16"), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(said("device", "gpu"), HasSubstr("here 'cuda'"));
  EXPECT_EQ(said("model", "llama3-70b"), "accepted");
}

}  // namespace
}  // namespace ridgeline
