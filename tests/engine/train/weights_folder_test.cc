// Weights can move: from a run's checkpoint files into another run, and between transformers' folders and ours.
#include "engine/train/weights_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/device/cpu/executor.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"
#include "engine/train/checkpoint_files.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_config.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Fn>
std::string Refusal(const Fn& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

// A model in memory, with its weights from a folder or, without a folder, from the seed.
struct Model {
  explicit Model(StepProgram built, const fs::path& folder = {}, Communicator* with = nullptr)
      : program(std::move(built)),
        executor(program.trace, program.layout, CpuKernels()),
        values(program, executor),
        alone(MakeSelfCommunicator()),
        state(program, executor, with == nullptr ? *alone : *with) {
    if (folder.empty()) {
      values.Initialize();
    } else {
      const WeightsFolder weights(folder, program);
      values.Initialize([&](size_t p, int64_t first, std::span<float> to) { weights.Read(p, first, to); });
    }
  }
  void Save(const fs::path& dir) {
    FakeClock clock;
    Manifest manifest{1, program.spec, {}, {}};
    manifest.history.loss = {1.5};
    manifest.history.step_ns = {10};
    CheckpointDir(dir, 1, clock, state.communicator()).Save(state, manifest);
  }
  // All weights, by their parts' names.
  std::map<std::string, std::vector<float>> Weights() const {
    std::map<std::string, std::vector<float>> all;
    for (size_t p = 0; p < program.shape.parameters.size(); ++p) {
      for (const ParameterPart& part : program.shape.parameters[p].parts) all[part.name] = values.Weight(p, part);
    }
    return all;
  }

  StepProgram program;
  CpuExecutor executor;
  ModelState values;
  std::unique_ptr<Communicator> alone;
  TrainingState state;
};

RunSpec SpecOf(const std::string& family, const Json& more = Json::object()) {
  Json values = TinyModel(family);
  values.update(more);
  return SpecFrom(values);
}

class WeightsFolderTest : public ::testing::Test {
 protected:
  // The folder of a checkpoint that a model with another seed made.
  fs::path Saved(const std::string& family, const Json& more = Json::object()) {
    Json values = more;
    values["seed"] = 77;
    Model(BuildStep(SpecOf(family, values))).Save(dir_ / family);
    return dir_ / family / "step-00000001";
  }
  // The same, but only with names and numbers, without our own files: what transformers might have saved.
  fs::path SavedElsewhere(const std::string& family, const Json& more = Json::object()) {
    fs::path folder = Saved(family, more);
    fs::remove(folder / "manifest.json");
    fs::remove(folder / "optimizer-00001-of-00001.safetensors");
    fs::remove(folder / "model.safetensors.index.json");
    fs::rename(folder / "model-00001-of-00001.safetensors", folder / "model.safetensors");
    return folder;
  }
  // Rewrites the weights. `change` may alter each one's name, dtype, shape and numbers; an empty name drops it.
  using Change = std::function<void(SafetensorsWriter::Tensor&, std::vector<float>&)>;
  static void Rewrite(const fs::path& folder, const Change& change) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    std::string data;
    {
      const SafetensorsFile file(folder / "model.safetensors");
      for (const auto& [name, entry] : file.entries()) {
        SafetensorsWriter::Tensor tensor{name, entry.dtype, entry.shape, 0};
        std::vector<float> values = file.Floats(name);
        change(tensor, values);
        if (tensor.name.empty()) continue;
        const size_t before = data.size();
        for (const float value : values) {
          const uint16_t half = tensor.dtype == "F16" ? ToFp16(value) : ToBf16(value);
          if (tensor.dtype == "F32" || tensor.dtype == "I32") {
            data.append(reinterpret_cast<const char*>(&value), sizeof value);
          } else {
            data.append(reinterpret_cast<const char*>(&half), sizeof half);
          }
        }
        tensor.bytes = static_cast<int64_t>(data.size() - before);
        tensors.push_back(tensor);
      }
    }
    fs::remove(folder / "model.safetensors");
    SafetensorsWriter writer(folder / "model.safetensors", tensors);
    writer.Append(std::as_bytes(std::span(data)));
    writer.Finish();
  }
  static void EditConfig(const fs::path& folder, const std::function<void(Json&)>& edit) {
    Json config = ReadJsonFile(folder / "config.json");
    edit(config);
    WriteFileAtomic(folder / "config.json", config.dump());
  }
  static std::string Opened(const fs::path& folder, const std::string& family, const Json& more = Json::object()) {
    const StepProgram program = BuildStep(SpecOf(family, more));
    return Refusal([&] { const WeightsFolder weights(folder, program); });
  }

  TempDir dir_;
};

