#include "run/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/presets.h"
#include "run/step_figures.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RunSpec Good(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  EXPECT_THAT(problems, IsEmpty()) << values << ": " << problems.front().message;
  return spec;
}

std::vector<Problem> Wrong(const Json& values) {
  std::vector<Problem> problems;
  BuildSpec(values, problems);
  return problems;
}

// The only problem of `values`.
Problem Only(const Json& values) {
  const auto problems = Wrong(values);
  EXPECT_EQ(problems.size(), 1U) << values;
  return problems.empty() ? Problem{} : problems.front();
}

Json Tiny() { return {{"family", "llama"}, {"layers", 2}, {"hidden", 64}, {"heads", 4}, {"ffn", 128}, {"vocab", 256}}; }

Json With(Json values, const std::string& name, const Json& value) {
  values[name] = value;
  return values;
}

TEST(Spec, FillsInWhatDependsOnOtherFields) {
  const RunSpec spec = Good(Tiny());
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.head_dim, 16);
  EXPECT_EQ(spec.state_precision, "fp32");
  EXPECT_EQ(spec.model, "llama-2x64");
  EXPECT_EQ(spec.rope_theta, 500000);
  EXPECT_EQ(NameOf(Good(With(Tiny(), "checkpointing", "full/1")).checkpointing), "full");
}

TEST(Spec, FamiliesHaveTheirOwnDefaults) {
  const RunSpec stack = Good({{"model", "stack-1b"}});
  EXPECT_EQ(stack.dropout, 0.1);
  EXPECT_EQ(stack.optimizer, OptimizerKind::kAdam);
  EXPECT_EQ(stack.learning_rate, 1e-4);
  EXPECT_EQ(stack.weight_decay, 0);
  EXPECT_EQ(stack.state_precision, "bf16");
  EXPECT_EQ(Good({{"model", "stack-1b"}, {"dropout", 0}}).dropout, 0);
  EXPECT_EQ(Good({{"model", "stack-1b"}, {"precision", "fp32"}}).state_precision, "fp32");
  EXPECT_EQ(Good({{"model", "stack-1b"}, {"precision", "tf32"}}).state_precision, "fp32");
  EXPECT_TRUE(Good({{"model", "gpt-10m"}}).tied_head);
}

TEST(Spec, CanonicalizingTwiceChangesNothing) {
  for (const char* model : {"llama-25m", "gpt-10m", "stack-3b", "llama-32b"}) {
    RunSpec spec = Good({{"model", model}});
    const std::string once = EncodeSpec(spec);
    Canonicalize(spec);
    EXPECT_EQ(EncodeSpec(spec), once);
  }
}

TEST(Spec, APresetAndItsShapeAreTheSamePoint) {
  const Json shape = {{"family", "llama"}, {"layers", 8}, {"hidden", 384},  {"heads", 6},
                      {"kv_heads", 2},     {"ffn", 1024}, {"vocab", 32000}, {"tied_head", true}};
  EXPECT_EQ(PointId(Good(shape)), PointId(Good({{"model", "llama-25m"}})));
  EXPECT_NE(PointId(Good(With(shape, "ffn", 1025))), PointId(Good({{"model", "llama-25m"}})));
}

Json OfName(const std::string& model) { return {{"model", model}, {"trainer", "mine"}}; }

TEST(Spec, AnotherTrainersModelMayBeOnlyAName) {
  for (const char* name :
       {"meta-llama/Llama-3.1-8B", "/data/models/x", "qwen3-8b-instruct", "a \"b\" \xc3\xa9", "llama-32x4096"}) {
    const RunSpec spec = Good(OfName(name));
    EXPECT_EQ(spec.model, name);
    EXPECT_EQ(spec.family, ModelFamily::kOther);
    EXPECT_EQ(spec.layers, 0) << "nobody knows";
    EXPECT_EQ(spec.rope_theta, 0);
    const std::string text = EncodeSpec(spec);
    const RunSpec back = DecodeSpec(ParseJson(text, "spec"), "spec");
    EXPECT_EQ(back.model, name);
    EXPECT_EQ(EncodeSpec(back), text);
    for (const char* unknown : {"layers", "kv_heads", "vocab", "rope_theta", "tied_head"}) {
      EXPECT_FALSE(ParseJson(text, "spec").contains(unknown)) << unknown;
    }
  }
  EXPECT_NE(PointId(Good(OfName("a"))), PointId(Good(OfName("b"))));
  const RunSpec shaped = Good(With(With(OfName("a"), "layers", 4), "heads", 8));
  EXPECT_EQ(shaped.layers, 4);
  EXPECT_EQ(shaped.kv_heads, 0) << "that nobody said";
  EXPECT_EQ(DecodeSpec(ParseJson(EncodeSpec(shaped), "spec"), "spec").model, "a");
  const RunSpec plain = Good(OfName("a"));
  for (const char* field : {"layers", "vocab", "parameters", "flops_per_token", "experts", "tied_head"}) {
    EXPECT_EQ(FieldText(plain, *FindField(field)), "") << field;
  }
  EXPECT_EQ(FieldText(Good({{"model", "llama-25m"}}), *FindField("experts")), "0");
  EXPECT_EQ(FieldText(Good({{"model", "llama-25m"}}), *FindField("parameters")), "");
}

