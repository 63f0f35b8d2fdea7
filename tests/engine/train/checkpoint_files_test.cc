#include "engine/train/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/device/cpu/executor.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "engine/train/safetensors.h"
#include "engine/train/trainer.h"
#include "tests/base/flips.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model in memory, with everything that its checkpoint files must hold.
struct Machine {
  explicit Machine(const Json& values, int64_t steps = 0) : Machine(BuildStep(SpecFrom(values)), steps) {}
  Machine(StepProgram built, int64_t steps, Communicator* with = nullptr)
      : program(std::move(built)),
        executor(program.trace, program.layout, CpuKernels()),
        model(program, executor),
        alone(MakeSelfCommunicator()),
        state(program, executor, with == nullptr ? *alone : *with) {
    model.Initialize();
    for (int64_t step = 1; step <= steps; ++step) executor.Step({step, 1e-3, 7});
  }
  Manifest At(int64_t step) const {
    Manifest manifest{step, program.spec, {}, {}};
    manifest.history.loss.assign(static_cast<size_t>(step), 1.5);
    manifest.history.step_ns.assign(static_cast<size_t>(step), 10);
    return manifest;
  }
  std::map<std::string, std::vector<std::byte>> Bytes() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const StateTensor& tensor : state.tensors()) {
      if (state.in_parts() && state.communicator().name() == "gloo") continue;  // all ranks must read it at once
      const auto held = state.Held(tensor);
      std::vector<std::byte>& bytes = all[tensor.name];
      bytes.resize(static_cast<size_t>(held.count * tensor.element_bytes()));
      state.Read(tensor, held.first, bytes);
    }
    return all;
  }

  StepProgram program;
  CpuExecutor executor;
  ModelState model;
  std::unique_ptr<Communicator> alone;
  TrainingState state;
};

Json Numbered(const std::string& family, const Numbers& numbers) {
  Json values = TinyModel(family);
  numbers.AddTo(values);
  values["steps"] = 100;
  return values;
}

class CheckpointFilesTest : public ::testing::Test {
 protected:
  CheckpointDir Open(int64_t keep = 2) { return {dir_ / "ck", keep, clock_, *alone_}; }
  // Saves these steps of a model, one after another.
  void Save(const std::vector<int64_t>& steps, int64_t keep = 2) {
    CheckpointDir files = Open(keep);
    for (const int64_t step : steps) files.Save(machine_.state, machine_.At(step));
  }
  fs::path Step(int64_t step) const { return dir_ / "ck" / fmt::format("step-{:08}", step); }
  fs::path Weights(int64_t step) const { return Step(step) / "model-00001-of-00001.safetensors"; }
  // Everything in the folder but the lock.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_ / "ck")) {
      if (entry.path().filename() != ".lock") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // The step that a run would continue from; 0: none.
  int64_t Newest() {
    notes_.clear();
    const auto saved = Open().Newest([&](const std::string& note) { notes_ += note + "\n"; });
    return saved ? saved->manifest.step : 0;
  }
  template <typename Fn>
  static std::string Refusal(const Fn& fn) {
    try {
      fn();
    } catch (const Error& e) {
      return e.message();
    }
    return "accepted";
  }

