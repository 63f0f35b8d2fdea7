// The commands of the definitions for fine-tuning programs and LitGPT: with one rank, checkpointed, and on two nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/trainers/shipped.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A point on one GPU, with these other fields.
Json OnGpus(const Json& more) {
  Json values = {{"device", "cuda"}, {"gpu", "h100"},       {"seq_length", 4096},     {"batch_size", 2},
                 {"ranks", 1},       {"grad_clip", 1},      {"grad_accumulation", 3}, {"learning_rate", 1e-5},
                 {"steps", 5},       {"schedule", "cosine"}};
  values.update(more);
  return values;
}

const Json kTwoNodes = {{"ranks", 16}, {"shard", "full"}};

// The words of its command, from `word` on.
std::vector<std::string> From(const Invoked& invoked, const std::string& word) {
  return {std::find(invoked.argv.begin(), invoked.argv.end(), word), invoked.argv.end()};
}

// The numbers that the program that writes the data gets: vocabulary, length, rows a step, steps, seed.
std::vector<std::string> DataOf(const Invoked& invoked) {
  return {invoked.argv.begin() + 5, invoked.argv.begin() + 10};
}

// Checks that a YAML file has the first lines and not the others.
void HoldsLines(const Invoked& invoked, const std::string& name, const std::vector<std::string>& lines,
                const std::vector<std::string>& without = {}) {
  const std::string& file = invoked.files.at(name);
  EXPECT_EQ(yaml::ParseYaml(file).kind, yaml::YamlNode::Kind::kMap);
  for (const std::string& line : lines) EXPECT_THAT("\n" + file, HasSubstr("\n" + line + "\n")) << name;
  for (const std::string& word : without) EXPECT_THAT(file, Not(HasSubstr(word))) << name;
}

const std::vector<std::string> kTorchrunOfTwoNodes = {"--nnodes=2", "--nproc_per_node=8", "--node_rank=0",
                                                      "--master_addr=n1", "--master_port=29500"};

TEST(ShippedTuning, TrlSft) {
  const auto of = [](const Json& more) {
    Json values = OnGpus({{"model", "llama3-8b"}, {"weights", "meta-llama/Meta-Llama-3-8B"}});
    values.update(more);
    return StartOfShipped("trl_sft", values);
  };
  const Invoked plain = of(Json::object());
  EXPECT_THAT(DataOf(plain), ElementsAre("128256", "4096", "6", "7", "1234"));
  EXPECT_THAT(From(plain, "torchrun"),
              AllOf(Contains("--nnodes=1"), Contains("--nproc_per_node=1"), Contains("trl.scripts.sft")));
  EXPECT_EQ(plain.argv.back(), "/out/sft.yaml");
  HoldsLines(plain, "sft.yaml",
             {"model_name_or_path: \"meta-llama/Meta-Llama-3-8B\"", "max_length: 4096", "max_steps: 7",
              "per_device_train_batch_size: 2", "gradient_accumulation_steps: 3", "learning_rate: 1.0e-05",
              "lr_scheduler_type: cosine", "max_grad_norm: 1", "bf16: true", "gradient_checkpointing: false",
              "logging_steps: 1", "save_strategy: \"no\"", "report_to: none", "seed: 1234"},
             {"fsdp", "deepspeed"});
  HoldsLines(of({{"checkpointing", "full"}}), "sft.yaml", {"gradient_checkpointing: true"});
  const Invoked nodes = of(kTwoNodes);
  EXPECT_THAT(DataOf(nodes), ElementsAre("128256", "4096", "96", "7", "1234")) << "of all 16 ranks";
  for (const std::string& word : kTorchrunOfTwoNodes) EXPECT_THAT(From(nodes, "torchrun"), Contains(word));
  HoldsLines(nodes, "sft.yaml", {"fsdp: true", "per_device_train_batch_size: 2"}, {"deepspeed:"});
  HoldsLines(of({{"ranks", 16}, {"shard", "optimizer"}, {"sharder", "deepspeed"}}), "sft.yaml",
             {"deepspeed: \"/out/deepspeed.json\""}, {"fsdp:"});
  EXPECT_THAT(WhyNotShipped("trl_sft", OnGpus({{"model", "a/b"}, {"ranks", 8}, {"tensor_parallel", 2}})),
              Contains(HasSubstr("would ignore tensor_parallel: 2")));
  EXPECT_THAT(WhyNotShipped("trl_sft", OnGpus({{"model", "llama3-8b"}})),
              ElementsAre(HasSubstr("a preset needs weights")));
}

