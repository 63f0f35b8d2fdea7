// Ranks that share the products of each layer match one process. The ranks are threads of this test, over Gloo.
//
// The bounds. A sum over n terms in another order differs by about sqrt(n) u of its size, where u = 2^-24 is fp32's
// rounding and errors are independent (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 2.8).
// The longest sums here have 144 terms. A gradient has passed through at most 28 products whose sums the ranks change:
// four of each layer, forward and backward, and those of the head and of the embedding. Independent errors add up as
// their root, to 12 sqrt(28) u = 3.8e-6 of a gradient's norm. The loss is a mean over 72 tokens or more, so 1e-6 bounds
// it. That is the first step. Adam divides by a gradient's size, so a small gradient's error moves its weight as far as
// a large one's. After 2 steps, weights differed by at most 3.7e-6 of their norm, and their bound is 1.2e-5.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/port.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/device/cpu/executor.h"
#include "engine/step/program.h"
#include "engine/step/training_state.h"
#include "engine/train/checkpoint_files.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/data.h"
#include "engine/train/model_state.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"
#include "predict/memory_forecast.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

constexpr double kLossBound = 1e-6;
constexpr double kGradientBound = 4e-6;
constexpr double kWeightBound = 1.2e-5;
constexpr int64_t kMeshSteps = 2;

// One rank between its steps.
struct Rank {
  Rank(const RunSpec& spec, Communicator& communicator)
      : communicator(communicator),
        program(BuildStep(spec, true, communicator.rank())),
        executor(program.trace, program.layout, CpuKernels(), std::make_shared<CollectiveQueue>(communicator)),
        model(program, executor),
        state(program, executor, communicator),
        data(program.tensors.ids.defined() ? MakeTokenSource(spec, communicator.rank()) : nullptr) {
    model.Initialize();
  }
  double Step(int64_t step) {
    if (data) {
      std::vector<int32_t> ids(static_cast<size_t>(program.tokens_per_step()));
      std::vector<int32_t> targets(ids.size());
      data->Fill(step, ids, targets);
      executor.Write<int32_t>(program.tensors.ids, 0, ids);
      executor.Write<int32_t>(program.tensors.targets, 0, targets);
    }
    executor.Step({step, LearningRate(program.spec, step, kMeshSteps), 7});
    return MeanOverRanks(model.Loss(), communicator);
  }
  std::map<std::string, std::vector<std::byte>> Tensors() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const StateTensor& tensor : state.tensors()) {
      std::vector<std::byte>& bytes = all[tensor.name];
      bytes.resize(static_cast<size_t>(tensor.bytes()));
      state.Read(tensor, 0, bytes);
    }
    return all;
  }

  Communicator& communicator;
  StepProgram program;
  CpuExecutor executor;
  ModelState model;
  TrainingState state;
  std::unique_ptr<TokenSource> data;
};

