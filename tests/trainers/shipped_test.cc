// The commands of the shipped definitions, and the points that they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "tests/trainers/shipped.h"
#include "trainers/definition.h"
#include "trainers/find.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> ArgvOfShipped(const std::string& name, const Json& values, std::string* file = nullptr) {
  const Invoked invoked = StartOfShipped(name, values);
  if (file != nullptr) *file = invoked.files.begin()->second;
  return invoked.argv;
}

// Only a few of the shipped trainers can be started here. For the others, the test checks what their sources accept.
TEST(Invocation, ShippedDefinitionsGiveWhatTheProgramsTake) {
  using ::testing::Contains;
  using ::testing::Not;
  const Json on_h100 = {{"device", "cuda"}, {"gpu", "h100"}, {"ranks", 8}};
  const auto with = [&](Json values) {
    values.update(on_h100);
    return values;
  };
  const auto te = ArgvOfShipped(
      "transformer_engine_fsdp",
      with({{"model", "stack-1b"}, {"precision", "mxfp8"}, {"shard", "full"}, {"checkpointing", "full"}}));
  for (const char* argument : {"--num-heads=16", "--num-layers=24", "--precision=mxfp8",
                               "--checkpoint-layer=transformerlayer", "--num-iters=7"}) {
    EXPECT_THAT(te, Contains(argument));
  }
  const auto nano = ArgvOfShipped("nanogpt", with({{"model", "gpt-124m"}, {"batch_size", 12}}));
  for (const char* argument :
       {"torchrun", "train.py", "--n_embd=768", "--gradient_accumulation_steps=8", "--max_iters=6", "--dtype=bfloat16",
        "--compile=True", "--decay_lr=False", "--dropout=0.0", "--grad_clip=0.0"}) {
    EXPECT_THAT(nano, Contains(argument));
  }
  std::string toml;
  const auto titan = ArgvOfShipped(
      "torchtitan", with({{"model", "llama-8b"}, {"precision", "fp8"}, {"shard", "full"}, {"grad_clip", 1}}), &toml);
  for (const char* argument : {"/out/torchtitan.toml", "--local-ranks-filter=0", "--tee=3"}) {
    EXPECT_THAT(titan, Contains(argument));
  }
  for (const char* line : {"flavor = \"8B\"\n", "converters = [\"quantize.linear.float8\"]\n", "mode = \"none\"\n",
                           "data_parallel_shard_degree = -1\n", "dump_folder = \"/out\"\n", "global_batch_size = 8\n",
                           "tensor_parallel_degree = 1\n"}) {
    EXPECT_THAT(toml, HasSubstr(line));
  }
  const auto megatron = ArgvOfShipped(
      "megatron_lm",
      with({{"model", "llama-8b"}, {"precision", "fp8"}, {"shard", "optimizer"}, {"checkpointing", "full"}}));
  for (const char* argument :
       {"--num-query-groups=8", "--swiglu", "--bf16", "--fp8-format=hybrid", "--fp8-recipe=delayed",
        "--untie-embeddings-and-output-weights", "--use-distributed-optimizer", "--recompute-method=uniform",
        "--max-position-embeddings=512", "--rotary-base=500000"}) {
    EXPECT_THAT(megatron, Contains(argument));
  }
  const auto llm_c = ArgvOfShipped("llm_c", with({{"model", "gpt-124m"}, {"seq_length", 1024}, {"grad_clip", 1}}));
  for (const char* argument : {"./train_gpt2cu", "d12", "8192", "1024", "7"}) EXPECT_THAT(llm_c, Contains(argument));
  std::string config;
  const auto hf = ArgvOfShipped("hf_trainer", with({{"model", "llama-1b"}, {"checkpointing", "full"}}), &config);
  for (const char* argument :
       {"/transformers/examples/pytorch/language-modeling/run_clm.py", "--config_name=/out", "--max_steps=7", "--bf16",
        "--gradient_checkpointing", "--lr_scheduler_type=constant_with_warmup", "--ddp_backend=nccl",
        "--dataset_name=Salesforce/wikitext", "--dataset_config_name=wikitext-103-raw-v1"}) {
    EXPECT_THAT(hf, Contains(argument));
  }
  EXPECT_THAT(hf, Not(Contains("--use_cpu")));
  const RunSpec llama = ShippedSpec(LoadShipped("hf_trainer"), {{"model", "llama-1b"}});
  const Json written = ParseJson(config, "config.json");
  EXPECT_EQ(written.at("model_type"), "llama");
  EXPECT_EQ(written.at("num_hidden_layers"), llama.layers);
  EXPECT_EQ(written.at("intermediate_size"), llama.ffn);
  ArgvOfShipped("hf_trainer", {{"model", "gpt-124m"}, {"dropout", 0.1}}, &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("n_embd"), 768);
  EXPECT_EQ(ParseJson(config, "config.json").at("resid_pdrop"), 0.1);
}