TEST(ShippedTuning, LlamaFactory) {
  const auto of = [](const Json& more) {
    Json values = OnGpus({{"model", "qwen3-8b"}});
    values.update(more);
    return StartOfShipped("llama_factory", values);
  };
  const Invoked plain = of(Json::object());
  EXPECT_THAT(DataOf(plain), ElementsAre("151936", "4096", "6", "7", "1234"));
  EXPECT_THAT(From(plain, "llamafactory-cli"), ElementsAre("llamafactory-cli", "train", "/out/train.yaml"));
  EXPECT_EQ(plain.environment.at("NPROC_PER_NODE"), "1");
  HoldsLines(plain, "train.yaml",
             {"model_name_or_path: \"/out\"", "train_from_scratch: true", "disable_gradient_checkpointing: true",
              "cutoff_len: 4096", "max_steps: 7", "per_device_train_batch_size: 2", "gradient_accumulation_steps: 3",
              "learning_rate: 1.0e-05", "bf16: true", "fp8: false", "save_strategy: \"no\"", "report_to: none"},
             {"fsdp", "deepspeed"});
  EXPECT_EQ(ParseJson(plain.files.at("config.json"), "config.json").at("num_hidden_layers"), 36);
  HoldsLines(of({{"checkpointing", "full"}, {"precision", "fp8"}}), "train.yaml",
             {"disable_gradient_checkpointing: false", "bf16: true", "fp8: true"});
  const Invoked nodes = of(kTwoNodes);
  EXPECT_THAT(DataOf(nodes), ElementsAre("151936", "4096", "96", "7", "1234"));
  for (const auto& [name, value] :
       {std::pair("NNODES", "2"), {"NPROC_PER_NODE", "8"}, {"NODE_RANK", "0"}, {"FORCE_TORCHRUN", "1"}}) {
    EXPECT_EQ(nodes.environment.at(name), value) << name;
  }
  HoldsLines(nodes, "train.yaml", {"deepspeed: \"/out/deepspeed.json\""}, {"fsdp:"});
  EXPECT_EQ(ParseJson(nodes.files.at("deepspeed.json"), "").at("zero_optimization").at("stage"), 3);
  EXPECT_THAT(WhyNotShipped("llama_factory", OnGpus({{"model", "a/b"}, {"ranks", 8}, {"context_parallel", 2}})),
              Contains(HasSubstr("would ignore context_parallel: 2")));
}