  fs::path Of(const std::string& family, const Numbers& numbers) const {
    return dir_ / fmt::format("{}-{}-{}-{}", family, numbers.precision, numbers.state, numbers.primary);
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<Communicator> alone_ = MakeSelfCommunicator();
  Machine machine_{[] {
                     Json values = TinyModel("llama");
                     values["batch_size"] = 4;  // two and four ranks can share it
                     return values;
                   }(),
                   2};
  std::string notes_;
};

TEST_F(CheckpointFilesTest, LoadsSavedStateToTheBit) {
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    SCOPED_TRACE(family + " " + numbers.precision + " " + numbers.state);
    const Machine trained(Numbered(family, numbers), 3);
    CheckpointDir(Of(family, numbers), 1, clock_, *alone_).Save(trained.state, trained.At(3));
    Machine fresh(Numbered(family, numbers));
    ASSERT_FALSE(fresh.Bytes() == trained.Bytes());
    Load(OpenSaved(Of(family, numbers) / "step-00000003"), fresh.program.spec, fresh.state);
    EXPECT_TRUE(fresh.Bytes() == trained.Bytes());
    // The weights that the step multiplies are restored too, not only their master weights.
    for (size_t p = 0; p < trained.program.states.size(); ++p) {
      if (trained.program.states[p].quantized()) continue;
      const Tensor& work = trained.program.states[p].work;
      EXPECT_EQ(
          std::memcmp(const_cast<CpuExecutor&>(trained.executor).Data<std::byte>({work.storage, work.dtype}),
                      fresh.executor.Data<std::byte>({work.storage, work.dtype}), static_cast<size_t>(work.bytes())),
          0);
    }
  }
}

// Reads the format by its description, with code that shares nothing with ours.
std::map<std::string, std::pair<Json, std::string>> ReadSafetensors(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  uint64_t header_bytes = 0;
  in.read(reinterpret_cast<char*>(&header_bytes), 8);
  std::string header(header_bytes, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const std::string data((std::istreambuf_iterator<char>(in)), {});
  std::map<std::string, std::pair<Json, std::string>> tensors;
  std::vector<std::pair<size_t, size_t>> ranges;
  const Json document = Json::parse(header);
  for (const auto& [name, entry] : document.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<size_t>();
    const auto end = entry["data_offsets"][1].get<size_t>();
    ranges.emplace_back(begin, end);
    EXPECT_EQ(begin % (entry["dtype"] == "F32" ? 4 : entry["dtype"] == "U8" ? 1 : 2), 0U) << name;
    tensors[name] = {entry, data.substr(begin, end - begin)};
  }
  // There are no holes up to the file's end.
  std::sort(ranges.begin(), ranges.end());
  size_t at = 0;
  for (const auto& [begin, end] : ranges) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(at, data.size());
  EXPECT_EQ((8 + header_bytes) % 8, 0U);
  EXPECT_EQ(Json::parse(header)["__metadata__"]["format"], "pt");
  return tensors;
}

TEST_F(CheckpointFilesTest, OtherToolsReadTheWeights) {
  Save({5});
  const Json index = ReadJsonFile(Step(5) / "model.safetensors.index.json");
  EXPECT_TRUE(index.at("weight_map").contains("model.layers.2.self_attn.k_proj.weight"));
  EXPECT_TRUE(index.at("weight_map").contains("lm_head.weight"));
  const auto tensors = ReadSafetensors(Weights(5));
  EXPECT_EQ(tensors.size(), index.at("weight_map").size());
  size_t bytes = 0;
  for (size_t p = 0; p < machine_.program.shape.parameters.size(); ++p) {
    const Parameter& parameter = machine_.program.shape.parameters[p];
    for (const ParameterPart& part : parameter.parts) {
      SCOPED_TRACE(part.name);
      EXPECT_EQ(index.at("weight_map").at(part.name), "model-00001-of-00001.safetensors");
      const auto& [entry, data] = tensors.at(part.name);
      EXPECT_EQ(entry.at("dtype"), "F32");  // of bf16 with fp32 master weights, the master weights
      EXPECT_EQ(entry.at("shape"),
                parameter.rows == 1 ? Json::array({parameter.cols}) : Json::array({part.rows, parameter.cols}));
      const std::vector<float> values = machine_.model.Weight(p, part);
      ASSERT_EQ(data.size(), values.size() * sizeof(float));
      EXPECT_EQ(std::memcmp(data.data(), values.data(), data.size()), 0);
      bytes += data.size();
    }
  }
  EXPECT_EQ(index.at("metadata").at("total_size"), bytes);
  const auto moments = ReadSafetensors(Step(5) / "optimizer-00001-of-00001.safetensors");
  EXPECT_EQ(moments.size(), 2 * tensors.size());
  EXPECT_EQ(moments.at("model.norm.weight.exp_avg_sq").first.at("shape"), Json::array({48}));
}

TEST_F(CheckpointFilesTest, SavedByFourRanksLoadedByOneOrTwo) {
  Save({7});
  Json four = TinyModel("llama");
  four.update({{"ranks", 4}, {"shard", "full"}, {"batch_size", 1}, {"steps", 9}});
  testing::WithGloo(4, [&](Communicator& communicator) {
    Machine machine(BuildStep(SpecFrom(four), false, communicator.rank()), 0, &communicator);
    Load(OpenSaved(Step(7)), machine.program.spec, machine.state);
    FakeClock clock;
    CheckpointDir(dir_ / "ck", 2, clock, communicator).Save(machine.state, machine.At(8));
  });
  const Manifest manifest = OpenSaved(Step(8)).manifest;
  ASSERT_EQ(manifest.files.size(), 10U);  // two a rank, the index and the model's configuration
  int64_t smallest = INT64_MAX;
  int64_t largest = 0;
  for (const SavedFile& file : manifest.files) {
    if (!file.name.starts_with("optimizer")) continue;
    smallest = std::min(smallest, file.bytes);
    largest = std::max(largest, file.bytes);
  }
  EXPECT_LT(largest, 2 * smallest);  // distributed by size
  const Json map = ReadJsonFile(Step(8) / "model.safetensors.index.json").at("weight_map");
  for (const auto& [name, file] : map.items()) {
    EXPECT_TRUE(ReadSafetensors(Step(8) / file.get<std::string>()).contains(name)) << name << " in " << file;
  }

  const SavedState saved = OpenSaved(Step(8));
  Json values = TinyModel("llama");
  values.update({{"steps", 9}, {"batch_size", 4}});
  Machine one(values);
  Load(saved, one.program.spec, one.state);
  EXPECT_TRUE(one.Bytes() == machine_.Bytes());

  values.update({{"ranks", 2}, {"batch_size", 2}, {"shard", "full"}, {"communicator", "virtual"}});
  Machine half(values);
  Load(saved, half.program.spec, half.state);
  const auto whole = machine_.Bytes();
  int64_t held_bytes = 0;
  for (const auto& [name, bytes] : half.Bytes()) {
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), whole.at(name).begin())) << name;
    held_bytes += static_cast<int64_t>(bytes.size());
  }
  int64_t all_bytes = 0;
  for (const auto& [name, bytes] : whole) all_bytes += static_cast<int64_t>(bytes.size());
  EXPECT_NEAR(static_cast<double>(held_bytes), static_cast<double>(all_bytes) / 2,
              0.01 * static_cast<double>(all_bytes));
}