// The data hold only one sequence, so every step sees the same batch.
TEST_F(WeightsFolderTest, ARunStartsWhereAnothersWeightsWere) {
  std::ofstream(dir_ / "text") << std::string("the quick brown fox jumps over the lazy").substr(0, 38);
  for (const char* family : {"llama", "gpt"}) {
    for (const bool tied : {true, false}) {
      for (const char* precision : {"fp32", "bf16", "fp16"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", family, precision, tied ? "tied" : "untied"));
        Json values = {{"data", (dir_ / "text").string()},
                       {"vocab", 256},
                       {"precision", precision},
                       {"learning_rate", 1e-2},
                       {"warmup_steps", 0},
                       {"steps", 4},
                       {"tied_head", tied},
                       {"rope_theta", 10000.0}};
        if (std::string_view(family) == "gpt") values.erase("rope_theta");
        RunSpec first = SpecOf(family, values);
        first.checkpoint_dir = dir_ / fmt::format("{}-{}-{}", family, precision, tied);
        first.checkpoint_every_steps = 3;
        const RunResult trained = Train(first, {}).result;
        ASSERT_EQ(trained.status, RunStatus::kOk) << trained.message;

        values["init_from"] = first.checkpoint_dir + "/step-00000003";
        values["seed"] = 5;
        std::string notes;
        TrainOptions options;
        options.on_note = [&](const std::string& note) { notes += note; };
        const RunResult started = Train(SpecOf(family, values), options).result;
        ASSERT_EQ(started.status, RunStatus::kOk) << started.message;
        EXPECT_EQ(started.loss.front(), trained.loss.back());
        EXPECT_LT(started.loss.front(), trained.loss.front());
        EXPECT_THAT(notes, HasSubstr("starting from the weights in " + values["init_from"].get<std::string>()));
      }
    }
  }
}

TEST_F(WeightsFolderTest, EveryPrecisionTakesTheWeightsAsItKeepsThem) {
  for (const char* family : {"llama", "gpt"}) {
    const fs::path folder = Saved(family, {{"precision", "fp32"}});
    for (const Numbers& numbers : kNumbers) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", family, numbers.precision, numbers.state, numbers.primary));
      Json values;
      numbers.AddTo(values);
      Json with_seed = values;
      with_seed["seed"] = 77;
      // They equal the first weights of that seed.
      EXPECT_EQ(Model(BuildStep(SpecOf(family, values)), folder).Weights(),
                Model(BuildStep(SpecOf(family, with_seed))).Weights());
    }
  }
}

TEST_F(WeightsFolderTest, RanksTakeTheirPartsAndGiveTheWhole) {
  for (const char* family : {"llama", "gpt"}) {
    for (const char* shard : {"none", "optimizer", "full"}) {
      SCOPED_TRACE(fmt::format("{} {}", family, shard));
      const fs::path folder = Saved(family);
      const fs::path shared = dir_ / fmt::format("{}-{}", family, shard);
      testing::WithGloo(2, [&](Communicator& communicator) {
        const RunSpec two = SpecOf(family, {{"ranks", 2}, {"shard", shard}});
        Model(BuildStep(two, false, communicator.rank()), folder, &communicator).Save(shared);
      });
      EXPECT_TRUE(fs::exists(shared / "step-00000001/model-00002-of-00002.safetensors"));
      EXPECT_EQ(Model(BuildStep(SpecOf(family)), shared / "step-00000001").Weights(),
                Model(BuildStep(SpecOf(family, {{"seed", 77}}))).Weights());
    }
  }
}

