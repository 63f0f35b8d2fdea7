// How a definition's trainer is started, and which points it says it can run.
#include "trainers/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "trainers/definition.h"
#include "yaml/yaml.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kMine = R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
metrics: [{name: step_time, regex: 'took (.*) ms', unit: ms}]
)";

Trainer ParseMine(const std::string& more) { return ParseTrainer(kMine + more, "some/mine.yaml"); }

std::string RefusalOfMine(const std::string& more) {
  try {
    ParseMine(more);
  } catch (const Error& e) {
    return e.message();
  }
  ADD_FAILURE() << "was taken:\n" << more;
  return {};
}

RunSpec Spec(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
  return spec;
}

std::vector<std::string> WhyNot(const std::string& more, const Json& values) {
  RunSpec spec = Spec(values);
  const Trainer trainer = ParseMine(more);
  CanonicalizeOwn(*trainer.invocation, spec);
  std::vector<std::string> messages;
  for (const Problem& problem : WhyRefused("mine", *trainer.invocation, spec)) messages.push_back(problem.message);
  return messages;
}

TEST(Invocation, IsReadWholeAndSaysWhatIsStarted) {
  const Trainer trainer = ParseMine(R"(
command: [torchrun, '--nproc_per_node={{ranks_per_node}}', '--node_rank={{node_rank}}', '{{env.DIR}}/train.py',
          --lr, '{{learning_rate}}', --iters, '{{total_steps}}', --gbs, '{{global_batch_size}}', 8, '{{if flash}}--flash{{end}}']
processes: torchrun
env: {MODE: '{{checkpointing}}'}
files:
  config.toml: |
    steps = {{total_steps}}
    folder = "{{output_dir}}/logs"
    name = {{kernel}}
fields:
  flash: {type: boolean, default: true, help: whether}
  kernel: {type: text, choices: [fast, slow], default: fast}
  buckets: {type: integer, default: 4, min: 1, max: 8}
  share: {type: number, default: 0.5}
supports: {model: any}
resume: ['--resume={{checkpoint_dir}}']
)");
  ASSERT_TRUE(trainer.invocation.has_value());
  RunSpec spec = Spec({{"model", "llama-10m"}, {"batch_size", 4}, {"ranks", 8}});
  spec.own = {{"flash", false}, {"elsewhere", int64_t{1}}};
  CanonicalizeOwn(*trainer.invocation, spec);
  EXPECT_THAT(spec.own, ElementsAre(Pair("buckets", FieldValue(int64_t{4})), Pair("flash", FieldValue(false)),
                                    Pair("kernel", FieldValue("fast")), Pair("share", FieldValue(0.5))));
  ProcessPlace place;
  place.ranks_per_node = 4;
  place.node_rank = 1;
  place.output_dir = "/out \"x\"";
  place.environment = {{"DIR", "/opt"}};
  Invoked invoked = Invoke(*trainer.invocation, spec, place);
  EXPECT_THAT(invoked.argv, ElementsAre("torchrun", "--nproc_per_node=4", "--node_rank=1", "/opt/train.py", "--lr",
                                        "0.0003", "--iters", "7", "--gbs", "32", "8"));
  EXPECT_THAT(invoked.environment, ElementsAre(Pair("MODE", "none")));
  EXPECT_EQ(invoked.files.at("config.toml"), "steps = 7\nfolder = \"/out \\\"x\\\"/logs\"\nname = \"fast\"\n");
  place.resumes = true;
  place.checkpoint_dir = "/ckpt";
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).argv.back(), "--resume=/ckpt");
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).directory, "");
  place.environment.clear();
  EXPECT_THROW(Invoke(*trainer.invocation, spec, place), Error);
}

