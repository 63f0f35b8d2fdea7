// The calls that the store records for ranks, seen in the trace of whole steps.
#include "engine/shard/parameter_store.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/ops/quantize.h"
#include "engine/step/program.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

RunSpec Sharded(const std::string& family, const std::string& shard, int64_t ranks, Json more = {}) {
  Json values = TinyModel(family);
  values.update({{"shard", shard}, {"ranks", ranks}});
  if (!more.is_null()) values.update(more);
  return SpecFrom(values);
}

bool Begins(const OpCall& call) {
  return call.op == &kAllGather || call.op == &kReduceScatter || call.op == &kAllReduce;
}

template <typename Fn>
void ForEachProgram(const Fn& fn) {
  for (const std::string& family : kFamilies) {
    for (const char* shard : {"none", "optimizer", "full"}) {
      for (const std::string& policy : kPolicies) {
        for (const bool whole_step : {false, true}) {
          Json more = {{"checkpointing", policy}};
          if (whole_step) more.update({{"grad_accumulation", 3}, {"grad_clip", 1.0}});
          SCOPED_TRACE(family + " " + shard + " " + policy + (whole_step ? " clipped" : ""));
          fn(BuildStep(Sharded(family, shard, 3, more)));
        }
      }
    }
  }
}

TEST(ParameterStore, RanksKeepEveryElementOnce) {
  for (const char* shard : {"optimizer", "full"}) {
    for (const int64_t ranks : {2, 3, 7, 64}) {
      const RunSpec spec = Sharded("gpt", shard, ranks);
      std::vector<int64_t> next;  // the first element of each parameter that no rank has so far
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const StepProgram program = BuildStep(spec, false, rank);
        next.resize(program.states.size());
        for (size_t p = 0; p < next.size(); ++p) {
          const ParameterState& state = program.states[p];
          EXPECT_EQ(state.whole.defined(), spec.shard == ShardMode::kOptimizer);
          if (!state.work.defined()) continue;
          EXPECT_EQ(state.first, next[p]);
          EXPECT_EQ(state.m.elements(), state.work.elements());
          next[p] += state.work.elements();
        }
      }
      const ModelShape shape = ShapeOf(spec);
      for (size_t p = 0; p < next.size(); ++p) EXPECT_EQ(next[p], shape.parameters[p].elements());
    }
  }
}

TEST(ParameterStore, EveryRankHasAPlanOfOneSize) {
  for (const char* shard : {"none", "optimizer", "full"}) {
    const RunSpec spec = Sharded("llama", shard, 7);
    const int64_t slab_bytes = BuildStep(spec).layout.slab_bytes;
    for (int64_t rank = 1; rank < 7; ++rank) EXPECT_EQ(BuildStep(spec, false, rank).layout.slab_bytes, slab_bytes);
  }
}

// Calls `fn` with the spec of each family on two times two ranks that share products and rows.
template <typename Fn>
void ForEachTensorParallel(const Fn& fn) {
  for (const std::string& family : kFamilies) {
    for (const char* shard : {"none", "optimizer", "gradients", "full"}) {
      for (const bool whole_step : {false, true}) {
        for (const bool splits_tokens : {false, true}) {
          Json more = {{"tensor_parallel", 2}, {"sequence_parallel", splits_tokens}, {"vocab", 132}};
          if (family == "stack") more.erase("vocab");
          if (whole_step) more.update({{"grad_accumulation", 3}, {"grad_clip", 1.0}});
          SCOPED_TRACE(family + " " + shard + " " + more.dump());
          fn(Sharded(family, shard, 4, more));
        }
      }
    }
  }
}

TEST(ParameterStore, EveryTensorParallelRankHasAPlanOfOneSize) {
  ForEachTensorParallel([](const RunSpec& spec) {
    const int64_t slab_bytes = BuildStep(spec).layout.slab_bytes;
    for (int64_t rank = 1; rank < 4; ++rank) EXPECT_EQ(BuildStep(spec, false, rank).layout.slab_bytes, slab_bytes);
  });
}

// Elements [first, last) of a storage.
struct Touched {
  StorageId storage;
  int64_t first;
  int64_t last;
  auto operator<=>(const Touched&) const = default;
};