// Moments and master weights are split over two ranks; both have all codes.
TEST_F(CheckpointFilesTest, QuantizedWeightsSavedByTwoRanksAreLoadedByOne) {
  for (const Numbers& numbers :
       {Numbers{"fp8", "fp32", "quantized"}, {"mxfp8", "bf16", "quantized"}, {"nvfp4", "bf16", "quantized"}}) {
    SCOPED_TRACE(numbers.precision);
    const fs::path dir = Of("llama", numbers);
    const Machine trained(Numbered("llama", numbers), 3);
    CheckpointDir(dir, 2, clock_, *alone_).Save(trained.state, trained.At(3));
    Json two = Numbered("llama", numbers);
    two.update({{"ranks", 2}, {"shard", "optimizer"}, {"batch_size", 1}});
    testing::WithGloo(2, [&](Communicator& communicator) {
      Machine machine(BuildStep(SpecFrom(two), false, communicator.rank()), 0, &communicator);
      Load(OpenSaved(dir / "step-00000003"), machine.program.spec, machine.state);
      FakeClock clock;
      CheckpointDir(dir, 2, clock, communicator).Save(machine.state, machine.At(4));
    });
    Machine one(Numbered("llama", numbers));
    Load(OpenSaved(dir / "step-00000004"), one.program.spec, one.state);
    EXPECT_TRUE(one.Bytes() == trained.Bytes());
  }
}