TEST(Invocation, ItMayRunInAFolderOfItsOwn) {
  const Trainer trainer = ParseMine("command: [x, '{{layers}}']\ndirectory: '{{env.DIR}}/src'\n");
  ProcessPlace place;
  place.environment = {{"DIR", "/opt"}};
  EXPECT_EQ(Invoke(*trainer.invocation, Spec({{"model", "llama-10m"}}), place).directory, "/opt/src");
  EXPECT_THAT(RefusalOfMine("directory: x\n"), HasSubstr("directory goes with a command, and there is none"));
  EXPECT_THAT(RefusalOfMine("command: [x]\ndirectory: '{{dir}}'\n"), HasSubstr("mine.yaml:8:12: there is no 'dir'"));
}

TEST(Invocation, OwnFieldsAreEncodedWithTheirTypes) {
  RunSpec spec = Spec({{"model", "llama-10m"}, {"trainer", "mine"}});
  spec.own = {{"a", true}, {"b", int64_t{2}}, {"c", 2.0}, {"d", "x\n"}};
  const std::string text = EncodeSpec(spec);
  EXPECT_THAT(text, HasSubstr(R"("own":{"a":true,"b":2,"c":2.0,"d":"x\n"})"));
  const RunSpec back = DecodeSpec(ParseJson(text, "spec"), "spec");
  EXPECT_EQ(back.own, spec.own);
  EXPECT_EQ(PointId(back), PointId(spec));
  RunSpec ours = Spec({{"model", "llama-10m"}});
  EXPECT_EQ(EncodeSpec(ours).find("own"), std::string::npos);
  EXPECT_EQ(EncodeSpec(ours).find("trainer"), std::string::npos) << "ids of points that were before are as they were";
}