TEST(ShippedTuning, Axolotl) {
  const auto values_of = [](const Json& more) {
    Json values = OnGpus({{"model", "llama3-8b"}, {"state_precision", "fp32"}});
    values.update(more);
    return values;
  };
  const auto of = [&](const Json& more) { return StartOfShipped("axolotl", values_of(more)); };
  const auto why = [&](const Json& more) { return WhyNotShipped("axolotl", values_of(more)); };
  const Invoked plain = of(Json::object());
  EXPECT_EQ(plain.directory, "/out");
  EXPECT_THAT(DataOf(plain), ElementsAre("128256", "4096", "6", "7", "1234"));
  EXPECT_THAT(From(plain, "axolotl"), AllOf(Contains("/out/train.yaml"), Contains("--nproc_per_node=1")));
  HoldsLines(plain, "train.yaml",
             {"base_model: .", "reinit_weights: true", "sequence_len: 4096", "sample_packing: false", "max_steps: 7",
              "micro_batch_size: 2", "gradient_accumulation_steps: 3", "learning_rate: 1.0e-05", "bf16: true",
              "gradient_checkpointing: false", "save_strategy: \"no\"", "use_wandb: false", "logging_steps: 1"},
             {"fsdp", "deepspeed", "parallel_size"});
  HoldsLines(of({{"checkpointing", "full"}}), "train.yaml", {"gradient_checkpointing: true"});
  const Invoked nodes = of(kTwoNodes);
  for (const std::string& word : kTorchrunOfTwoNodes) EXPECT_THAT(From(nodes, "--"), Contains(word));
  EXPECT_THAT(DataOf(nodes), ElementsAre("128256", "4096", "96", "7", "1234"));
  HoldsLines(nodes, "train.yaml", {"fsdp_version: 2"}, {"deepspeed:"});

  // Ranks that share sequences share one batch.
  Json shared = kTwoNodes;
  shared.update({{"context_parallel", 4}});
  const Invoked context = of(shared);
  EXPECT_THAT(DataOf(context), ElementsAre("128256", "4096", "24", "7", "1234"));
  HoldsLines(context, "train.yaml", {"context_parallel_size: 4", "fsdp_version: 2"}, {"tensor_parallel_size"});
  const Json tensor = {{"ranks", 16}, {"shard", "full"}, {"tensor_parallel", 2}, {"sequence_parallel", false}};
  Json named = tensor;
  named["model"] = "Qwen/Qwen3-8B";
  HoldsLines(of(named), "train.yaml", {"tensor_parallel_size: 2", "base_model: \"Qwen/Qwen3-8B\""});
  EXPECT_THAT(why(tensor), ElementsAre(HasSubstr("does not split the random weights of a preset")));
  named.erase("sequence_parallel");
  EXPECT_THAT(why(named), Contains(HasSubstr("takes sequence_parallel: false")));
  EXPECT_THAT(why({{"ranks", 16}, {"context_parallel", 2}}), ElementsAre(HasSubstr("go with FSDP alone")));
  shared["attention"] = "sdpa";
  EXPECT_THAT(why(shared), ElementsAre(HasSubstr("context parallelism needs flash attention")));
  shared.update({{"attention", "flash_attention_2"}, {"seq_length", 4096 + 64}});
  EXPECT_THAT(why(shared), ElementsAre(HasSubstr("64 tokens for each of the context_parallel ranks")));
}

TEST(ShippedTuning, LitGpt) {
  const auto of = [](const Json& more) {
    Json values = OnGpus({{"model", "llama3-8b"}});
    values.update(more);
    return StartOfShipped("litgpt", values);
  };
  const Invoked plain = of(Json::object());
  EXPECT_THAT(From(plain, "7"), ElementsAre("7", "24576", "pretrain", "--config=/out/pretrain.yaml"))
      << "2 x 3 sequences of 4096 tokens";
  HoldsLines(plain, "pretrain.yaml",
             {"  n_layer: 32", "  n_embd: 4096", "  n_query_groups: 8", "precision: bf16-mixed", "  log_interval: 1",
              "  save_interval: null", "  global_batch_size: 6", "  micro_batch_size: 2", "  max_seq_length: 4096",
              "  max_norm: 1.0", "devices: 1", "num_nodes: 1", "logger_name: csv", "seed: 1234"});
  const Invoked nodes = of(kTwoNodes);
  for (const std::string& word : kTorchrunOfTwoNodes) EXPECT_THAT(nodes.argv, Contains(word));
  EXPECT_THAT(From(nodes, "7"), ElementsAre("7", "393216", "pretrain", "--config=/out/pretrain.yaml"));
  HoldsLines(nodes, "pretrain.yaml", {"  global_batch_size: 96", "devices: 8", "num_nodes: 2"});
  EXPECT_THAT(WhyNotShipped("litgpt", OnGpus({{"model", "llama3-8b"}, {"checkpointing", "full"}})),
              ElementsAre(HasSubstr("takes checkpointing: none, not full")));
  EXPECT_THAT(WhyNotShipped("litgpt", OnGpus({{"model", "llama3-8b"}, {"checkpointing", "none"}})), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::trainers