TEST(Spec, AModelThatIsOnlyANameIsBoundedAndNoOption) {
  for (const std::string& name : {std::string(), std::string(1025, 'x'), std::string("a\nb"), std::string("a\x1b[31m"),
                                  std::string("--flag"), std::string("a\0b", 3)}) {
    EXPECT_THAT(Only(OfName(name)).message, HasSubstr("model is a name or a path: one line of 1 to 1024 bytes"))
        << name;
  }
  EXPECT_EQ(
      Only(With(OfName("x"), "family", "llama")).message,
      "family is \"llama\", but the model \"x\" is not a preset and has no known family: leave out one of the two");
  EXPECT_EQ(Only({{"family", "other"}, {"trainer", "mine"}}).message,
            "model is not given; family other needs its name");
  EXPECT_THAT(Only({{"family", "other"}}).message, HasSubstr("family other is of other trainers"));
  EXPECT_THAT(Only({{"model", "my-own"}}).message, HasSubstr("unknown model 'my-own'"));
}

TEST(Spec, FieldsOfOtherTrainersModelsAreRefusedForOurs) {
  for (const char* field : {"parameters", "active_parameters", "flops_per_token"}) {
    EXPECT_THAT(Only({{"model", "llama-25m"}, {field, 5}}).message,
                HasSubstr(std::string(field) + " is of other trainers' models"));
    const RunSpec said = Good(With(OfName("llama-25m"), field, 5));
    EXPECT_EQ(said.model, "llama-25m");
    EXPECT_NE(PointId(said), PointId(Good(OfName("llama-25m"))));
  }
}

TEST(Spec, AMixtureOfExpertsIsWhole) {
  const Json dense = With(Tiny(), "trainer", "mine");
  const Json mixed = With(With(With(dense, "experts", 8), "experts_per_token", 2), "expert_ffn", 32);
  EXPECT_EQ(Good(mixed).model, "llama-2x64-8x32");
  EXPECT_THAT(Only(With(mixed, "experts_per_token", 9)).message, HasSubstr("experts_per_token 9 is more than the 8"));
  EXPECT_THAT(Only(With(mixed, "experts_per_token", 0)).message, HasSubstr("experts_per_token is not given"));
  EXPECT_THAT(Only(With(mixed, "experts", 0)).message, HasSubstr("go with experts, and there are none"));
  EXPECT_THAT(Only(With(mixed, "family", "qwen2")).message, HasSubstr("qwen2 has no experts"));
  EXPECT_THAT(Only(With(mixed, "trainer", "ridgeline")).message, HasSubstr("ridgeline trains no mixture of experts"));
}

TEST(Spec, EveryFieldChangesTheId) {
  const RunSpec base = Good({{"model", "llama-25m"}});
  for (const Field& field : Fields()) {
    RunSpec changed = base;
    FieldValue value = ValueOf(changed, field);
    std::visit(
        [&](auto& v) {
          using Value = std::remove_reference_t<decltype(v)>;
          if constexpr (std::is_same_v<Value, std::string>) {
            v += "x";
          } else if constexpr (std::is_same_v<Value, bool>) {
            v = !v;
          } else {
            v += 1;
          }
        },
        value);
    if (!SetValue(changed, field, value)) {  // it has fixed values
      std::vector<std::string> choices = ChoicesOf(field);
      if (choices.empty()) choices = {"full"};
      const bool is_last = ValueOf(base, field) == FieldValue(choices.back());
      EXPECT_TRUE(SetValue(changed, field, is_last ? choices.front() : choices.back())) << field.name;
    }
    EXPECT_NE(PointId(changed), PointId(base)) << field.name;
  }
}

TEST(Spec, TheEncodingIsSortedJsonOnOneLineWithAVersion) {
  const std::string text = EncodeSpec(Good({{"model", "llama-25m"}, {"data", "a \"b\"\n\xc3\xa9"}}));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json document = ParseJson(text, "spec");
  EXPECT_EQ(document.at("version"), kRunSpecVersion);
  EXPECT_EQ(document.at("data"), "a \"b\"\n\xc3\xa9");
  const auto said = std::count_if(Fields().begin(), Fields().end(), [](const Field& f) {
    return f.unsaid.empty() || (f.Has(Field::kOfShape) && !f.Has(Field::kOfHarness));
  });
  EXPECT_EQ(document.size(), static_cast<size_t>(said) + 1);
  std::string last;
  for (const auto& [key, value] : document.items()) {  // nlohmann sorts; so must the text
    EXPECT_GT(text.find('"' + key + "\":"), last.empty() ? 0 : text.find('"' + last + "\":"));
    last = key;
  }
  std::string appended = "x";
  AppendSpec(Good({{"model", "llama-25m"}}), appended);
  EXPECT_EQ(appended, "x" + EncodeSpec(Good({{"model", "llama-25m"}})));
}