TEST(Invocation, MistakesAreSaidAtTheirPlace) {
  EXPECT_THAT(RefusalOfMine("command: [x, '{{layer}}']\n"),
              HasSubstr("mine.yaml:7:14: there is no 'layer', did you mean 'layers'?"));
  EXPECT_THAT(RefusalOfMine("command: []\n"), HasSubstr("command is a list of 1 to"));
  EXPECT_THAT(RefusalOfMine("command: run it\n"), HasSubstr("command is a list"));
  EXPECT_THAT(RefusalOfMine("command: [x, [y]]\n"), HasSubstr("an argument of command is text"));
  EXPECT_THAT(RefusalOfMine("env: {A: b}\n"), HasSubstr("env goes with a command, and there is none"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nprocesses: mine\n"), HasSubstr("processes is ours, torchrun, srun or one"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nenv: {'A=B': c}\n"), HasSubstr("a variable's name has no '='"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfiles: {../a.toml: b}\n"), HasSubstr("is no file that can be written here"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfiles: {a.sh: b}\n"), HasSubstr("by which values are quoted"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nsupports: {precisions: fp32}\n"), HasSubstr("did you mean 'precision'"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nsupports: {precision: fp64}\n"), HasSubstr("fp64"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {layers: {type: integer, default: 1}}\n"),
              HasSubstr("has a meaning already"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {Flash: {default: a}}\n"), HasSubstr("small letters"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {flash: {type: boolean}}\n"), HasSubstr("flash has no default"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {flash: {type: boolean, default: 3}}\n"),
              HasSubstr("flash must be"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {n: {type: integer, default: 9, max: 8}}\n"),
              HasSubstr("between 0 and 8"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {k: {choices: [a, b], default: c}}\n"),
              HasSubstr("not one of a, b"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfile: y.json\n"), HasSubstr("with `result: file` and a command"));
}

TEST(Invocation, AVariableThatComesOutEmptyIsLeftOut) {
  const Trainer trainer = ParseMine("command: [x]\nenv: {A: '{{if layers == 3}}1{{end}}', B: '', C: '{{layers}}'}\n");
  const Invoked invoked = Invoke(*trainer.invocation, Spec({{"model", "gpt-124m"}}), {});
  EXPECT_EQ(invoked.environment, (std::map<std::string, std::string>{{"B", ""}, {"C", "12"}}));
}

TEST(Invocation, WhatOnlyTheNodeKnowsStandsAsAPlaceholderInWhatIsShown) {
  const Trainer trainer = ParseMine("command: [bash, -c, 'x {{env.SURELY_NOT_SET}} {{output_dir}} {{layers}}']\n");
  ProcessPlace place;
  place.output_dir = Placeholder("output_dir");
  place.is_shown = true;
  const RunSpec spec = Spec({{"model", "gpt-124m"}});
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).argv.back(), "x <SURELY_NOT_SET> <OUTPUT_DIR> 12");
  place.is_shown = false;
  EXPECT_THROW(Invoke(*trainer.invocation, spec, place), Error);
}

TEST(Invocation, AShellsTextTakesPlainValuesAlone) {
  const std::string text = "command: [bash, -lc, 'source env.sh && exec ./train --d={{data}} --n={{layers}}']\n";
  EXPECT_THAT(WhyNot(text, {{"model", "gpt-124m"}, {"data", "/data/a-1.txt"}}), IsEmpty());
  EXPECT_THAT(WhyNot(text, {{"model", "gpt-124m"}, {"data", "/data/$(touch x)"}}),
              ElementsAre(HasSubstr("data is '/data/$(touch x)', which a shell would not take as it is")));
  const std::string argument = "command: [conda, run, bash, -ec, './train $1 --n={{layers}}', x, '{{data}}']\n";
  EXPECT_THAT(WhyNot(argument, {{"model", "gpt-124m"}, {"data", "/data/$(touch x)"}}), IsEmpty());
  EXPECT_THAT(RefusalOfMine("command: [source, env.sh, '&&', ./train, '{{layers}}']\n"),
              HasSubstr("'source' is a shell's word: write [bash, -lc, TEXT]"));
}

TEST(Invocation, MistakesInHowRanksAreSplitAreSaidAtTheirPlace) {
  const auto refused = [](const std::string& more) { return RefusalOfMine("command: [x]\n" + more); };
  EXPECT_THAT(refused("data_parallel: '{{rank}} / 2'\n"),
              HasSubstr("mine.yaml:8:16: there is no field 'rank', did you mean 'ranks'?"));
  EXPECT_THAT(refused("data_parallel: '{{nodes}}'\n"), HasSubstr("there is no field 'nodes'"));
  EXPECT_THAT(refused("data_parallel: '{{ranks}} / '\n"), HasSubstr("data_parallel: it ends where a value is missing"));
  EXPECT_THAT(refused("data_parallel: '{{ranks}} == 1'\n"), HasSubstr("data_parallel is a number, such as"));
  EXPECT_THAT(refused("data_parallel: {{ranks}}\n"), HasSubstr("mapping"));
  EXPECT_THAT(refused("require: '{{ranks}} == 1'\n"), HasSubstr("require is a list of 1 to"));
  EXPECT_THAT(refused("require: ['{{ranks}}']\n"), HasSubstr("a requirement is a condition, such as"));
  EXPECT_THAT(refused("require: [{else: x}]\n"), HasSubstr("a requirement has an if"));
  EXPECT_THAT(refused("require: [{if: '{{ranks}} == 1', then: x}]\n"),
              HasSubstr("unknown part of a requirement 'then'"));
  EXPECT_THAT(RefusalOfMine("data_parallel: '1'\n"), HasSubstr("data_parallel goes with a command"));
  for (const char* name : {"tensor_parallel", "sequence_parallel", "data_parallel"}) {
    EXPECT_THAT(refused(fmt::format("fields: {{{}: {{type: integer, default: 1}}}}\n", name)),
                HasSubstr("has a meaning already"));
  }
}

TEST(Invocation, BatchesAreOfDataParallelRanks) {
  const std::string plain =
      "command: [x, '{{layers}}', '{{tensor_parallel}}', '{{pipeline_parallel}}', '{{data_parallel}}', "
      "'{{local_batch_size}}', '{{global_batch_size}}', '{{global_micro_batches}}', '{{tokens_per_step}}', "
      "'{{world_size}}']\n";
  RunSpec spec = Spec({{"model", "llama-10m"},
                       {"batch_size", 4},
                       {"grad_accumulation", 3},
                       {"seq_length", 128},
                       {"ranks", 16},
                       {"tensor_parallel", 2},
                       {"pipeline_parallel", 2}});
  const auto started = [&](const std::string& more) {
    return Invoke(*ParseMine(plain + more).invocation, spec, {}).argv;
  };
  EXPECT_THAT(started(""), ElementsAre("x", "8", "2", "2", "4", "12", "48", "12", "6144", "16"));
  const std::string half = "data_parallel: '{{ranks}} / 2'\n";
  EXPECT_THAT(started(half), ElementsAre("x", "8", "2", "2", "8", "12", "96", "24", "12288", "16"));
  EXPECT_EQ(TokensAStep(ParseMine(plain + half), spec), 12288);
  spec.ranks = 4;
  EXPECT_THROW(started("data_parallel: '{{ranks}} - 4'\n"), Error) << "of none";
  EXPECT_THROW(started("data_parallel: '{{ranks}} * 2'\n"), Error) << "more than there are";
}

TEST(Invocation, SequenceParallelIsNotAskedForWhereItGoesWithTensorParallel) {
  const std::string command = "command: [x, '{{layers}}', '{{tensor_parallel}}']\n";
  const auto why = [&](const std::string& more, const Json& values) {
    Json all = {{"model", "llama-10m"}, {"ranks", 4}, {"tensor_parallel", 2}};
    all.update(values);
    return WhyNot(command + more, all);
  };
  EXPECT_THAT(why("", Json::object()), IsEmpty());
  EXPECT_THAT(why("", {{"sequence_parallel", false}}),
              ElementsAre(HasSubstr("would not heed sequence_parallel: false")));
  EXPECT_THAT(why("supports: {sequence_parallel: false}\n", {{"sequence_parallel", false}}), IsEmpty());
  EXPECT_THAT(why("supports: {sequence_parallel: false}\n", Json::object()),
              ElementsAre("trainer mine takes sequence_parallel: false, not true"));
}

TEST(Invocation, APointThatItCannotRunIsRefusedWithTheReason) {
  const Json plain = {{"model", "gpt-124m"}};
  const std::string all = "command: [x, '{{layers}}', '{{precision | map: fp32=a, bf16=b}}']\n";
  EXPECT_THAT(WhyNot(all + "processes: one\n", plain), IsEmpty());
  EXPECT_THAT(WhyNot(all + "supports: {family: llama}\n", plain),
              ElementsAre("trainer mine takes family: llama, not gpt"));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"precision", "fp16"}}),
              ElementsAre("trainer mine: precision is fp16, and it takes fp32, bf16"));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"dropout", 0.25}}),
              ElementsAre("trainer mine would not heed dropout: 0.25: its definition neither uses nor supports it"));
  EXPECT_THAT(WhyNot(all + "supports: {dropout: any}\n", {{"model", "gpt-124m"}, {"dropout", 0.25}}), IsEmpty());
  EXPECT_THAT(WhyNot(all + "processes: one\n", {{"model", "gpt-124m"}, {"ranks", 2}}),
              ElementsAre("trainer mine would not heed ranks: 2: its definition neither uses nor supports it"));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"ranks", 2}}), IsEmpty()) << "whose ranks we start";
  EXPECT_THAT(WhyNot("command: [x]\n", plain), ElementsAre(HasSubstr("cannot be told which model")));
  EXPECT_THAT(WhyNot(all + "supports: {device: cuda}\n", plain),
              ElementsAre("trainer mine takes device: cuda, not cpu"));
}