TEST(Invocation, ShippedTorchtitanUsesThePointsSchedule) {
  for (const char* titan : {"torchtitan@0.1.0", "torchtitan@0.2.0", "torchtitan@0.2.2", "torchtitan@main"}) {
    SCOPED_TRACE(titan);
    Json values = {{"model", "llama-8b"}, {"device", "cuda"}, {"gpu", "h100"}, {"ranks", 8}, {"shard", "full"}};
    std::string file;
    ArgvOfShipped(titan, values, &file);
    EXPECT_THAT(file, ::testing::AnyOf(HasSubstr("decay_ratio = 0.0\n"), HasSubstr("decay_ratio=0.0,\n")));
    values["schedule"] = "cosine";
    ArgvOfShipped(titan, values, &file);
    EXPECT_THAT(file, ::testing::AnyOf(HasSubstr("decay_type = \"cosine\"\n"), HasSubstr("decay_type=\"cosine\",\n")));
    EXPECT_EQ(file.find("decay_ratio"), std::string::npos);
  }
}

TEST(Invocation, ShippedDefinitionsShareAModelAsThePointSays) {
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  const auto split = [](Json values) {
    values.update({{"device", "cuda"}, {"gpu", "h100"}, {"ranks", 64}, {"grad_clip", 1}});
    values.emplace("model", "llama-8b");
    return values;
  };
  const Json megatrons = {{"tensor_parallel", 4},  {"pipeline_parallel", 4}, {"context_parallel", 2},
                          {"virtual_pipeline", 2}, {"batch_size", 2},        {"grad_accumulation", 8}};
  const auto megatron = ArgvOfShipped("megatron_lm", split(megatrons));
  for (const char* argument :
       {"--tensor-model-parallel-size=4", "--pipeline-model-parallel-size=4", "--context-parallel-size=2",
        "--expert-model-parallel-size=1", "--num-virtual-stages-per-pipeline-rank=2", "--sequence-parallel",
        "--micro-batch-size=2", "--global-batch-size=32"}) {
    EXPECT_THAT(megatron, Contains(argument));
  }
  Json without = megatrons;
  without.update({{"sequence_parallel", false}, {"virtual_pipeline", 1}});
  EXPECT_THAT(ArgvOfShipped("megatron_lm", split(without)),
              AllOf(Not(Contains("--sequence-parallel")), Not(Contains(HasSubstr("--num-virtual-stages")))));
  const auto nemo = ArgvOfShipped("nemo", split(megatrons));
  for (const char* argument :
       {"model.tensor_model_parallel_size=4", "model.pipeline_model_parallel_size=4", "model.context_parallel_size=2",
        "model.virtual_pipeline_model_parallel_size=2", "model.expert_model_parallel_size=1",
        "model.sequence_parallel=true", "train.global_batch_size=32"}) {
    EXPECT_THAT(nemo, Contains(argument));
  }
  EXPECT_THAT(ArgvOfShipped("nemo", split(Json::object())),
              AllOf(Contains("model.virtual_pipeline_model_parallel_size=null"),
                    Contains("model.sequence_parallel=false"), Contains("train.global_batch_size=64")));
  std::string file;
  Json titans = megatrons;
  titans["shard"] = "full";
  EXPECT_THAT(ArgvOfShipped("torchtitan", split(titans), &file), Not(Contains(HasSubstr("local-ranks-filter"))))
      << "its last stage alone has the loss";
  for (const char* line :
       {"tensor_parallel_degree = 4\n", "pipeline_parallel_degree = 4\n", "context_parallel_degree = 2\n",
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "pipeline_parallel_microbatch_size = 2\n",
        "\nlocal_batch_size = 16\n", "global_batch_size = 32\n", "data_parallel_shard_degree = -1\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
  const auto deepspeed = ArgvOfShipped(
      "deepspeed",
      split({{"tensor_parallel", 2}, {"context_parallel", 4}, {"sequence_parallel", false}, {"shard", "full"}}), &file);
  for (const char* argument :
       {"--tensor-model-parallel-size=2", "--no-pipeline-parallel", "--ds-sequence-parallel-size=4"}) {
    EXPECT_THAT(deepspeed, Contains(argument));
  }
  EXPECT_EQ(ParseJson(file, "deepspeed.json").at("train_batch_size"), 8);
  EXPECT_THAT(ArgvOfShipped("deepspeed", split({{"pipeline_parallel", 4}})),
              AllOf(Contains("--pipeline-model-parallel-size=4"), Not(Contains("--no-pipeline-parallel"))));
  ArgvOfShipped("nanotron", split({{"tensor_parallel", 2}, {"pipeline_parallel", 4}, {"grad_accumulation", 4}}), &file);
  EXPECT_EQ(yaml::ParseYaml(file).kind, yaml::YamlNode::Kind::kMap);
  for (const char* line : {"  dp: 8\n", "  pp: 4\n", "  tp: 2\n", "  tp_mode: REDUCE_SCATTER\n", "  clip_grad: 1.0\n",
                           "  batch_accumulation_per_replica: 4\n", "    min_decay_lr: 0.0003\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
}

TEST(Invocation, ShippedDefinitionsRefuseRanksThatCannotShareAModel) {
  const auto why = [](const std::string& name, Json values) {
    values.update({{"model", "llama-8b"}, {"device", "cuda"}, {"gpu", "h100"}, {"grad_clip", 1}});
    values.emplace("ranks", 64);
    return WhyNotShipped(name, values);
  };
  for (const char* name : {"megatron_lm", "nemo", "deepspeed", "nanotron"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(why(name, {{"tensor_parallel", 8}}), IsEmpty());
    EXPECT_THAT(why(name, {{"tensor_parallel", 64}, {"seq_length", 8192}}),
                ::testing::Contains(HasSubstr("divide heads (heads is 32, tensor_parallel is 64")));
    EXPECT_THAT(why(name, {{"tensor_parallel", 16}, {"seq_length", 8192}}), ElementsAre(HasSubstr("divide kv_heads")));
  }
  EXPECT_THAT(why("megatron_lm", {{"pipeline_parallel", 8}, {"virtual_pipeline", 8}, {"grad_accumulation", 8}}),
              ElementsAre(HasSubstr("all stages of the pipeline must have as many layers")));
  EXPECT_THAT(why("megatron_lm", {{"pipeline_parallel", 4}, {"virtual_pipeline", 2}, {"grad_accumulation", 6}}),
              ElementsAre(HasSubstr("grad_accumulation must be a multiple of pipeline_parallel")));
  for (const char* titan : {"torchtitan", "torchtitan@0.1", "torchtitan@0.2.0"}) {
    SCOPED_TRACE(titan);
    EXPECT_THAT(why(titan, {{"tensor_parallel", 8}, {"shard", "full"}}), IsEmpty());
    EXPECT_THAT(why(titan, {{"tensor_parallel", 16}, {"seq_length", 8192}, {"shard", "full"}}),
                ElementsAre(HasSubstr("divide kv_heads")));
    EXPECT_THAT(why(titan, {{"pipeline_parallel", 4}, {"shard", "full"}}),
                ElementsAre(HasSubstr("as many micro-batches as ranks")));
    EXPECT_THAT(why(titan, {{"tensor_parallel", 2}}), ElementsAre(HasSubstr("need shard: full")));
    EXPECT_THAT(why(titan, {{"tensor_parallel", 8}, {"ranks", 8}, {"shard", "full"}}),
                ElementsAre(HasSubstr("the program computes in fp32")));
  }
  EXPECT_THAT(WhyNotShipped("torchtitan", {{"model", "qwen3-8b"},
                                           {"trainer", "torchtitan"},
                                           {"device", "cuda"},
                                           {"gpu", "h100"},
                                           {"ranks", 16},
                                           {"shard", "full"},
                                           {"pipeline_parallel", 2},
                                           {"grad_accumulation", 2}}),
              ElementsAre(HasSubstr("no pipeline for Qwen3")));
  EXPECT_THAT(why("deepspeed", {{"pipeline_parallel", 2}, {"shard", "full"}}), ElementsAre(HasSubstr("stage 3")));
  EXPECT_THAT(why("llm_foundry", {{"tensor_parallel", 2}}),
              ::testing::Contains(HasSubstr("would ignore tensor_parallel: 2")));
}

TEST(Invocation, ShippedDefinitionsSplitTheStateAsThePointSays) {
  Json values = {{"model", "llama-8b"}, {"device", "cuda"}, {"gpu", "h100"},
                 {"ranks", 64},         {"shard", "full"},  {"shard_ranks", 8}};
  for (const char* titan : {"torchtitan", "torchtitan@0.1", "torchtitan@main"}) {
    std::string file;
    ArgvOfShipped(titan, values, &file);
    EXPECT_THAT(file, ::testing::ContainsRegex("data_parallel_replicate_degree ?= ?8")) << titan;
    EXPECT_THAT(file, ::testing::ContainsRegex("data_parallel_shard_degree ?= ?-1")) << titan;
    EXPECT_THAT(file, ::testing::ContainsRegex("fsdp_reshard_after_forward ?= ?\"default\"")) << titan;
  }
  values.erase("shard_ranks");
  values["shard"] = "gradients";
  std::string file;
  ArgvOfShipped("torchtitan", values, &file);
  EXPECT_THAT(file, HasSubstr("data_parallel_replicate_degree = 1"));
  EXPECT_THAT(file, HasSubstr("fsdp_reshard_after_forward = \"never\""));
  EXPECT_THAT(ArgvOfShipped("deepspeed", values, &file), ::testing::Contains("--zero-stage=2"));
  values.update({{"model", "gpt-1b"}, {"weight_decay", 0}});
  ArgvOfShipped("llm_foundry", values, &file);
  EXPECT_THAT(file, HasSubstr("sharding_strategy: SHARD_GRAD_OP"));
  values["shard_ranks"] = 8;
  EXPECT_THAT(WhyNotShipped("llm_foundry", values), ::testing::Contains(HasSubstr("would ignore shard_ranks: 8")));
}

// Both programs were started here. A point that they would run differently than it says is refused.
TEST(Invocation, NanoGptAndLlmCRefuseWhatTheyWouldNotDo) {
  const auto nanogpt = [](const Json& more) {
    Json values = {{"model", "gpt-10m"}, {"precision", "fp32"}};
    values.update(more);
    return WhyNotShipped("nanogpt", values);
  };
  EXPECT_THAT(nanogpt(Json::object()), IsEmpty());
  EXPECT_THAT(nanogpt({{"ranks", 2}}), ElementsAre(HasSubstr("ranks is 2, and it takes 1"))) << "without GPUs";
  EXPECT_THAT(nanogpt({{"precision", "bf16"}}), ElementsAre(HasSubstr("precision is bf16, and it takes fp32")));
  EXPECT_THAT(nanogpt({{"lr_warmup_steps", 3}}), ElementsAre(HasSubstr("lr_warmup_steps is 3, and it takes 0")));
  EXPECT_THAT(nanogpt({{"lr_warmup_steps", 3}, {"schedule", "cosine"}}), IsEmpty());
  const Json gpu = {{"device", "cuda"}, {"gpu", "a100"}};
  const auto on_gpu = [&](const std::string& precision) {
    Json values = gpu;
    values["precision"] = precision;
    return nanogpt(values);
  };
  EXPECT_THAT(on_gpu("fp32"), ElementsAre(HasSubstr("precision is fp32, and it takes tf32, bf16, fp16")));
  EXPECT_THAT(on_gpu("tf32"), IsEmpty());

  const auto llm_c = [](const Json& more) {
    Json values = {{"model", "gpt-10m"}, {"precision", "fp32"},     {"batch_size", 4},
                   {"seq_length", 64},   {"learning_rate", 0.0001}, {"beta2", 0.999},
                   {"weight_decay", 0},  {"warmup_steps", 5},       {"steps", 36}};
    values.update(more);
    return WhyNotShipped("llm_c_cpu", values);
  };
  EXPECT_THAT(llm_c(Json::object()), IsEmpty());
  EXPECT_THAT(llm_c({{"steps", 37}}), ElementsAre(HasSubstr("total_steps is 42, and it takes 41")));
  EXPECT_THAT(llm_c({{"batch_size", 8}}), ElementsAre(HasSubstr("takes batch_size: 4, not 8")));
  EXPECT_THAT(llm_c({{"grad_clip", 1}}), ElementsAre(HasSubstr("takes grad_clip: 0, not 1")));
  EXPECT_THAT(llm_c({{"ranks", 2}}), ElementsAre(HasSubstr("would ignore ranks: 2")));
}

TEST(Invocation, ShippedDefinitionsWriteWholeConfigurationFiles) {
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  const auto with = [&](Json values) {
    values.update({{"device", "cuda"}, {"gpu", "h100"}, {"ranks", 8}});
    return values;
  };
  const auto nemo = ArgvOfShipped("nemo", with({{"model", "llama-8b"},
                                                {"seq_length", 8192},
                                                {"precision", "fp8"},
                                                {"shard", "optimizer"},
                                                {"checkpointing", "full"}}));
  for (const char* argument : {"scripts/training/run_recipe.py", "vanilla_gpt_pretrain_config", "model.num_layers=32",
                               "model.num_query_groups=8", "train.train_iters=7", "train.global_batch_size=8",
                               "model.recompute_method=uniform", "--dataset", "mock",
                               "ddp.use_distributed_optimizer=true", "dataset.seq_length=8192"}) {
    EXPECT_THAT(nemo, Contains(argument));
  }
  EXPECT_THAT(nemo, Contains(AllOf(HasSubstr("mixed_precision={_target_:megatron.bridge.training.mixed_precision."),
                                   HasSubstr(",fp8:hybrid,fp8_recipe:delayed,fp8_amax_history_len:1024,"))));
  EXPECT_THAT(ArgvOfShipped("nemo", with({{"model", "llama-8b"}})),
              AllOf(Not(Contains("model.recompute_method=uniform")), Contains("mixed_precision=bf16_mixed")));

  std::string file;
  const auto foundry = ArgvOfShipped("llm_foundry",
                                     with({{"model", "gpt-124m"},
                                           {"batch_size", 4},
                                           {"weight_decay", 0},
                                           {"grad_clip", 1},
                                           {"shard", "full"},
                                           {"checkpointing", "full"}}),
                                     &file);
  EXPECT_THAT(foundry, Contains("/out/train.yaml"));
  EXPECT_EQ(yaml::ParseYaml(file).kind, yaml::YamlNode::Kind::kMap);
  for (const char* line :
       {"  d_model: 768\n", "max_duration: 7ba\n", "precision: amp_bf16\n", "  lr: 0.0003\n",
        "global_train_batch_size: 32\n", "device_train_microbatch_size: 4\n", "  sharding_strategy: FULL_SHARD\n",
        "  activation_checkpointing: true\n", "    clipping_threshold: 1.0\n", "  name: \"gpt2\"\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
  ArgvOfShipped("llm_foundry", with({{"model", "gpt-124m"}, {"weight_decay", 0}}), &file);
  EXPECT_EQ(yaml::ParseYaml(file).kind, yaml::YamlNode::Kind::kMap);
  EXPECT_EQ(file.find("FULL_SHARD"), std::string::npos);
  EXPECT_EQ(file.find("gradient_clipping"), std::string::npos);

  const auto deepspeed = ArgvOfShipped(
      "deepspeed",
      with({{"model", "llama-8b"}, {"batch_size", 2}, {"grad_accumulation", 4}, {"shard", "full"}, {"grad_clip", 1}}),
      &file);
  for (const char* argument : {"pretrain_gpt.py", "--deepspeed_config=/out/deepspeed.json", "--zero-stage=3",
                               "--num-key-value-heads=8", "--swiglu", "--train-iters=7", "--bf16",
                               "--rotary-position-embeddings-theta=500000", "--data-path=my-gpt2_text_document"}) {
    EXPECT_THAT(deepspeed, Contains(argument));
  }
  const Json config = ParseJson(file, "deepspeed.json");
  EXPECT_EQ(config.at("train_batch_size"), 64);
  EXPECT_EQ(config.at("train_micro_batch_size_per_gpu"), 2);
  EXPECT_EQ(config.at("gradient_accumulation_steps"), 4);
  EXPECT_EQ(config.at("zero_optimization").at("stage"), 3);
  EXPECT_EQ(config.at("bf16").at("enabled"), true);
  EXPECT_EQ(config.at("gradient_clipping"), 1.0);
}

// Models keep their architecture's features: a llama has no such biases, norms and experts.
TEST(Invocation, ShippedDefinitionsNameOtherFamiliesCorrectly) {
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  const auto of = [](const char* trainer, const char* model, std::string* file = nullptr) {
    const bool dense_head = std::string(trainer) == "megatron_lm" || std::string(trainer) == "nemo";
    Json values = {{"model", model}, {"ranks", 8}, {"device", "cuda"}, {"gpu", "h100"}};
    if (dense_head) values["shard"] = "optimizer";
    return ArgvOfShipped(trainer, values, file);
  };
  EXPECT_THAT(of("megatron_lm", "qwen2.5-7b"),
              AllOf(Contains("--add-qkv-bias"), Contains("--num-query-groups=4"), Contains("--rotary-base=1000000"),
                    Not(Contains("--qk-layernorm")), Not(Contains(HasSubstr("--num-experts")))));
  EXPECT_THAT(
      of("megatron_lm", "qwen3-30b-a3b"),
      AllOf(Contains("--qk-layernorm"), Contains("--num-experts=128"), Contains("--moe-router-topk=8"),
            Contains("--moe-ffn-hidden-size=768"), Contains("--moe-grouped-gemm"), Contains("--kv-channels=128")));
  EXPECT_THAT(of("nemo", "mixtral-8x7b"),
              AllOf(Contains("model.num_moe_experts=8"), Contains("model.moe_router_topk=2")));
  std::string config;
  of("hf_trainer", "qwen3-8b", &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("model_type"), "qwen3");
  EXPECT_EQ(ParseJson(config, "config.json").at("head_dim"), 128);
  of("hf_trainer", "mixtral-8x7b", &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("model_type"), "mixtral");
  EXPECT_EQ(ParseJson(config, "config.json").at("intermediate_size"), 14336);
  of("hf_trainer", "qwen3-30b-a3b", &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("model_type"), "qwen3_moe");
  EXPECT_EQ(ParseJson(config, "config.json").at("moe_intermediate_size"), 768);
  of("hf_trainer", "gemma3-1b", &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("model_type"), "gemma3_text");
  EXPECT_THAT(of("hf_trainer", "meta-llama/Llama-3.1-8B", &config), Contains("--config_name=meta-llama/Llama-3.1-8B"));
  EXPECT_EQ(config, "{}\n");
  EXPECT_THAT(WhyNotShipped("deepspeed",
                            {{"model", "qwen3-8b"}, {"trainer", "deepspeed"}, {"device", "cuda"}, {"gpu", "h100"}}),
              Contains("trainer deepspeed takes family: llama, gpt, not qwen3"));
}

TEST(Invocation, ThePageNamesReleaseAndTestOfEachShippedDefinition) {
  const std::filesystem::path root = RIDGELINE_SOURCE_DIR;
  const std::string page = ReadFile(root / "docs/trainers.md");
  for (const auto& file : std::filesystem::directory_iterator(root / "trainers")) {
    const Trainer trainer = LoadTrainer(file.path());
    const size_t begin = page.find(fmt::format("| `{}` |", trainer.name));
    ASSERT_NE(begin, std::string::npos) << trainer.name << " has no row";
    const std::string row = page.substr(begin, page.find('\n', begin) - begin);
    EXPECT_THAT(row, HasSubstr("| " + trainer.version)) << trainer.name;
    EXPECT_THAT(row, HasSubstr("| " + trainer.tested)) << trainer.name;
  }
}

// A log that is not listed as a run's counts as composed: the list names only logs of runs.
TEST(Invocation, TheLogsOfRunsOfShippedDefinitionsAreListed) {
  const std::filesystem::path logs = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/trainers/logs";
  const std::string readme = ReadFile(logs / "README.md");
  int listed = 0;
  for (size_t at = readme.find(".log`"); at != std::string::npos; at = readme.find(".log`", at + 1)) {
    const size_t begin = readme.rfind('`', at) + 1;
    const std::string name = readme.substr(begin, at + 4 - begin);
    if (name.find('{') != std::string::npos) continue;
    EXPECT_TRUE(std::filesystem::exists(logs / name)) << name;
    ++listed;
  }
  EXPECT_GT(listed, 10);
}

}  // namespace
}  // namespace ridgeline::trainers