TEST(Spec, AFieldsTextIsItsPartOfTheEncoding) {
  for (const char* precision : {"bf16", "fp8"}) {
    const RunSpec spec = Good({{"model", "llama-25m"}, {"precision", precision}});
    const std::string whole = EncodeSpec(spec);
    for (const Field& field : Fields()) {
      std::string part;
      EXPECT_EQ(AppendField(spec, field, part),
                whole.find("\"" + std::string(field.name) + "\":") != std::string::npos);
      EXPECT_THAT(whole, HasSubstr(part));
    }
  }
}

// The encoding decides every id: a change here orphans every stored result.
TEST(Spec, TheIdOfAKnownPointNeverChanges) {
  const RunSpec spec = Good({{"model", "llama-10m"}});
  EXPECT_EQ(EncodeSpec(spec),
            R"({"batch_size":1,"beta1":0.9,"beta2":0.95,"checkpointing":"none","communicator":"self",)"
            R"("data":"synthetic","device":"cpu","dropout":0,"epsilon":1e-08,"family":"llama","ffn":704,)"
            R"("grad_accumulation":1,"grad_clip":0,"head_dim":64,"heads":4,"hidden":256,"kv_heads":2,"layers":8,)"
            R"("learning_rate":3e-04,"learning_rate_min":0,"lr_warmup_steps":0,"model":"llama-10m","norm_eps":1e-05,)"
            R"("optimizer":"adamw","positions":0,"precision":"bf16","ranks":1,"repeats":1,"rope_theta":5e+05,)"
            R"("schedule":"constant","seed":1234,"seq_length":512,"shard":"none","state_precision":"fp32","steps":5,)"
            R"("tied_head":true,"version":1,"vocab":16384,"warmup_steps":2,"weight_decay":0.1})");
  EXPECT_EQ(PointId(spec), "8ebb16fae8afc5f441baec66535d8b71");
  EXPECT_EQ(PointId(spec), Hex(Hash(EncodeSpec(spec))));
}

TEST(Spec, PrimaryWeightsAreUnsaidUntilTheyAreQuantized) {
  const Json fp8 = {{"model", "llama-25m"}, {"precision", "fp8"}};
  EXPECT_EQ(PointId(Good(With(fp8, "primary_weights", "high_precision"))), PointId(Good(fp8)));
  const RunSpec quantized = Good(With(fp8, "primary_weights", "quantized"));
  EXPECT_NE(PointId(quantized), PointId(Good(fp8)));
  EXPECT_EQ(DecodeSpec(ParseJson(EncodeSpec(quantized), "spec"), "spec").primary_weights, "quantized");
}

Json OnRanks(int64_t ranks, const Json& more) {
  Json values = Tiny();
  values["ranks"] = ranks;
  values.update(more);
  return values;
}

// A mixture of 8 experts, of another trainer.
Json Mixture(int64_t ranks, const Json& more) {
  Json values =
      OnRanks(ranks, {{"trainer", "torchtitan"}, {"experts", 8}, {"experts_per_token", 2}, {"expert_ffn", 64}});
  values.update(more);
  return values;
}

TEST(Spec, HowRanksShareAModelIsUnsaidUntilTheyDo) {
  const RunSpec plain = Good(OnRanks(8, Json::object()));
  EXPECT_EQ(PointId(Good(OnRanks(8, {{"tensor_parallel", 1},
                                     {"pipeline_parallel", 1},
                                     {"context_parallel", 1},
                                     {"expert_parallel", 1},
                                     {"virtual_pipeline", 1},
                                     {"sequence_parallel", false}}))),
            PointId(plain));
  EXPECT_EQ(EncodeSpec(plain).find("parallel"), std::string::npos);
  EXPECT_EQ(plain.sequence_parallel, std::nullopt);
}