// Calls fn with the communicator of each rank of a mesh like the spec's. A rank has one core.
template <typename Fn>
void OnRanks(const RunSpec& spec, const Fn& fn) {
  if (spec.ranks == 1) {
    omp_set_num_threads(1);
    return fn(*MakeSelfCommunicator());
  }
  const ReservedPort port;
  const auto errors = testing::OnThreads(spec.ranks, [&](int64_t place) {
    omp_set_num_threads(1);  // before kernels choose how many threads they have
    fn(*ConnectGloo(testing::PlaceOf(place, spec.ranks, port), {{"spec", "the same"}}, MeshOf(spec)));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

struct MeshOutcome {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::map<std::string, std::vector<std::byte>> state;    // whole tensors, the same on every rank
  std::vector<std::vector<float>> gradients;              // of the first step, whole; of fp32 with shard: none
  std::vector<std::vector<std::vector<float>>> of_ranks;  // each rank's share of them
  bool operator==(const MeshOutcome&) const = default;
};

bool HasGradients(const RunSpec& spec) { return spec.shard == ShardMode::kNone && spec.precision == Precision::kFp32; }

// Runs the steps on one rank. The outcome is that of all ranks.
void Run(Rank& rank, MeshOutcome& outcome) {
  for (int64_t step = 1; step <= kMeshSteps; ++step) {
    const double loss = rank.Step(step);
    if (step == 1 && HasGradients(rank.program.spec)) {
      auto& mine = outcome.of_ranks[static_cast<size_t>(rank.communicator.rank())];
      for (const ParameterState& parameter : rank.program.states) {
        mine.push_back(rank.executor.Read<float>(parameter.gradient, 0, parameter.gradient.elements()));
      }
    }
    if (rank.communicator.rank() != 0) continue;
    outcome.losses.push_back(loss);
    const Tensor& norm = rank.program.grad_norm;
    if (norm.defined()) outcome.grad_norms.push_back(rank.executor.Element<float>(norm));
  }
  auto state = rank.Tensors();
  if (rank.communicator.rank() == 0) outcome.state = std::move(state);
}

// Makes whole gradients of the ranks' shares.
void JoinGradients(const RunSpec& spec, MeshOutcome& outcome) {
  for (const Parameter& parameter : ShapeOf(spec).parameters) {
    outcome.gradients.emplace_back(static_cast<size_t>(parameter.elements()), NAN);
  }
  for (int64_t rank = 0; rank < spec.ranks; ++rank) {
    const ModelShape shape = ShapeOf(spec, rank);
    for (size_t p = 0; p < shape.parameters.size(); ++p) {
      const Share& share = shape.parameters[p].share;
      share.ForRuns(0, share.elements(), [&](int64_t element, int64_t whole, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          float& gradient = outcome.gradients[p][static_cast<size_t>(whole + i)];
          const float mine = outcome.of_ranks[static_cast<size_t>(rank)][p][static_cast<size_t>(element + i)];
          if (!std::isnan(gradient)) {
            EXPECT_EQ(gradient, mine) << "what ranks have alike has one gradient";
          }
          gradient = mine;
        }
      });
    }
  }
}

// Runs one spec after another. All have one mesh: ranks connect once.
std::vector<MeshOutcome> OutcomesOnMesh(const std::vector<RunSpec>& specs) {
  std::vector<MeshOutcome> outcomes(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) outcomes[i].of_ranks.resize(static_cast<size_t>(specs[i].ranks));
  OnRanks(specs.front(), [&](Communicator& communicator) {
    std::unique_ptr<Rank> rank;
    for (size_t i = 0; i < specs.size(); ++i) {
      // Until the next one is made, the last one keeps the scratch of this thread's kernels.
      rank = std::make_unique<Rank>(specs[i], communicator);
      Run(*rank, outcomes[i]);
    }
  });
  for (size_t i = 0; i < specs.size(); ++i) {
    if (HasGradients(specs[i])) JoinGradients(specs[i], outcomes[i]);
  }
  return outcomes;
}

// ||got - want|| / ||want||
double Difference(const std::vector<float>& got, const std::vector<float>& want) {
  double sum = 0;
  double norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - want[i];
    sum += difference * difference;
    norm += static_cast<double>(want[i]) * want[i];
  }
  return norm > 0 ? std::sqrt(sum / norm) : std::sqrt(sum);
}

std::vector<float> Floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void ExpectClose(const std::vector<double>& got, const std::vector<double>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], bound * std::abs(want[i])) << "step " << i + 1;
}

Json Divisible(const std::string& family, const std::string& precision = "fp32") {
  Json values = TinyModel(family);
  values.update({{"layers", 2},
                 {"seq_length", 36},
                 {"precision", precision},
                 {"learning_rate", 1e-3},
                 {"steps", kMeshSteps},
                 {"warmup_steps", 0}});
  if (values.contains("vocab")) values["vocab"] = 132;
  return values;
}