TEST_F(CheckpointFilesTest, QuantizedWeightsAreSavedAsNumbersToo) {
  for (const char* state : {"fp32", "bf16"}) {
    const Numbers numbers{"nvfp4", state, "quantized"};
    const fs::path dir = Of("gpt", numbers);
    const Machine trained(Numbered("gpt", numbers), 1);
    CheckpointDir(dir, 2, clock_, *alone_).Save(trained.state, trained.At(1));
    const auto weights = ReadSafetensors(dir / "step-00000001/model-00001-of-00001.safetensors");
    const auto p = static_cast<size_t>(trained.program.shape.layers[0].back().in.weight);
    const Parameter& parameter = trained.program.shape.parameters[p];
    const auto& [entry, data] = weights.at("h.0.mlp.c_fc.weight");
    const bool master = numbers.state == "fp32";
    EXPECT_EQ(entry.at("dtype"), master ? "F32" : "BF16");
    EXPECT_EQ(entry.at("shape"), Json::array({parameter.rows, parameter.cols}));
    const std::vector<float> values = trained.model.Weight(p, parameter.parts.front());
    ASSERT_EQ(data.size(), values.size() * (master ? 4 : 2));
    for (size_t i = 0; i < values.size(); ++i) {
      float value = 0;
      if (master) {
        std::memcpy(&value, data.data() + 4 * i, 4);
      } else {
        std::memcpy(reinterpret_cast<char*>(&value) + 2, data.data() + 2 * i, 2);
      }
      ASSERT_NEAR(value, values[i], std::abs(values[i]) / 256);
    }
    EXPECT_FALSE(weights.contains("h.0.mlp.c_fc.weight.codes"));
    const auto others = ReadSafetensors(dir / "step-00000001/optimizer-00001-of-00001.safetensors");
    EXPECT_EQ(others.at("h.0.mlp.c_fc.weight.codes").first.at("dtype"), "U8");
    EXPECT_TRUE(others.contains("h.0.mlp.c_fc.weight.scales"));
  }
}

TEST_F(CheckpointFilesTest, OtherStateTravelsWithIt) {
  const auto machine = [] {
    StepProgram program = BuildStep(SpecFrom(TinyModel("gpt")));
    program.other_state.push_back({"loss_scale", program.tensors.loss});
    return program;
  };
  Machine from(machine(), 0);
  *from.executor.Data<float>(from.program.tensors.loss) = 1024;
  Open().Save(from.state, from.At(1));
  EXPECT_TRUE(ReadSafetensors(Step(1) / "optimizer-00001-of-00001.safetensors").contains("loss_scale"));
  Machine to(machine(), 0);
  Load(OpenSaved(Step(1)), to.program.spec, to.state);
  EXPECT_EQ(to.model.Loss(), 1024);
}

TEST_F(CheckpointFilesTest, TheNewestAreKept) {
  Save({10, 20, 30, 40}, 2);
  EXPECT_THAT(Names(), ElementsAre("step-00000030", "step-00000040"));
  Save({50}, 1);
  EXPECT_THAT(Names(), ElementsAre("step-00000050"));
  EXPECT_EQ(Newest(), 50);
}

TEST_F(CheckpointFilesTest, HalfWrittenOnesArePassedOverAndCleanedUp) {
  Save({10, 20});
  fs::create_directories(dir_ / "ck/.step-00000030.tmp-123");
  fs::copy_file(Weights(20), dir_ / "ck/.step-00000030.tmp-123/model-00001-of-00001.safetensors");
  fs::resize_file(dir_ / "ck/.step-00000030.tmp-123/model-00001-of-00001.safetensors", 1000);
  fs::remove(Step(20) / "manifest.json");
  EXPECT_EQ(Newest(), 10);
  EXPECT_THAT(notes_, HasSubstr("step 20 is passed over"));
  EXPECT_THAT(Names(), ElementsAre("step-00000010", "step-00000020"));
  fs::remove(Step(10) / "manifest.json");
  EXPECT_EQ(Newest(), 0);  // never complete: nothing to continue, and starting anew loses nothing
  Save({20});              // overwrites its remains
  EXPECT_EQ(Newest(), 20);
}