TEST(Spec, SequenceParallelGoesWithTensorParallelUnlessItIsSaid) {
  const auto back = [](const RunSpec& spec) { return DecodeSpec(ParseJson(EncodeSpec(spec), "spec"), "spec"); };
  const RunSpec standard = Good(OnRanks(8, {{"tensor_parallel", 2}}));
  const RunSpec with = Good(OnRanks(8, {{"tensor_parallel", 2}, {"sequence_parallel", true}}));
  const RunSpec without = Good(OnRanks(8, {{"tensor_parallel", 2}, {"sequence_parallel", false}}));
  EXPECT_EQ(standard.sequence_parallel, true);
  EXPECT_EQ(PointId(standard), PointId(with));
  EXPECT_NE(PointId(without), PointId(with));
  for (const RunSpec& spec : {standard, without}) {
    EXPECT_EQ(back(spec).sequence_parallel, spec.sequence_parallel);
    EXPECT_EQ(PointId(back(spec)), PointId(spec));
  }
  EXPECT_EQ(FieldText(without, *FindField("sequence_parallel")), "false");
  EXPECT_EQ(ParallelWords(standard), "TP 2");
  EXPECT_EQ(ParallelWords(without), "TP 2, no SP");
  EXPECT_EQ(
      ParallelWords(Good(Mixture(
          32, {{"pipeline_parallel", 4}, {"context_parallel", 2}, {"expert_parallel", 8}, {"virtual_pipeline", 2}}))),
      "PP 4, CP 2, EP 8, VP 2");
  EXPECT_EQ(ParallelWords(Good(OnRanks(8, Json::object()))), "");
}

TEST(Spec, RanksThatCannotBeSplitAreRefusedAtWhatDoesNotDivideThem) {
  const auto at = [](int64_t ranks, const Json& more) { return Only(OnRanks(ranks, more)); };
  const Problem third = at(64, {{"tensor_parallel", 4}, {"context_parallel", 3}});
  EXPECT_EQ(third.field, "context_parallel");
  EXPECT_EQ(third.message, "context_parallel: 3 does not divide ranks: 64");
  EXPECT_EQ(at(8, {{"tensor_parallel", 4}, {"pipeline_parallel", 4}}).message,
            "tensor_parallel 4 x pipeline_parallel 4 x context_parallel 1 do not divide ranks: 8");
  EXPECT_EQ(at(1, {{"tensor_parallel", 2}}).field, "tensor_parallel");
  EXPECT_EQ(at(8, {{"tensor_parallel", 4}, {"pipeline_parallel", 4}}).field, "pipeline_parallel");
  EXPECT_EQ(Only(Mixture(16, {{"pipeline_parallel", 4}, {"expert_parallel", 8}})).message,
            "expert_parallel: 8 does not divide the 4 ranks of a stage of the pipeline");
  EXPECT_EQ(Only(Mixture(16, {{"expert_parallel", 16}})).message,
            "expert_parallel: 16 does not divide the 8 experts of a layer");
  EXPECT_THAT(at(8, {{"expert_parallel", 8}}).message, HasSubstr("expert_parallel: 8 needs experts, and "));
  EXPECT_EQ(Good({{"model", "some-moe"}, {"trainer", "torchtitan"}, {"ranks", 8}, {"expert_parallel", 8}}).experts, 0)
      << "nobody knows its shape";
  EXPECT_THAT(at(8, {{"virtual_pipeline", 2}}).message, HasSubstr("needs a pipeline"));
  EXPECT_THAT(at(8, {{"sequence_parallel", true}}).message, HasSubstr("tensor_parallel above 1"));
  EXPECT_THAT(at(8, {{"tensor_parallel", 0}}).message, HasSubstr("between 1 and"));
}

TEST(Spec, GroupsOfRanksThatShareWhatIsSplitDivideTheRanks) {
  const RunSpec groups = Good(OnRanks(64, {{"shard", "full"}, {"shard_ranks", 8}}));
  EXPECT_EQ(ShardRanks(groups), 8);
  EXPECT_EQ(ParallelWords(groups), "shards of 8");
  const RunSpec plain = Good(OnRanks(64, {{"shard", "full"}}));
  EXPECT_EQ(ShardRanks(plain), 64);
  EXPECT_EQ(PointId(Good(OnRanks(64, {{"shard", "full"}, {"shard_ranks", 64}}))), PointId(plain)) << "all of them";
  EXPECT_EQ(EncodeSpec(plain).find("shard_ranks"), std::string::npos);
  EXPECT_EQ(ShardRanks(Good(OnRanks(64, {{"shard", "none"}}))), 1);
  EXPECT_EQ(ShardRanks(Good(OnRanks(64, {{"shard", "optimizer"}, {"tensor_parallel", 4}, {"shard_ranks", 8}}))), 8);
  EXPECT_EQ(Only(OnRanks(64, {{"shard", "full"}, {"shard_ranks", 24}})).message,
            "shard_ranks: 24 does not divide the 64 data-parallel ranks");
  EXPECT_THAT(Only(OnRanks(64, {{"shard_ranks", 8}})).message, HasSubstr("but shard is none"));
}