struct Split {
  int64_t tensor = 2;
  int64_t data = 1;
  std::string shard = "none";
  bool sequence = true;
  int64_t shard_ranks = 0;
  std::string name() const {
    const std::string groups = shard_ranks > 0 ? fmt::format("over{}", shard_ranks) : "";
    return fmt::format("tp{}_dp{}_{}{}{}", tensor, data, shard, groups, sequence ? "" : "_whole");
  }
  // The ranks have the batch of the one process between them.
  RunSpec Of(Json values) const {
    values["batch_size"] = values["batch_size"].get<int64_t>() / data;
    values.update({{"ranks", tensor * data}, {"tensor_parallel", tensor}, {"shard", shard}});
    values["shard_ranks"] = shard_ranks;
    if (tensor > 1) values["sequence_parallel"] = sequence;
    return SpecFrom(values);
  }
};

std::vector<RunSpec> SpecsOf(const std::vector<Json>& cases, const Split& split) {
  std::vector<RunSpec> specs;
  for (const Json& values : cases) specs.push_back(split.Of(values));
  return specs;
}

class TensorParallel : public ::testing::TestWithParam<Split> {};

// The first family in both ways: with updates during the backward pass, and with updates that wait for all gradients.
std::vector<Json> Cases(int64_t batch_size) {
  std::vector<Json> cases;
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    for (const bool all : {false, true}) {
      if (family > 0 && all != (family % 2 == 0)) continue;
      Json values = Divisible(kFamilies[family]);
      values["batch_size"] = batch_size;
      if (all) {
        values.update({{"dropout", 0.1}, {"grad_clip", 0.05}, {"grad_accumulation", 2}, {"checkpointing", "full/2"}});
      }
      cases.push_back(values);
    }
  }
  return cases;
}

TEST_P(TensorParallel, MatchesOneProcess) {
  const std::vector<Json> cases = Cases(std::min<int64_t>(2 * GetParam().data, 4));
  static std::map<int64_t, std::vector<MeshOutcome>> of_one_process;  // by data-parallel ranks
  std::vector<MeshOutcome>& wanted = of_one_process[GetParam().data];
  if (wanted.empty()) wanted = OutcomesOnMesh(SpecsOf(cases, {1}));
  std::vector<RunSpec> specs = SpecsOf(cases, GetParam());
  const bool repeats = GetParam().data == 1 || GetParam().shard == "full";
  if (repeats) specs.push_back(specs[1]);
  const std::vector<MeshOutcome> all = OutcomesOnMesh(specs);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    const MeshOutcome& got = all[i];
    const MeshOutcome& want = wanted[i];
    ExpectClose(got.losses, want.losses, kLossBound);
    ExpectClose(got.grad_norms, want.grad_norms, kGradientBound);
    const ModelShape shape = ShapeOf(SpecFrom(cases[i]));
    for (size_t p = 0; p < got.gradients.size(); ++p) {
      EXPECT_LE(Difference(got.gradients[p], want.gradients[p]), kGradientBound)
          << "gradient of " << shape.parameters[p].parts.front().name;
    }
    for (const Parameter& parameter : shape.parameters) {
      for (const ParameterPart& part : parameter.parts) {
        const double difference = Difference(Floats(got.state.at(part.name)), Floats(want.state.at(part.name)));
        EXPECT_LE(difference, kWeightBound) << part.name;
      }
    }
  }
  if (repeats) {
    EXPECT_TRUE(all.back() == all[1]) << "a repeat has the same bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TensorParallel,
                         ::testing::Values(Split{2}, Split{2, 1, "none", false}, Split{4}, Split{2, 2},
                                           Split{2, 2, "optimizer"}, Split{2, 2, "gradients"}, Split{2, 2, "full"},
                                           Split{4, 2, "full"}, Split{2, 4, "full", true, 2}),
                         [](const auto& info) { return info.param.name(); });