TEST_F(CheckpointFilesTest, DamagedOnesArePassedOverOrNamed) {
  const auto damage = [&](const std::function<void()>& spoil, const std::string& says) {
    fs::remove_all(dir_ / "ck");
    Save({10, 20});
    spoil();
    EXPECT_THAT(Refusal([&] { OpenSaved(Step(20)); }), HasSubstr(says));
    EXPECT_EQ(Newest(), 10) << says;
    EXPECT_THAT(notes_, AllOf(HasSubstr("step 20 is passed over"), HasSubstr(says)));
    Save({30}, 1);  // a damaged checkpoint does not count when old ones are removed
    EXPECT_EQ(Newest(), 30);
  };
  damage([&] { fs::remove(Weights(20)); }, Weights(20).string() + " is missing");
  damage([&] { fs::resize_file(Weights(20), 1000); }, "model-00001-of-00001.safetensors has 1000 bytes");
  damage(
      [&] {
        std::fstream file(Weights(20), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-1, std::ios::end);
        file.put('\x55');
      },
      "model-00001-of-00001.safetensors was changed");
  damage([&] { fs::resize_file(Step(20) / "manifest.json", 50); }, "manifest.json");
  damage([&] { WriteFileAtomic(Step(20) / "manifest.json", R"({"format":"another"})"); }, "not a manifest of ours");
}

TEST_F(CheckpointFilesTest, SkipsOrNamesWhatIsNotAFile) {
  const auto becomes = [&](const fs::path& file, const std::function<void()>& make, const std::string& says) {
    fs::remove_all(dir_ / "ck");
    Save({10, 20});
    fs::remove(file);
    make();
    EXPECT_THAT(Refusal([&] { OpenSaved(Step(20)); }), HasSubstr(file.string() + " " + says));
    EXPECT_EQ(Newest(), 10) << says;
  };
  for (const fs::path& file :
       {Weights(20), Step(20) / "manifest.json", fs::path(Step(20) / "model.safetensors.index.json")}) {
    becomes(
        file, [&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); }, "is a named pipe, not a regular file");
    becomes(
        file, [&] { fs::create_symlink("/dev/zero", file); }, "is a symbolic link, not a regular file");
    becomes(
        file, [&] { fs::create_directory(file); }, "is a folder, not a regular file");
  }
  const auto giant = [](const fs::path& file) {
    WriteFileAtomic(file, "");
    fs::resize_file(file, std::uintmax_t{1} << 40);
  };
  becomes(
      Weights(20), [&] { giant(Weights(20)); }, "has 1099511627776 bytes; ");
  becomes(
      Step(20) / "manifest.json", [&] { giant(Step(20) / "manifest.json"); }, "has 1099511627776 bytes, and may ");
}

// Flips one bit in any file: the file still reads back the same, or it is named.
TEST_F(CheckpointFilesTest, EveryBitThatIsAnotherIsFound) {
  Save({10});
  for (const char* name : {"manifest.json", "model-00001-of-00001.safetensors", "optimizer-00001-of-00001.safetensors",
                           "model.safetensors.index.json", "config.json"}) {
    const fs::path file = Step(10) / name;
    const std::string whole = ReadFile(file);
    testing::ExpectFlipsFound(name, whole, 100, [&](const std::string& flipped) {
      std::ofstream(file, std::ios::binary) << flipped;
      std::string says;
      const std::string refusal = Refusal([&] { says = EncodeManifest(OpenSaved(Step(10)).manifest); });
      return refusal == "accepted" ? says : testing::kRefused + refusal;
    });
    std::ofstream(file, std::ios::binary) << whole;
  }
}