TEST(Spec, TheEngineSaysWhatItCannotDoYet) {
  EXPECT_THAT(BeyondTheEngine(Good(OnRanks(8, {{"shard", "full"}, {"shard_ranks", 4}}))), IsEmpty());
  const auto groups = BeyondTheEngine(Good(OnRanks(8, {{"shard", "full"}, {"shard_ranks", 1}})));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].message, "shard_ranks: 1 splits nothing, but shard is full; use shard: none");
  EXPECT_THAT(BeyondTheEngine(Good(OnRanks(8, Json::object()))), IsEmpty());
  const auto beyond = BeyondTheEngine(Good(OnRanks(8, {{"tensor_parallel", 2}, {"pipeline_parallel", 2}})));
  ASSERT_EQ(beyond.size(), 1U);
  EXPECT_EQ(beyond[0].field, "pipeline_parallel");
  EXPECT_EQ(beyond[0].message,
            "ridgeline-train does not split a model this way yet, so pipeline_parallel must be 1, not 2: name another "
            "trainer");
}

TEST(Spec, AStepsTokensAreThoseOfDataParallelRanks) {
  const Json more = {{"batch_size", 4}, {"seq_length", 128}, {"grad_accumulation", 2}, {"vocab", 256}};
  const auto split = [&](const Json& ways) {
    Json values = more;
    values.update(ways);
    return Good(OnRanks(64, values));
  };
  const RunSpec whole = split(Json::object());
  EXPECT_EQ(DataParallelRanks(whole), 64);
  EXPECT_EQ(TokensAStep(whole), 4 * 128 * 2 * 64);
  const RunSpec shared = split({{"tensor_parallel", 4}, {"pipeline_parallel", 2}, {"context_parallel", 2}});
  EXPECT_EQ(DataParallelRanks(shared), 4);
  EXPECT_EQ(TokensAStep(shared), 4 * 128 * 2 * 4);
  EXPECT_EQ(DataParallelRanks(Good(Mixture(64, {{"expert_parallel", 8}}))), 64) << "experts take no ranks";
  // A rank's part of a step's work, whose sum over all ranks is that of its tokens.
  EXPECT_DOUBLE_EQ(ModelFlops(shared).model_causal * 64 / 4, ModelFlops(whole).model_causal);
  EXPECT_DOUBLE_EQ(ModelFlops(shared, 8).model_causal, ModelFlops(shared).model_causal * 2);
}

TEST(Spec, PrimaryWeightsThatCannotBeQuantizedAreRefused) {
  const auto refusal = [](Json values) {
    values.update({{"model", "llama-25m"}, {"primary_weights", "quantized"}});
    std::vector<Problem> problems;
    BuildSpec(values, problems);
    return problems.empty() ? "" : problems.front().message;
  };
  EXPECT_THAT(refusal({{"precision", "bf16"}}), HasSubstr("precision bf16 quantizes no weights"));
  EXPECT_THAT(refusal({{"precision", "fp16"}}), HasSubstr("fp8, mxfp8 and nvfp4 do"));
  EXPECT_THAT(refusal({{"precision", "fp8"}, {"ranks", 2}, {"shard", "full"}}),
              HasSubstr("shard full gathers bf16 weights"));
  for (const char* precision : {"fp8", "mxfp8", "nvfp4"}) {
    EXPECT_EQ(refusal({{"precision", precision}, {"ranks", 2}, {"shard", "optimizer"}}), "");
  }
}

TEST(Spec, ASettingIsNoPartOfThePoint) {
  const RunSpec plain = Good({{"model", "llama-10m"}});
  const RunSpec saving =
      Good({{"model", "llama-10m"}, {"checkpoint", {{"dir", "/ck"}, {"every_steps", 7}, {"keep", 3}}}});
  EXPECT_EQ(saving.checkpoint_dir, "/ck");
  EXPECT_EQ(saving.checkpoint_every_steps, 7);
  EXPECT_EQ(saving.checkpoint_keep, 3);
  EXPECT_EQ(PointId(saving), PointId(plain));
  EXPECT_EQ(EncodePoint(saving), EncodeSpec(plain));
  EXPECT_EQ(EncodePoint(plain), EncodeSpec(plain));
}

TEST(Spec, SettingsAreEncodedInTheirSortedPlaceAndDecoded) {
  const RunSpec saving = Good({{"model", "llama-10m"}, {"checkpoint", {{"dir", "ck"}, {"every_steps", 7}}}});
  const std::string text = EncodeSpec(saving);
  EXPECT_THAT(text, HasSubstr(R"("beta2":0.95,"checkpoint":{"dir":"ck","every_steps":7,"keep":2},"checkpointing")"));
  EXPECT_EQ(EncodeSpec(DecodeSpec(ParseJson(text, "spec"), "spec")), text);
  const RunSpec no_dir = Good({{"model", "llama-10m"}, {"checkpoint", {{"keep", 9}}}});
  EXPECT_EQ(DecodeSpec(ParseJson(EncodeSpec(no_dir), "spec"), "spec").checkpoint_keep, 9);
}