void ExpectNothingTouchesWhatIsFlying(const StepProgram& program) {
  std::map<int32_t, std::set<Touched>> flying;  // what each flight moves
  int64_t flights = 0;
  for (const OpCall& call : program.trace.calls()) {
    std::set<Touched> touched;
    for (const Tensor& tensor : call.tensors()) {
      if (!tensor.defined()) continue;
      touched.insert(
          {tensor.storage, tensor.offset, tensor.offset + (tensor.rows - 1) * tensor.row_stride + tensor.cols});
    }
    if (call.op == &kLand) {
      const int32_t flight = CollectiveAttrsOf(call).flight;
      ASSERT_TRUE(flying.contains(flight)) << "a flight landed that never began";
      EXPECT_EQ(flying.at(flight), touched) << "its storages must live until it has landed";
      flying.erase(flight);
      continue;
    }
    for (const auto& [flight, moved] : flying) {
      for (const Touched& there : moved) {
        for (const Touched& here : touched) {
          EXPECT_FALSE(here.storage == there.storage && here.first < there.last && there.first < here.last)
              << call.op->name << " touches what flies";
        }
      }
    }
    if (Begins(call)) {
      ++flights;
      EXPECT_TRUE(flying.emplace(CollectiveAttrsOf(call).flight, touched).second) << "two flights have the same number";
    }
  }
  EXPECT_TRUE(flying.empty()) << "a flight has not landed at the end of the step";
  EXPECT_GT(flights, 0);
}

TEST(ParameterStore, NothingTouchesWhatIsFlying) {
  ForEachProgram(ExpectNothingTouchesWhatIsFlying);
  ForEachTensorParallel([](const RunSpec& spec) { ExpectNothingTouchesWhatIsFlying(BuildStep(spec)); });
  for (const Numbers& numbers : {Numbers{"nvfp4", "fp32", "quantized"}, {"mxfp8", "bf16", "quantized"}}) {
    for (const char* shard : {"none", "optimizer"}) {
      for (const double clip : {0.0, 1.0}) {
        Json more = {{"grad_clip", clip}};
        numbers.AddTo(more);
        SCOPED_TRACE(more.dump());
        ExpectNothingTouchesWhatIsFlying(BuildStep(Sharded("llama", shard, 3, more)));
      }
    }
  }
}

TEST(ParameterStore, ALayersWeightsAreOnTheirWayWhileTheOneBeforeComputes) {
  for (const std::string& policy : kPolicies) {
    Json more = {{"layers", 6}, {"checkpointing", policy}};
    const StepProgram program = BuildStep(Sharded("llama", "full", 4, more));
    const auto& calls = program.trace.calls();
    // A landing must wait if nothing was computed since its flight began.
    std::map<int32_t, size_t> begun;
    int64_t gathers = 0;
    int64_t bare = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].op == &kAllGather) begun[CollectiveAttrsOf(calls[i]).flight] = i;
      if (calls[i].op != &kLand || !begun.contains(CollectiveAttrsOf(calls[i]).flight)) continue;
      ++gathers;
      const bool computed =
          std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(begun.at(CollectiveAttrsOf(calls[i]).flight)),
                      calls.begin() + static_cast<std::ptrdiff_t>(i),
                      [](const OpCall& call) { return !Begins(call) && call.op != &kLand && call.bytes() > 0; });
      bare += computed ? 0 : 1;
    }
    EXPECT_EQ(bare, 1) << policy << ": only the first window has nothing before it";
    // Forward: embedding, six layers, head and norm. Backward: the layers again, except for the last, which stayed.
    EXPECT_GE(gathers, 1 + 6 + 2 + 6) << policy;
  }
}

TEST(ParameterStore, AtMostTwoLayersOfWeightsLiveAtOnce) {
  const StepProgram program = BuildStep(Sharded("llama", "full", 4, {{"layers", 8}}));
  const auto& calls = program.trace.calls();
  std::map<StorageId, std::pair<size_t, size_t>> lives;  // of the gathered weights of layers
  int64_t layer_bytes = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    for (const Tensor& tensor : calls[i].tensors()) {
      if (!tensor.defined()) continue;
      const Storage& storage = program.trace.storages()[static_cast<size_t>(tensor.storage)];
      if (storage.persistent || storage.category != Category::kParameters) continue;
      const auto [it, is_new] = lives.try_emplace(tensor.storage, i, i);
      it->second.second = i;
      layer_bytes = std::max(layer_bytes, storage.bytes);
    }
  }
  int64_t most = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    int64_t live = 0;
    for (const auto& [storage, life] : lives) {
      if (life.first <= i && i <= life.second) live += program.trace.storages()[static_cast<size_t>(storage)].bytes;
    }
    most = std::max(most, live);
  }
  EXPECT_GT(most, layer_bytes);  // gathering ahead costs memory
  EXPECT_LE(most, 2 * layer_bytes);
}