// A term of a sum is rounded to 16 bits before it is added, and codes follow from rounded numbers, so losses differ as
// much as they do between two orders of rounding.
TEST(TensorParallelNumbers, EveryPrecisionStaysWithinItsRounding) {
  for (const bool sequence : {true, false}) {
    std::vector<Json> cases;
    for (const Numbers& numbers : kNumbers) {
      if (numbers.precision == "fp32" || numbers.primary == "quantized") continue;
      Json& values = cases.emplace_back(Divisible(kFamilies[(cases.size() + (sequence ? 0 : 1)) % kFamilies.size()]));
      numbers.AddTo(values);
      values["grad_clip"] = 1.0;
    }
    const std::vector<MeshOutcome> want = OutcomesOnMesh(SpecsOf(cases, {1}));
    const std::vector<MeshOutcome> got = OutcomesOnMesh(SpecsOf(cases, {.sequence = sequence}));
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cases[i].dump());
      const std::string precision = cases[i]["precision"];
      const bool is_16_bit = precision == "bf16" || precision == "fp16";
      ExpectClose(got[i].losses, want[i].losses, is_16_bit ? 1e-3 : precision == "nvfp4" ? 3e-2 : 1e-2);
    }
  }
}

TEST(TensorParallelNumbers, CheckpointingChangesNoBit) {
  std::vector<Json> cases;
  for (const Numbers& numbers : {Numbers{"fp32", "fp32"}, Numbers{"fp8", "fp32"}}) {
    for (const std::string& policy : kPolicies) {
      Json& values = cases.emplace_back(Divisible("llama"));
      numbers.AddTo(values);
      values.update({{"layers", 3}, {"dropout", 0.1}, {"checkpointing", policy}});
    }
  }
  const std::vector<MeshOutcome> outcomes = OutcomesOnMesh(SpecsOf(cases, {2}));
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(outcomes[i].state, outcomes[i / kPolicies.size() * kPolicies.size()].state) << cases[i].dump();
  }
}

// The scales of delayed scaling are one process's: amaxes are those of whole tensors.
TEST(TensorParallelNumbers, RanksAgreeOnDelayedScales) {
  Json values = Divisible("gpt", "fp8");
  values["learning_rate"] = 0.0;  // so that no rounding grows
  const MeshOutcome want = OutcomesOnMesh({SpecFrom(values)}).front();
  const MeshOutcome got = OutcomesOnMesh({Split{4}.Of(values)}).front();
  const auto first = Floats(want.state.at("fp8.forward.scale"));
  const auto second = Floats(got.state.at("fp8.forward.scale"));
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(second[i], first[i], 0.02 * first[i]) << i;
}

// What one mesh saves, another loads: every tensor of the state has the same bytes.
TEST(TensorParallelFiles, AreOfAnyMesh) {
  const Numbers numbers[] = {{"bf16", "fp32"}, {"fp8", "bf16"}, {"fp32", "fp32"}};
  std::vector<Json> cases;
  for (const std::string& family : kFamilies) {
    Json& values = cases.emplace_back(Divisible(family));
    numbers[(cases.size() - 1) % std::size(numbers)].AddTo(values);
    values.update({{"layers", 1}, {"batch_size", 4}});
  }
  std::vector<std::map<std::string, std::vector<std::byte>>> first(cases.size());
  SystemClock clock;
  TempDir dir;
  std::filesystem::path saved;
  for (const Split& split : {Split{1},
                             {4},
                             {2, 2, "optimizer"},
                             {2, 2, "full"},
                             {4, 2, "full"},
                             {1, 4, "full", true, 2},
                             {2, 4, "optimizer", true, 2},
                             {1, 2, "full"}}) {
    const std::vector<RunSpec> specs = SpecsOf(cases, split);
    OnRanks(specs.front(), [&](Communicator& communicator) {
      std::unique_ptr<Rank> last;
      for (size_t i = 0; i < cases.size(); ++i) {
        last = std::make_unique<Rank>(specs[i], communicator);
        Rank& rank = *last;
        const std::string name = "case" + std::to_string(i);
        if (saved.empty()) {
          rank.Step(1);
          first[i] = rank.Tensors();
        } else {
          Load(OpenSaved(saved / name / "step-00000001"), specs[i], rank.state);
          EXPECT_TRUE(rank.Tensors() == first[i]) << split.name() << " " << cases[i].dump();
        }
        Manifest manifest{1, specs[i], {}, {}};
        manifest.history.loss = {1.5};
        manifest.history.step_ns = {10};
        CheckpointDir(dir / split.name() / name, 2, clock, communicator).Save(rank.state, manifest);
      }
    });
    saved = dir / split.name();
  }
}