TEST(Spec, EachGroupOfSettingsHasItsPlace) {
  const RunSpec spec = Good({{"model", "llama-10m"}, {"measure", {{"refuse_throttled", true}}}});
  EXPECT_TRUE(spec.refuse_throttled);
  EXPECT_EQ(PointId(spec), PointId(Good({{"model", "llama-10m"}})));
  const std::string text = EncodeSpec(spec);
  EXPECT_THAT(
      text,
      HasSubstr(
          R"("lr_warmup_steps":0,"measure":{"min_steps":1,"refuse_throttled":true,"seconds":10,"warmup_seconds":5},"model")"));
  EXPECT_THAT(text, Not(HasSubstr("\"checkpoint\"")));
  EXPECT_EQ(EncodeSpec(DecodeSpec(ParseJson(text, "spec"), "spec")), text);
  const RunSpec both =
      Good({{"model", "llama-10m"}, {"measure", {{"refuse_throttled", true}}}, {"checkpoint", {{"dir", "ck"}}}});
  EXPECT_THAT(EncodeSpec(both), AllOf(HasSubstr(R"("measure":{)"), HasSubstr(R"("checkpoint":{"dir":"ck",)")));
}

TEST(Spec, WrongSettingsAreRefused) {
  const auto refusal = [](const Json& checkpoint, const char* communicator = "self") {
    std::vector<Problem> problems;
    BuildSpec({{"model", "llama-10m"}, {"communicator", communicator}, {"checkpoint", checkpoint}}, problems);
    return problems.empty() ? "" : problems.front().message;
  };
  EXPECT_THAT(refusal("full"), HasSubstr("a mapping of dir, every_steps and keep"));
  EXPECT_THAT(refusal({{"dri", "x"}}), HasSubstr("did you mean 'checkpoint.dir'?"));
  EXPECT_THAT(refusal({{"every_steps", 0}}), HasSubstr("checkpoint.every_steps is 0, and must be between 1 and"));
  EXPECT_THAT(refusal({{"keep", 0}}), HasSubstr("checkpoint.keep is 0"));
  EXPECT_THAT(refusal({{"dir", 5}}), HasSubstr("checkpoint.dir must be a text"));
  EXPECT_THAT(refusal({{"dir", "x"}}, "virtual"), HasSubstr("virtual rank"));
  std::vector<Problem> problems;
  BuildSpec({{"model", "llama-10m"}, {"measure", true}}, problems);
  EXPECT_EQ(problems.at(0).message,
            "measure is a mapping of min_steps, refuse_throttled, seconds and warmup_seconds, not true");
}

TEST(Spec, DecodesWhatItEncodes) {
  const std::vector<Json> specs = {
      {{"model", "llama-32b"}},
      {{"model", "gpt-10m"}, {"learning_rate", 1e-5}, {"grad_clip", 0.3}},
      {{"model", "stack-1b"}, {"ranks", 8}, {"shard", "full"}, {"communicator", "virtual"}},
      With(Tiny(), "seed", 999999999999999)};
  for (const Json& values : specs) {
    const RunSpec spec = Good(values);
    const RunSpec back = DecodeSpec(ParseJson(EncodeSpec(spec), "spec"), "spec");
    EXPECT_EQ(EncodeSpec(back), EncodeSpec(spec));
  }
}