std::vector<std::string> ArgvOfShipped(const std::string& name, const Json& values, std::string* file = nullptr) {
  const Trainer trainer = LoadTrainer(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "trainers" / (name + ".yaml"));
  RunSpec spec = Spec(values);
  CanonicalizeOwn(*trainer.invocation, spec);
  for (const Problem& problem : WhyRefused(name, *trainer.invocation, spec)) ADD_FAILURE() << problem.message;
  ProcessPlace place;
  place.ranks_per_node = 8;
  place.output_dir = "/out";
  place.environment = {{"NANOGPT", "/nanogpt"},     {"TRANSFORMERS", "/transformers"}, {"MEGATRON_BRIDGE", "/bridge"},
                       {"LLM_FOUNDRY", "/foundry"}, {"MEGATRON_DEEPSPEED", "/ds"},     {"LLM_C", "/llm.c"}};
  const Invoked invoked = Invoke(*trainer.invocation, spec, place);
  if (file != nullptr) *file = invoked.files.begin()->second;
  return invoked.argv;
}

// Few of what ships can be started here: that it says what its source takes is all that can be held of the others.
TEST(Invocation, OfWhatShipsIsWhatTheProgramsTake) {
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
  EXPECT_THAT(titan, Contains("/out/torchtitan.toml"));
  for (const char* line :
       {"flavor = \"8B\"\n", "converters = [\"float8\"]\n", "mode = \"none\"\n", "data_parallel_shard_degree = -1\n",
        "dump_folder = \"/out\"\n", "global_batch_size = 8\n", "tensor_parallel_degree = 1\n"}) {
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
        "--dataset_name=wikitext", "--dataset_config_name=wikitext-103-raw-v1"}) {
    EXPECT_THAT(hf, Contains(argument));
  }
  EXPECT_THAT(hf, Not(Contains("--use_cpu")));
  const RunSpec llama = Spec({{"model", "llama-1b"}});
  const Json written = ParseJson(config, "config.json");
  EXPECT_EQ(written.at("model_type"), "llama");
  EXPECT_EQ(written.at("num_hidden_layers"), llama.layers);
  EXPECT_EQ(written.at("intermediate_size"), llama.ffn);
  ArgvOfShipped("hf_trainer", {{"model", "gpt-124m"}, {"dropout", 0.1}}, &config);
  EXPECT_EQ(ParseJson(config, "config.json").at("n_embd"), 768);
  EXPECT_EQ(ParseJson(config, "config.json").at("resid_pdrop"), 0.1);
}