TEST_F(CheckpointFilesTest, AHeaderLongerThanAnyIsRefused) {
  const fs::path file = dir_ / "giant.safetensors";
  const uint64_t header_bytes = uint64_t{1} << 39;
  WriteFileAtomic(file, {reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes});
  fs::resize_file(file, std::uintmax_t{1} << 40);
  EXPECT_THAT(Refusal([&] { SafetensorsFile tensors(file); }), HasSubstr("its header is longer than any"));
}

TEST_F(CheckpointFilesTest, DoesNotStartOverIfAllFilesAreDamaged) {
  Save({10, 20});
  fs::remove(Weights(10));
  fs::remove(Weights(20));
  EXPECT_THAT(Refusal([&] { Newest(); }), AllOf(HasSubstr("are whole"), HasSubstr(Weights(20).string())));
}

TEST_F(CheckpointFilesTest, AManifestOfAnotherVersionIsRefused) {
  Save({10});
  Json manifest = ReadJsonFile(Step(10) / "manifest.json");
  manifest["version"] = 2;
  WriteFileAtomic(Step(10) / "manifest.json", manifest.dump());
  EXPECT_THAT(Refusal([&] { OpenSaved(Step(10)); }), HasSubstr("version 2, but this program speaks 1"));
  manifest["version"] = 1;
  manifest["files"][0]["name"] = "../../etc/passwd";
  WriteFileAtomic(Step(10) / "manifest.json", manifest.dump());
  EXPECT_THAT(Refusal([&] { OpenSaved(Step(10)); }), HasSubstr("a file is called"));
}

TEST_F(CheckpointFilesTest, AnotherShapeIsRefusedByItsTensorAndNothingIsChanged) {
  Save({10});
  const SavedState saved = OpenSaved(Step(10));
  const auto refusal = [&](const Json& changes) {
    Json values = TinyModel("llama");
    values["batch_size"] = 4;
    values.update(changes);
    Machine other(values);
    const auto before = other.Bytes();
    const std::string says = Refusal([&] { Load(saved, other.program.spec, other.state); });
    if (says != "accepted") {
      EXPECT_TRUE(other.Bytes() == before);
    }
    return says;
  };
  EXPECT_THAT(refusal({{"vocab", 140}}), AllOf(HasSubstr("of another shape"), HasSubstr("[131, 48]"),
                                               HasSubstr("[140, 48]"), HasSubstr("model-00001-of-00001.safetensors")));
  EXPECT_THAT(refusal({{"layers", 4}}), HasSubstr("they have no tensor model.layers.3."));
  EXPECT_THAT(refusal({{"layers", 2}}), HasSubstr("has a tensor model.layers.2."));
  EXPECT_THAT(refusal({{"state_precision", "bf16"}}), AllOf(HasSubstr("is F32 in"), HasSubstr("BF16 in this run")));
  EXPECT_THAT(refusal({{"seed", 5}}), AllOf(HasSubstr("of another run"), HasSubstr("seed is 1234 there and 5 here")));
  EXPECT_THAT(refusal({{"batch_size", 3}}), HasSubstr("the global batch is 4 there and 3 here"));
  EXPECT_THAT(refusal({{"warmup_steps", 0}, {"steps", 9}}), HasSubstr("of step 10, and this run has 9 steps"));
  // Fields that do not change the loss series may differ.
  EXPECT_EQ(refusal({{"batch_size", 1}, {"grad_accumulation", 4}, {"steps", 200}, {"checkpointing", "full"}}),
            "accepted");
}