TEST(Spec, RefusesDocumentsThatAreNotSpecs) {
  const Json good = ParseJson(EncodeSpec(Good(Tiny())), "spec");
  const auto message = [](const Json& document) {
    try {
      DecodeSpec(document, "run.json");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message(Json::array()), HasSubstr("run.json: a RunSpec is a JSON object"));
  EXPECT_THAT(message(With(good, "version", 2)), HasSubstr("RunSpec version 2, but this program speaks version 1"));
  EXPECT_THAT(message(With(good, "version", "1")), HasSubstr("version"));
  Json no_version = good;
  no_version.erase("version");
  EXPECT_THAT(message(no_version), HasSubstr("version null"));
  EXPECT_THAT(message(With(good, "batch_sise", 4)), HasSubstr("did you mean 'batch_size'?"));
  EXPECT_THAT(message(With(good, "batch_size", "4")), HasSubstr("batch_size must be an integer, not \"4\""));
}

TEST(Spec, TypesAndRangesAreChecked) {
  EXPECT_EQ(Only(With(Tiny(), "batch_size", "8")).message, "batch_size must be an integer, not \"8\"");
  EXPECT_EQ(Only(With(Tiny(), "batch_size", 1.5)).message, "batch_size must be an integer, not 1.5");
  EXPECT_EQ(Only(With(Tiny(), "batch_size", true)).field, "batch_size");
  EXPECT_EQ(Only(With(Tiny(), "batch_size", nullptr)).field, "batch_size");
  EXPECT_THAT(Only(With(Tiny(), "batch_size", 0)).message, HasSubstr("batch_size is 0, and must be between 1 and"));
  EXPECT_THAT(Only(With(Tiny(), "batch_size", -3)).message, HasSubstr("batch_size is -3"));
  EXPECT_EQ(Only(With(Tiny(), "seed", std::numeric_limits<uint64_t>::max())).field, "seed");
  EXPECT_EQ(Only(With(Tiny(), "learning_rate", "fast")).field, "learning_rate");
  EXPECT_EQ(Only(With(Tiny(), "learning_rate", std::numeric_limits<double>::infinity())).field, "learning_rate");
  EXPECT_EQ(Only(With(Tiny(), "learning_rate", std::numeric_limits<double>::quiet_NaN())).field, "learning_rate");
  EXPECT_EQ(Only(With(Tiny(), "tied_head", "yes")).message, "tied_head must be a true or false, not \"yes\"");
  EXPECT_EQ(Only(With(Tiny(), "precision", 16)).field, "precision");
  EXPECT_EQ(Only(With(Tiny(), "precision", "bf15")).message,
            "precision 'bf15' is not one of fp32, tf32, bf16, fp16, fp8, mxfp8, nvfp4, did you mean 'bf16'?");
  EXPECT_EQ(Good(With(Tiny(), "batch_size", 8.0)).batch_size, 8);
  EXPECT_EQ(EncodeSpec(Good(With(Tiny(), "weight_decay", -0.0))), EncodeSpec(Good(With(Tiny(), "weight_decay", 0))));
}

TEST(Spec, AllProblemsAreFoundAtOnce) {
  Json values = Tiny();
  values["batch_size"] = "8";
  values["precision"] = "bf15";
  values["sed"] = 1;
  EXPECT_EQ(Wrong(values).size(), 3U);
}

TEST(Spec, ImpossibleShapesAreFound) {
  EXPECT_EQ(Only(With(Tiny(), "hidden", 66)).message, "hidden 66 is not divisible by heads 4");
  EXPECT_EQ(Only(With(Tiny(), "kv_heads", 3)).message, "heads 4 is not divisible by kv_heads 3");
  EXPECT_EQ(Only(With(Tiny(), "head_dim", 7)).field, "head_dim");
  EXPECT_EQ(Only(With(Tiny(), "positions", 64)).field, "positions");
  EXPECT_EQ(Only({{"model", "gpt-10m"}, {"seq_length", 1025}}).message,
            "seq_length 1025 is beyond this gpt's 1024 positions");
  EXPECT_EQ(Good({{"model", "gpt-10m"}, {"seq_length", 1024}}).seq_length, 1024);
  EXPECT_EQ(Only({{"model", "gpt-10m"}, {"kv_heads", 2}}).field, "kv_heads");
  EXPECT_EQ(Only({{"model", "gpt-10m"}, {"rope_theta", 10000}}).field, "rope_theta");
  EXPECT_EQ(Only({{"model", "stack-1b"}, {"vocab", 1000}}).field, "vocab");
  EXPECT_EQ(Only({{"model", "stack-1b"}, {"data", "file.txt"}}).field, "data");
  EXPECT_EQ(Only({{"model", "stack-1b"}, {"logits_chunk", 2048}}).field, "logits_chunk");
  EXPECT_EQ(Only(With(With(Tiny(), "data", "file.txt"), "vocab", 100)).field, "vocab");
  EXPECT_EQ(Wrong({{"family", "llama"}}).size(), 4U);  // layers, hidden, heads, ffn
}

TEST(Spec, CombinationsThatNothingCanRunAreFound) {
  EXPECT_EQ(Only(With(With(Tiny(), "ranks", 8), "communicator", "self")).field, "ranks");
  EXPECT_EQ(Good(With(With(Tiny(), "ranks", 8), "communicator", "virtual")).ranks, 8);
  EXPECT_EQ(Good(With(With(Tiny(), "ranks", 8), "device", "meta")).ranks, 8);
  EXPECT_EQ(Only(With(With(Tiny(), "precision", "fp32"), "state_precision", "bf16")).field, "state_precision");
  EXPECT_EQ(Only(With(With(Tiny(), "precision", "tf32"), "state_precision", "bf16")).message,
            "state_precision must be fp32 when precision is tf32");
  EXPECT_EQ(Only(With(Tiny(), "learning_rate_min", 1)).field, "learning_rate_min");
  EXPECT_EQ(Only({{"model", "llama-10m"}, {"family", "gpt"}}).field, "family");
  EXPECT_EQ(Only({{"model", "llama-11m"}}).message,
            "unknown model 'llama-11m'; the nearest are llama-10m, llama-5m, llama-25m");
}

TEST(Spec, SeveralRanksAreProcessesUnlessOtherwiseSaid) {
  EXPECT_EQ(Good(Tiny()).communicator, "self");
  EXPECT_EQ(Good(With(Tiny(), "ranks", 8)).communicator, "gloo");
  EXPECT_EQ(Good(With(With(Tiny(), "ranks", 8), "communicator", "virtual")).communicator, "virtual");
  EXPECT_EQ(PointId(Good(With(Tiny(), "communicator", "gloo"))), PointId(Good(Tiny())));
}

TEST(Spec, AGpuIsNamedWhereOneComputesAndNowhereElse) {
  const Json on_gpu = With(With(Tiny(), "device", "cuda"), "gpu", "h200");
  EXPECT_EQ(Good(on_gpu).communicator, "self");
  EXPECT_EQ(Good(With(on_gpu, "ranks", 8)).communicator, "nccl");
  EXPECT_EQ(ProcessesOf(Good(With(on_gpu, "ranks", 8))), 8);
  EXPECT_EQ(Good(With(With(Tiny(), "device", "meta"), "gpu", "b200")).gpu, "b200");
  EXPECT_EQ(Only(With(Tiny(), "device", "cuda")).field, "gpu");
  EXPECT_EQ(Only(With(Tiny(), "gpu", "h200")).field, "gpu");
  EXPECT_THAT(Only(With(With(Tiny(), "device", "cuda"), "gpu", "H100")).message, HasSubstr("is not one of none, a100"));
  EXPECT_EQ(Only(With(With(on_gpu, "ranks", 8), "communicator", "gloo")).field, "communicator");
  EXPECT_EQ(Only(With(With(Tiny(), "ranks", 8), "communicator", "nccl")).field, "communicator");
  EXPECT_EQ(Only(With(With(on_gpu, "ranks", 8), "communicator", "self")).field, "ranks");
  EXPECT_EQ(EncodePoint(Good(Tiny())).find("gpu"), std::string::npos) << "points of before keep their ids";
}

TEST(Spec, CheckpointingPolicies) {
  for (const char* good : {"none", "selective", "full", "full/1", "full/2"}) Good(With(Tiny(), "checkpointing", good));
  for (const char* bad : {"ful", "full/", "full/0", "full/-1", "full/x", "full/2x", "none/2", "selective/2", "", "FULL",
                          "full/99999999999999999999"}) {
    EXPECT_EQ(Only(With(Tiny(), "checkpointing", bad)).field, "checkpointing") << bad;
  }
  EXPECT_EQ(Only(With(Tiny(), "checkpointing", "full/3")).message, "checkpointing full/3 spans more than the 2 layers");
  EXPECT_EQ(ParseCheckpointing("full/4"), (Checkpointing{Checkpointing::Policy::kFull, 4}));
  EXPECT_EQ(ParseCheckpointing("full/1"), Checkpointing{Checkpointing::Policy::kFull});
  EXPECT_EQ(ParseCheckpointing("selective"), Checkpointing{Checkpointing::Policy::kSelective});
}

template <typename Enum>
void ExpectNames(const char* field) {
  for (size_t i = 0; i < kNames<Enum>.size(); ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_EQ(ValueNamed<Enum>(NameOf(value)), value);
    EXPECT_EQ(Json(value), Json(kNames<Enum>[i])) << "a number would stand for another value in another release";
    EXPECT_EQ(fmt::format("{}", value), kNames<Enum>[i]);
    RunSpec spec;
    EXPECT_TRUE(SetValue(spec, *FindField(field), std::string(kNames<Enum>[i])));
    EXPECT_EQ(FieldText(spec, *FindField(field)), kNames<Enum>[i]);
  }
  EXPECT_EQ(ValueNamed<Enum>("x"), std::nullopt);
  EXPECT_EQ(ValueNamed<Enum>(""), std::nullopt);
  RunSpec spec;
  EXPECT_FALSE(SetValue(spec, *FindField(field), std::string("x")));
  EXPECT_EQ(ValueOf(spec, *FindField(field)), ValueOf(RunSpec(), *FindField(field)));
}

TEST(Spec, FixedValuesHaveNamesEverywhere) {
  ExpectNames<ModelFamily>("family");
  ExpectNames<Precision>("precision");
  ExpectNames<OptimizerKind>("optimizer");
  ExpectNames<ShardMode>("shard");
  for (const char* name : {"none", "selective", "full", "full/4"}) {
    EXPECT_EQ(NameOf(*ParseCheckpointing(name)), name);
    EXPECT_EQ(Json(*ParseCheckpointing(name)), Json(name));
    EXPECT_EQ(fmt::format("{}", *ParseCheckpointing(name)), name);
  }
}

}  // namespace
}  // namespace ridgeline