TEST_F(WeightsFolderTest, ARankReadsNoMoreThanItKeeps) {
  const StepProgram program =
      BuildStep(SpecOf("llama", {{"ranks", 2}, {"shard", "full"}, {"communicator", "virtual"}}));
  CpuExecutor executor(program.trace, program.layout, CpuKernels());
  int64_t read = 0;
  ModelState(program, executor).Initialize([&](size_t, int64_t, std::span<float> to) { read += std::ssize(to); });
  int64_t all = 0;
  for (const Parameter& parameter : program.shape.parameters) all += parameter.elements();
  EXPECT_NEAR(static_cast<double>(read), static_cast<double>(all) / 2, 0.01 * static_cast<double>(all));
}

TEST_F(WeightsFolderTest, FoldersOfTransformersAreRead) {
  for (const char* family : {"llama", "gpt"}) {
    const bool gpt = std::string_view(family) == "gpt";
    for (const char* dtype : {"F32", "BF16", "F16"}) {
      SCOPED_TRACE(fmt::format("{} {}", family, dtype));
      const Json fp32 = {{"precision", "fp32"}};
      const fs::path folder = SavedElsewhere(family, fp32);
      auto expected = Model(BuildStep(SpecOf(family, {{"precision", "fp32"}, {"seed", 77}}))).Weights();
      Rewrite(folder, [&](SafetensorsWriter::Tensor& tensor, std::vector<float>&) {
        if (!tensor.name.starts_with("transformer.") && gpt) tensor.name = "transformer." + tensor.name;
        tensor.dtype = dtype;
      });
      for (auto& [name, values] : expected) {
        for (float& value : values) {
          if (std::string_view(dtype) == "BF16") value = FromBf16(ToBf16(value));
          if (std::string_view(dtype) == "F16") value = FromFp16(ToFp16(value));
        }
      }
      // As the newest versions write it: they leave out default values.
      EditConfig(folder, [&](Json& config) {
        config.erase("tie_word_embeddings");
        config.erase("head_dim");
        if (gpt) return;
        config["rope_parameters"] = {{"rope_theta", config["rope_theta"]}, {"rope_type", "default"}};
        config.erase("rope_theta");
      });
      EXPECT_EQ(Model(BuildStep(SpecOf(family, fp32)), folder).Weights(), expected);
      fs::remove_all(dir_ / family);
    }
  }
}

// The names of a gpt with its own head, as an earlier version wrote them.
TEST_F(WeightsFolderTest, NamesWithoutTransformersPrefixAreRead) {
  const Json untied = {{"tied_head", false}};
  const fs::path folder = SavedElsewhere("gpt", untied);
  int renamed = 0;
  Rewrite(folder, [&](SafetensorsWriter::Tensor& tensor, std::vector<float>&) {
    if (!tensor.name.starts_with("transformer.")) return;
    tensor.name = tensor.name.substr(std::string_view("transformer.").size());
    ++renamed;
  });
  EXPECT_GT(renamed, 36);
  EXPECT_EQ(Model(BuildStep(SpecOf("gpt", untied)), folder).Weights(),
            Model(BuildStep(SpecOf("gpt", {{"tied_head", false}, {"seed", 77}}))).Weights());
}

// As in a hub's cache, which has links. A buffer that older versions saved is not a weight.
TEST_F(WeightsFolderTest, LinksAreFollowedAndBuffersPassedOver) {
  const fs::path folder = SavedElsewhere("gpt");
  Rewrite(folder, [&](SafetensorsWriter::Tensor& tensor, std::vector<float>&) {
    if (tensor.name.ends_with("h.0.ln_1.bias")) tensor.name = "h.0.attn.bias";
  });
  EXPECT_THAT(Opened(folder, "gpt"), HasSubstr("they have no tensor h.0.ln_1.bias, and this run has"));
  fs::remove_all(dir_ / "gpt");
  const fs::path whole = SavedElsewhere("gpt");
  fs::create_directory(dir_ / "links");
  for (const char* name : {"config.json", "model.safetensors"}) fs::create_symlink(whole / name, dir_ / "links" / name);
  EXPECT_EQ(Opened(dir_ / "links", "gpt"), "accepted");
}