TEST_F(CheckpointFilesTest, ACosineRunMustBeAsLongAsItWas) {
  Manifest manifest = machine_.At(1);
  manifest.spec.schedule = "cosine";
  RunSpec longer = manifest.spec;
  EXPECT_EQ(Refusal([&] { CheckContinues(manifest, longer, "x"); }), "accepted");
  longer.steps += 1;
  EXPECT_THAT(Refusal([&] { CheckContinues(manifest, longer, "x"); }), HasSubstr("steps is 7 there and 8 here"));
}

TEST_F(CheckpointFilesTest, FilesThatAreNotOursAreLeftAlone) {
  Save({10});
  WriteFileAtomic(dir_ / "ck/notes.txt", "mine");
  WriteFileAtomic(Step(10) / "notes.txt", "mine");
  fs::create_directories(dir_ / "ck/step-best");
  fs::create_directories(dir_ / "ck/.step-00000001.tmp-1");
  WriteFileAtomic(dir_ / "ck/.step-00000001.tmp-1/notes.txt", "mine");
  Save({20, 30}, 1);
  EXPECT_THAT(Names(), ElementsAre(".step-00000001.tmp-1", "notes.txt", "step-00000010", "step-00000030", "step-best"));
  EXPECT_EQ(ReadFile(Step(10) / "notes.txt"), "mine");
  // They are never overwritten either.
  const std::string weights = ReadFile(Weights(10));
  EXPECT_THAT(Refusal([&] { Save({10}); }), HasSubstr("holds files that are not ours"));
  EXPECT_EQ(ReadFile(Weights(10)), weights);
  WriteFileAtomic(Step(40), "a file");
  EXPECT_THAT(Refusal([&] { Save({40}); }), HasSubstr("is there already"));
  EXPECT_EQ(ReadFile(Step(40)), "a file");
  EXPECT_THAT(Names(), Not(::testing::Contains(HasSubstr(".step-00000040"))));
}

TEST_F(CheckpointFilesTest, OneRunAtATimeWritesInAFolder) {
  const CheckpointDir first = Open();
  EXPECT_THAT(Refusal([&] { Open(); }), HasSubstr("another run writes checkpoint files to " + (dir_ / "ck").string()));
}

TEST_F(CheckpointFilesTest, AFullDiskKeepsWhatWasThere) {
  Save({10});
  CheckpointDir files = Open();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit before = limit;
  // The disk is full during the weights, the moments or the manifest.
  const auto weights = static_cast<rlim_t>(fs::file_size(Weights(10)));
  const auto moments = static_cast<rlim_t>(fs::file_size(Step(10) / "optimizer-00001-of-00001.safetensors"));
  for (const rlim_t bytes : {rlim_t{0}, weights / 2, moments - 1}) {
    limit.rlim_cur = bytes;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const std::string says = Refusal([&] { files.Save(machine_.state, machine_.At(20)); });
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(says, HasSubstr("cannot write"));
    EXPECT_THAT(Names(), ElementsAre("step-00000010"));
  }
  files.Save(machine_.state, machine_.At(20));
  EXPECT_EQ(OpenSaved(Step(20)).manifest.step, 20);
}

TEST_F(CheckpointFilesTest, WeightsThatAreNotFiniteAreNotSaved) {
  for (const Numbers& numbers : kNumbers) {
    Machine poisoned(Numbered("llama", numbers));
    const ParameterPart& part = poisoned.program.shape.parameters[3].parts[0];
    const ParameterState& state = poisoned.program.states[3];
    if (state.work.defined() || state.master.defined()) {
      const std::vector<float> values = {NAN};
      poisoned.model.SetWeight(3, part, values);
    } else {  // the codes that NaN becomes
      const bool in_scales = state.rows.quantizer.format == Format::kE2M1;
      *poisoned.executor.Data<uint8_t>(in_scales ? state.rows.scales : state.rows.codes) =
          InfoOf(Format::kE4M3).nan_code;
    }
    EXPECT_THAT(Refusal([&] { Open().Save(poisoned.state, poisoned.At(5)); }),
                AllOf(HasSubstr(part.name), HasSubstr("not finite")));
  }
  EXPECT_THAT(Names(), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::engine