TEST(Invocation, OfWhatShipsRanksShareAModelAsThePointSays) {
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
  ArgvOfShipped("torchtitan", split(megatrons), &file);
  for (const char* line :
       {"tensor_parallel_degree = 4\n", "pipeline_parallel_degree = 4\n", "context_parallel_degree = 2\n",
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "pipeline_parallel_microbatch_size = 2\n",
        "\nlocal_batch_size = 16\n", "global_batch_size = 32\n", "data_parallel_replicate_degree = 2\n"}) {
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
  EXPECT_EQ(ParseYaml(file).kind, YamlNode::Kind::kMap);
  for (const char* line : {"  dp: 8\n", "  pp: 4\n", "  tp: 2\n", "  tp_mode: REDUCE_SCATTER\n", "  clip_grad: 1.0\n",
                           "  batch_accumulation_per_replica: 4\n", "    min_decay_lr: 0.0003\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
}

std::vector<std::string> WhyNotShipped(const std::string& name, const Json& values) {
  const Trainer trainer = LoadTrainer(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "trainers" / (name + ".yaml"));
  RunSpec spec = Spec(values);
  CanonicalizeOwn(*trainer.invocation, spec);
  std::vector<std::string> messages;
  for (const Problem& problem : WhyRefused(name, *trainer.invocation, spec)) messages.push_back(problem.message);
  return messages;
}

TEST(Invocation, OfWhatShipsRanksThatCannotShareAModelAreRefused) {
  const auto why = [](const std::string& name, Json values) {
    values.update({{"model", "llama-8b"}, {"device", "cuda"}, {"gpu", "h100"}, {"grad_clip", 1}});
    values.emplace("ranks", 64);
    return WhyNotShipped(name, values);
  };
  for (const char* name : {"megatron_lm", "nemo", "torchtitan", "deepspeed", "nanotron"}) {
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
  EXPECT_THAT(why("torchtitan", {{"pipeline_parallel", 4}}), ElementsAre(HasSubstr("as many micro-batches as ranks")));
  EXPECT_THAT(why("deepspeed", {{"pipeline_parallel", 2}, {"shard", "full"}}), ElementsAre(HasSubstr("stage 3")));
  EXPECT_THAT(why("llm_foundry", {{"tensor_parallel", 2}}),
              ::testing::Contains(HasSubstr("would not heed tensor_parallel: 2")));
}

// Both were started from here: what they would do otherwise than a point says is refused.
TEST(Invocation, OfNanoGptAndLlmCWhatTheyWouldNotDoIsRefused) {
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
  EXPECT_THAT(llm_c({{"ranks", 2}}), ElementsAre(HasSubstr("would not heed ranks: 2")));
}

TEST(Invocation, OfWhatShipsAndIsConfiguredByFilesTheyAreWhole) {
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
  for (const char* argument : {"scripts/training/run_recipe.py", "llama3_8b_pretrain_config", "model.num_layers=32",
                               "model.num_query_groups=8", "train.train_iters=7", "train.global_batch_size=8",
                               "mixed_precision=bf16_with_fp8_delayed_scaling_mixed", "model.recompute_method=uniform",
                               "ddp.use_distributed_optimizer=true", "dataset.seq_length=8192"}) {
    EXPECT_THAT(nemo, Contains(argument));
  }
  EXPECT_THAT(ArgvOfShipped("nemo", with({{"model", "llama-8b"}})), Not(Contains("model.recompute_method=uniform")));

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
  EXPECT_EQ(ParseYaml(file).kind, YamlNode::Kind::kMap);
  for (const char* line :
       {"  d_model: 768\n", "max_duration: 7ba\n", "precision: amp_bf16\n", "  lr: 0.0003\n",
        "global_train_batch_size: 32\n", "device_train_microbatch_size: 4\n", "  sharding_strategy: FULL_SHARD\n",
        "  activation_checkpointing: true\n", "    clipping_threshold: 1.0\n", "  name: \"gpt2\"\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
  ArgvOfShipped("llm_foundry", with({{"model", "gpt-124m"}, {"weight_decay", 0}}), &file);
  EXPECT_EQ(ParseYaml(file).kind, YamlNode::Kind::kMap);
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

RunSpec NamedSpec(const Json& more) {
  Json values = {{"model", "my/model"}, {"trainer", "mine"}};
  if (!more.is_null()) values.update(more);
  return Spec(values);
}

TEST(Invocation, WhatNobodyKnowsOfAModelHasNoValue) {
  const auto why_not = [](const std::string& more, const Json& values) {
    const Trainer trainer = ParseMine(more);
    std::vector<Problem> problems = WhyRefused("mine", *trainer.invocation, NamedSpec(values));
    if (problems.empty()) return std::string();
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems.front().field, "model");
    return problems.front().message;
  };
  EXPECT_EQ(why_not("command: [x, '{{model}}']\n", {}), "");
  EXPECT_EQ(why_not("command: [x, '{{layers}}', '{{hidden}}', '{{rope_theta}}', '{{layers}}']\n", {}),
            "trainer mine needs layers, hidden, rope_theta, which nobody knows of the model my/model: give them beside "
            "`model`, or name a preset");
  EXPECT_THAT(why_not("command: [x, '{{layers}}', '{{hidden}}']\n", {{"layers", 4}}), HasSubstr("needs hidden, which"));
  EXPECT_THAT(why_not("command: [x, '{{model}}', '{{parameters}}']\n", {}), HasSubstr("needs parameters, which"));
  EXPECT_EQ(why_not("command: [x, '{{model}}', '{{parameters}}']\n", {{"parameters", 5}}), "");
  // What has a default, or is asked for only where it is there, stops nobody.
  EXPECT_EQ(why_not("command: [x, '{{model}}', '{{layers | default: 4}}', '{{if heads}}{{heads}}{{end}}', "
                    "'{{tied_head}}', '{{if experts != 0}}{{expert_ffn}}{{end}}']\n",
                    {}),
            "");
  EXPECT_THAT(WhyNot("command: [x, '{{layers}}']\nsupports: {family: [llama, gpt]}\n",
                     {{"model", "x"}, {"layers", 2}, {"trainer", "mine"}}),
              ElementsAre(HasSubstr("takes family: llama, gpt, not other: the model x is no preset")));
  const Trainer counts = ParseMine("command: [x, '{{model}}', '{{parameters}}', '{{active_parameters}}']\n");
  EXPECT_THAT(Invoke(*counts.invocation, Spec({{"model", "mixtral-8x7b"}, {"trainer", "mine"}}), {}).argv,
              ElementsAre("x", "mixtral-8x7b", "46702792704", "12879925248"));
}

TEST(Invocation, AModelsOtherNameMeansTheSame) {
  const Trainer trainer = ParseMine(
      "command: [x, '{{model | map: llama3-8b=8B, llama3.2-1b=1B}}', '{{if model == llama3.1-8b}}yes{{end}}']\n"
      "supports: {model: [llama3-8b, llama-1b]}\n");
  const RunSpec spec = Spec({{"model", "llama-8b"}});
  EXPECT_THAT(WhyRefused("mine", *trainer.invocation, spec), IsEmpty());
  EXPECT_THAT(Invoke(*trainer.invocation, spec, {}).argv, ElementsAre("x", "8B", "yes"));
  EXPECT_THAT(Invoke(*trainer.invocation, Spec({{"model", "llama-1b"}}), {}).argv, ElementsAre("x", "1B"));
}

TEST(Invocation, AMixtureOfExpertsNeedsATrainerThatIsToldOfThem) {
  const Json mixtral = {{"model", "mixtral-8x7b"}, {"trainer", "mine"}};
  EXPECT_THAT(
      WhyNot("command: [x, '{{layers}}']\n", mixtral),
      ElementsAre("trainer mine would not heed that the model mixtral-8x7b has 8 experts a layer: its definition "
                  "neither uses nor supports experts"));
  EXPECT_THAT(WhyNot("command: [x, '{{layers}}']\nsupports: {experts: any}\n", mixtral), IsEmpty());
  EXPECT_THAT(WhyNot("command: [x, '{{model}}']\n", mixtral), IsEmpty());
}

// As their architectures are: biases, norms and experts are none of a llama's.
TEST(Invocation, OfWhatShipsOtherFamiliesAreToldAsTheyAre) {
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  const auto of = [](const char* trainer, const char* model, std::string* file = nullptr) {
    const bool dense_head = std::string(trainer) == "megatron_lm" || std::string(trainer) == "nemo";
    Json values = {{"model", model}, {"trainer", trainer}, {"ranks", 8}, {"device", "cuda"}, {"gpu", "h100"}};
    if (dense_head) values["shard"] = "optimizer";
    return ArgvOfShipped(trainer, values, file);
  };
  EXPECT_THAT(of("megatron_lm", "qwen2.5-7b"),
              AllOf(Contains("--add-qkv-bias"), Contains("--num-query-groups=4"), Contains("--rotary-base=1000000"),
                    Not(Contains("--qk-layernorm")), Not(Contains(HasSubstr("--num-experts")))));
  EXPECT_THAT(of("megatron_lm", "qwen3-30b-a3b"),
              AllOf(Contains("--qk-layernorm"), Contains("--num-experts=128"), Contains("--moe-router-topk=8"),
                    Contains("--moe-ffn-hidden-size=768"), Contains("--kv-channels=128")));
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

}  // namespace
}  // namespace ridgeline