TEST_F(WeightsFolderTest, AnotherShapeIsRefusedWithBoth) {
  const fs::path folder = Saved("llama");
  EXPECT_THAT(Opened(folder, "llama", {{"ffn", 96}, {"heads", 2}}),
              AllOf(HasSubstr("config.json is of another model: "),
                    HasSubstr("intermediate_size is 104 there and 96 here (ffn)"),
                    HasSubstr("num_attention_heads is 4 there and 2 here (heads)")));
  EXPECT_THAT(Opened(folder, "llama", {{"rope_theta", 10000}}),
              HasSubstr("rope_theta is 500000.0 there and 10000.0 here"));
  EXPECT_THAT(Opened(folder, "llama", {{"norm_eps", 1e-6}}), HasSubstr("rms_norm_eps is 1e-05 there and 1e-06 here"));
  EXPECT_THAT(Opened(folder, "gpt"), HasSubstr("model_type is \"llama\" there and \"gpt2\" here (family)"));

  // A mismatch that config.json does not show is found in the weights.
  fs::remove_all(dir_ / "llama");
  const fs::path other = SavedElsewhere("llama");
  EditConfig(other, [](Json& config) { config["intermediate_size"] = 96; });
  EXPECT_THAT(Opened(other, "llama", {{"ffn", 96}}),
              AllOf(HasSubstr("the weights in " + other.string() + " are not this model's: "),
                    HasSubstr("mlp.gate_proj.weight is [104, 48] in model.safetensors, and [96, 48] in this run")));
  EditConfig(other, [](Json& config) { config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}}; });
  EXPECT_THAT(Opened(other, "llama"), HasSubstr("rope_scaling is \"llama3\" there and not given here"));
}

TEST_F(WeightsFolderTest, MissingSurplusAndOddTensorsAreNamed) {
  const auto rewritten = [&](const Change& change) {
    fs::remove_all(dir_ / "llama");
    const fs::path folder = SavedElsewhere("llama");
    Rewrite(folder, change);
    return Opened(folder, "llama");
  };
  EXPECT_EQ(rewritten([](SafetensorsWriter::Tensor&, std::vector<float>&) {}), "accepted");
  EXPECT_THAT(rewritten([](SafetensorsWriter::Tensor& tensor, std::vector<float>&) {
                if (tensor.name == "lm_head.weight") tensor.name.clear();
              }),
              HasSubstr("they have no tensor lm_head.weight, and this run has"));
  EXPECT_THAT(rewritten([](SafetensorsWriter::Tensor& tensor, std::vector<float>&) {
                if (tensor.name == "model.norm.weight") tensor.dtype = "I32";
              }),
              HasSubstr("model.norm.weight is I32 in model.safetensors, not F32, BF16 or F16"));
  fs::remove_all(dir_ / "llama");
  const fs::path folder = SavedElsewhere("llama");
  EditConfig(folder, [](Json& config) { config["tie_word_embeddings"] = true; });
  EXPECT_THAT(Opened(folder, "llama", {{"tied_head", true}}),
              HasSubstr("model.safetensors has a tensor lm_head.weight, and this run has not"));
}