// Codes are dequantized for their update one layer at a time, even while the next layer is being gathered.
TEST(ParameterStore, OneLayersQuantizedWeightsAreNumbersAtATime) {
  for (const double clip : {0.0, 1.0}) {
    const StepProgram program = BuildStep(
        Sharded("llama", "optimizer", 4,
                {{"layers", 6}, {"precision", "fp8"}, {"primary_weights", "quantized"}, {"grad_clip", clip}}));
    const auto& calls = program.trace.calls();
    std::map<StorageId, std::pair<size_t, size_t>> lives;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].op != &kAdam) continue;
      const StorageId weights = calls[i].operands(kAdam).writes.work.storage;
      if (program.trace.storages()[static_cast<size_t>(weights)].persistent) continue;
      for (size_t use = i; use < calls.size(); ++use) {
        for (const Tensor& arg : calls[use].tensors()) {
          if (arg.defined() && arg.storage == weights) lives[weights] = {i, use};
        }
      }
    }
    ASSERT_EQ(lives.size(), 6U);
    size_t last = 0;
    for (const auto& [storage, life] : lives) {  // in the order of the updates
      EXPECT_GT(life.first, last);
      EXPECT_EQ(calls[life.second].op, &kQuantize);
      last = life.second;
    }
  }
}

TEST(ParameterStore, ShardingDividesWhatItShards) {
  const auto category = [](const std::string& shard, const char* name) {
    const Json values = {{"model", "llama-1b"}, {"checkpointing", "full"}, {"ranks", 8}, {"shard", shard}};
    return static_cast<double>(BuildStep(SpecFrom(values)).layout.by_category.at(name));
  };
  for (const char* shard : {"optimizer", "full"}) {
    EXPECT_NEAR(category(shard, "optimizer"), category("none", "optimizer") / 8, 1e-3 * category("none", "optimizer"));
  }
  // bf16 weights stay whole, but their 2-byte remainders do not.
  EXPECT_NEAR(category("optimizer", "parameters"), category("none", "parameters") * (0.5 + 0.5 / 8),
              1e-3 * category("none", "parameters"));
  EXPECT_LT(category("full", "parameters"), category("none", "parameters") / 2);
}

// Ranks that share a model's products keep what a data-parallel run of half the ranks keeps.
TEST(ParameterStore, SharesStateAlongTheShardAxisAlone) {
  const RunSpec spec = Sharded("llama", "full", 2);
  const ModelShape shape = ShapeOf(spec);
  const auto store_of = [&](Trace& trace, const Mesh& mesh, int64_t rank) {
    ParameterStoreOptions options;
    options.rank = rank;
    options.shard = ShardMode::kFull;
    Flights flights(trace, mesh);
    ParameterStore store(trace, flights, shape, RecipeOf(Precision::kBf16, "none", "fp32"), options);
    store.Weight(0);
    return store.states();
  };
  for (int64_t rank = 0; rank < 4; ++rank) {
    Trace alone;
    Trace meshed;
    const auto want = store_of(alone, Mesh({.shard = 2}), rank / 2);
    const auto states = store_of(meshed, Mesh({.tensor = 2, .shard = 2}), rank);
    for (size_t p = 0; p < states.size(); ++p) {
      EXPECT_EQ(states[p].first, want[p].first) << rank;
      EXPECT_EQ(states[p].m.elements(), want[p].m.elements()) << rank;
    }
    ASSERT_EQ(meshed.calls().size(), alone.calls().size());
    const OpCall& gather = meshed.calls().front();
    EXPECT_EQ(AxesText(CollectiveAttrsOf(gather).axes), "shard");
    EXPECT_EQ(gather.cost.wire_bytes, alone.calls().front().cost.wire_bytes);
  }
}

}  // namespace
}  // namespace ridgeline::engine