// Four ranks have two heads of keys. Were the two of a head to differ in a bit, a file would have the first one's.
TEST(TensorParallelFiles, HaveTheFirstRanksElementsOfWhatSeveralHave) {
  const RunSpec spec = Split{4}.Of(Divisible("llama"));
  const int64_t qkv = ShapeOf(spec).layers.front().front().in.weight;
  OnRanks(spec, [&](Communicator& communicator) {
    Rank rank(spec, communicator);
    const Tensor& weight = rank.program.states[static_cast<size_t>(qkv)].work;
    rank.executor.Write<float>(
        weight, 0,
        std::vector<float>(static_cast<size_t>(weight.elements()), static_cast<float>(rank.communicator.rank())));
    const auto tensors = rank.Tensors();
    for (const auto& [name, ranks] :
         {std::pair{"q_proj", std::vector{0, 1, 2, 3}}, {"k_proj", std::vector{0, 2}}, {"v_proj", std::vector{0, 2}}}) {
      const auto values = Floats(tensors.at(fmt::format("model.layers.0.self_attn.{}.weight", name)));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], static_cast<float>(ranks[i * ranks.size() / values.size()])) << name << " " << i;
      }
    }
  });
}

TEST(TensorParallelVirtual, RankZeroHasItsMemoryAndFiniteNumbers) {
  for (const std::string& family : kFamilies) {
    Json values = Divisible(family, "bf16");
    const RunSpec spec = Split{2, 2, "full"}.Of(values);
    values.update({{"batch_size", 1}, {"ranks", 4}, {"tensor_parallel", 2}, {"shard", "full"}});
    values["communicator"] = "virtual";
    const RunResult result = Train(SpecFrom(values), {}).result;
    EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
    EXPECT_EQ(result.memory.planned_peak_bytes, BuildStep(spec).layout.slab_bytes);
    EXPECT_EQ(result.memory.planned_peak_bytes, predict::PredictMemory(spec).planned_peak_bytes);
    EXPECT_EQ(result.tokens_per_step, 2 * 36) << "two data-parallel ranks have tokens of their own";
    EXPECT_NEAR(result.throughput.steady_tokens_per_s, 2 * 36 * 1e9 / static_cast<double>(result.step_ns.median_ns),
                1e-6 * result.throughput.steady_tokens_per_s);
  }
}

// A rank has half of the FLOPs that two ranks have together.
TEST(TensorParallelVirtual, RanksHaveTheStepsFlopsBetweenThem) {
  for (const std::string& family : kFamilies) {
    for (const bool sequence : {true, false}) {
      const Json values = Divisible(family, "bf16");
      const FlopFigures alone = CountFlops(BuildStep(SpecFrom(values)));
      const FlopFigures shared = CountFlops(BuildStep(Split{.sequence = sequence}.Of(values)));
      EXPECT_DOUBLE_EQ(2 * shared.model_causal, alone.model_causal) << family;
      EXPECT_DOUBLE_EQ(2 * shared.model_non_causal, alone.model_non_causal) << family;
      EXPECT_DOUBLE_EQ(2 * shared.executed, alone.executed) << family;
    }
  }
}

}  // namespace
}  // namespace ridgeline::engine