TEST_F(WeightsFolderTest, DamagedFilesAreFound) {
  const fs::path ours = Saved("llama");
  const fs::path weights = ours / "model-00001-of-00001.safetensors";
  EXPECT_EQ(Opened(ours, "llama"), "accepted");
  fs::remove(ours / "optimizer-00001-of-00001.safetensors");  // the folder does not need it
  EXPECT_EQ(Opened(ours, "llama"), "accepted");
  {
    std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  EXPECT_EQ(Opened(ours, "llama"), weights.string() + " was changed since it was saved: its hash is another");

  fs::remove_all(dir_ / "llama");
  const fs::path theirs = SavedElsewhere("llama");
  fs::resize_file(theirs / "model.safetensors", fs::file_size(theirs / "model.safetensors") - 4);
  EXPECT_THAT(Opened(theirs, "llama"), HasSubstr("lies outside the file; it may have been cut short"));
  fs::remove(theirs / "model.safetensors");
  EXPECT_THAT(Opened(theirs, "llama"), HasSubstr(" has neither model.safetensors nor model.safetensors.index.json"));
  const auto index = [&](const std::string& text) {
    WriteFileAtomic(theirs / "model.safetensors.index.json", text);
    return Opened(theirs, "llama");
  };
  EXPECT_THAT(index("[]"), HasSubstr("it has no weight_map"));
  EXPECT_THAT(index(R"({"weight_map": {"a": "../model.safetensors"}})"), HasSubstr("a is in no safetensors file"));
  EXPECT_THAT(index(R"({"weight_map": {"a": 5}})"), HasSubstr("a is in no safetensors file of this folder"));
  EXPECT_THAT(index(R"({"weight_map": {"a": "gone.safetensors"}})"), HasSubstr("its gone.safetensors is missing"));
  WriteFileAtomic(theirs / "config.json", "[1]");
  EXPECT_THAT(index("{}"), HasSubstr("config.json: not a model's configuration"));
  fs::remove(theirs / "config.json");
  EXPECT_THAT(index("{}"), HasSubstr(" has no config.json, which says what its weights are of"));
}

TEST_F(WeightsFolderTest, ATensorInTwoFilesIsRefused) {
  const fs::path folder = SavedElsewhere("llama");
  fs::rename(folder / "model.safetensors", folder / "a.safetensors");
  fs::copy_file(folder / "a.safetensors", folder / "b.safetensors");
  WriteFileAtomic(folder / "model.safetensors.index.json",
                  R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  EXPECT_THAT(Opened(folder, "llama"), HasSubstr("the tensor lm_head.weight is in a.safetensors and in b.safetensors"));
}

TEST_F(WeightsFolderTest, AFolderThatIsNotThereIsTheStorages) {
  const auto run = [&](const std::string& path) { return Train(SpecOf("llama", {{"init_from", path}}), {}).result; };
  const RunResult gone = run(dir_ / "gone");
  EXPECT_EQ(gone.status, RunStatus::kInfrastructure);
  EXPECT_EQ(gone.reason, InfrastructureReason::kStorage);
  EXPECT_THAT(gone.message, HasSubstr("cannot read the folder of weights " + (dir_ / "gone").string() + ": No such"));
  std::ofstream(dir_ / "file") << "text";
  const RunResult file = run(dir_ / "file");
  EXPECT_EQ(file.status, RunStatus::kInvalid);
  EXPECT_THAT(file.message, HasSubstr("is a file, not a folder of weights"));
}

TEST_F(WeightsFolderTest, ARunThatIsContinuedNeedsTheFolderNoMore) {
  RunSpec spec = SpecOf("llama", {{"init_from", Saved("llama").string()}, {"steps", 4}});
  const RunResult whole = Train(spec, {}).result;
  ASSERT_EQ(whole.status, RunStatus::kOk) << whole.message;
  spec.checkpoint_dir = dir_ / "ck";
  int64_t steps = 0;
  TrainOptions options;
  options.on_step = [&](const StepReport&) { ++steps; };
  options.told_to_leave = [&] { return steps >= 2; };
  EXPECT_EQ(Train(spec, options).result.reason, InfrastructureReason::kPreempted);
  fs::remove_all(dir_ / "llama");
  const RunResult rest = Train(spec, {}).result;
  ASSERT_EQ(rest.status, RunStatus::kOk) << rest.message;
  EXPECT_EQ(rest.loss, whole.loss);
  spec.init_from = "seed";
  EXPECT_THAT(Train(spec, {}).result.message, HasSubstr("init_from is " + (dir_ / "llama").string()));
}

TEST(ModelConfig, SaysWhatTransformersHasToKnow) {
  const Json llama = Json::parse(EncodeModelConfig(SpecOf("llama"), "F32"));
  EXPECT_EQ(llama, Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
    "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 12, "vocab_size": 131, "max_position_embeddings": 37,
    "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": null,
    "tie_word_embeddings": false, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
    "bos_token_id": null, "eos_token_id": null})"));
  const Json gpt = Json::parse(EncodeModelConfig(SpecOf("gpt", {{"dropout", 0.25}}), "BF16"));
  EXPECT_EQ(gpt, Json::parse(R"({
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "torch_dtype": "bfloat16",
    "n_embd": 48, "n_inner": 104, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 131,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
    "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
    "resid_pdrop": 0.25, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": null, "eos_token_id": null})"));
}

}  // namespace
}  // namespace ridgeline::engine
