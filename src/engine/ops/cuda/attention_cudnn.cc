#include "engine/ops/cuda/attention_cudnn.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/fastest.h"
#include "engine/device/cuda/libraries.h"
#include "engine/device/cuda/runtime.h"
#include "engine/ops/cuda/attention_plans.h"
#include "engine/ops/cuda/random_operands.h"

namespace ridgeline::engine {
namespace {

using enum CudnnAttention::Id;

// A device's handle, shared by all live states.
class Handle {
 public:
  explicit Handle(const Cudnn& cudnn) : cudnn_(cudnn) {
    CheckCudnn(cudnn, cudnn.cudnnCreate(&handle_), "starting it on this device");
  }
  ~Handle() { cudnn_.cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t On(cudaStream_t stream) const {
    CheckCudnn(cudnn_, cudnn_.cudnnSetStream(handle_, stream), "choosing a stream");
    return handle_;
  }

 private:
  const Cudnn& cudnn_;
  cudnnHandle_t handle_ = nullptr;
};

struct State : KernelState {
  std::shared_ptr<Handle> handle;
  std::optional<CudnnPlan> plan;  // empty: cuDNN refuses the call
  std::string why;                // the words of the refusal
  size_t of = 1;                  // the number of plans of which it is the fastest
  // cuDNN reads these when a plan is started.
  float scale = 0;
  float minus_infinity = -std::numeric_limits<float>::infinity();
  float one = 1;
};

void* At(const CudaRun& run, const Tensor& t) { return run.slab + run.offsets[t.storage] + t.offset * SizeOf(t.dtype); }

using Plan = std::vector<CudnnPlan> (*)(const Cudnn&, const CudnnAttention&, const CudnnDevice&, std::string&);

// Notes for a result which library computes a pass. If shapes have different notes, the last one remains.
void Tell(const CudaRun& run, Plan plan, const std::string& who) {
  if (run.notes == nullptr) return;
  (*run.notes)[plan == PlanAttentionBackward ? "attention_backward" : "attention_forward"] = who;
}

// Our kernels sum in a fixed order. cuDNN's backward pass does so only if it stores the scores' gradients.
std::string WhoOf(const State& state, bool backward, bool repeats) {
  if (!state.plan) return fmt::format("ours, many times slower: cuDNN refuses it: {}", state.why);
  const bool in_any_order = !state.plan->repeats() || (backward && !repeats);
  return fmt::format("cuDNN's engine {}{}{}", state.plan->engine(),
                     state.of > 1 ? fmt::format(", the fastest of {} plans", state.of) : "",
                     in_any_order ? ", bits may differ between runs" : "");
}

void RunForwardPlan(const OpCall& call, const CudaRun& run, State& with) {
  const auto [reads, writes, scratch] = call.operands(kAttentionForward);
  const std::array<int64_t, 7> ids = {kQ, kK, kV, kO, kLse, kScale, kMinusInfinity};
  const std::array<void*, 7> data = {At(run, reads.q),    At(run, reads.k), At(run, reads.v),    At(run, writes.o),
                                     At(run, writes.lse), &with.scale,      &with.minus_infinity};
  with.plan->Run(with.handle->On(run.stream), ids, data, At(run, scratch.workspace));
}

void RunBackwardPlan(const OpCall& call, const CudaRun& run, State& with) {
  const auto [reads, writes, scratch] = call.operands(kAttentionBackward);
  std::vector<int64_t> ids = {kQ, kK, kV, kO, kLse, kDO, kDQ, kDK, kDV, kDelta, kScale, kMinusInfinity, kOne};
  std::vector<void*> data = {At(run, reads.q),   At(run, reads.k),       At(run, reads.v),   At(run, reads.o),
                             At(run, reads.lse), At(run, reads.d_o),     At(run, writes.dq), At(run, writes.dk),
                             At(run, writes.dv), At(run, scratch.delta), &with.scale,        &with.minus_infinity,
                             &with.one};
  if (scratch.dq_sum.defined()) {
    // Its blocks add to dq's sums. No GPU has shown us yet whether cuDNN zeroes them itself.
    CheckCuda(cudaMemsetAsync(At(run, scratch.dq_sum), 0, static_cast<size_t>(scratch.dq_sum.bytes()), run.stream),
              "cudaMemsetAsync");
    ids.push_back(kDqSum);
    data.push_back(At(run, scratch.dq_sum));
  }
  with.plan->Run(with.handle->On(run.stream), ids, data, At(run, scratch.workspace));
}

std::string PlanWork(const CudnnAttention& attention, bool backward, size_t version) {
  const AttentionShape& s = attention.shape;
  return fmt::format(
      "attention {} by cuDNN {}: batch {}, sequence {}, heads {} and {} of {}, {}, rows at {}, workspace {}{}",
      backward ? "backward" : "forward", version, s.batch, s.seq, s.heads, s.kv_heads, s.head_dim,
      DTypeName(attention.dtype), fmt::join(attention.row_strides, " "), attention.workspace_bytes,
      s.repeats ? ", that repeats" : "");
}
std::string PlanName(const std::vector<CudnnPlan>& plans, size_t i) {
  return fmt::format("plan {} of {}, engine {}", i, plans.size(), plans[i].engine());
}

void WriteRandomTensors(const CudaRun& run, std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) {
    WriteRandomOperand(run.stream, t.dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_16F, At(run, t), t.rows, t.cols,
                       t.row_stride);
  }
}

// Puts the fastest plan into the state, as the file knows or measured in the step's memory.
void ChoosePlan(const OpCall& call, const CudaRun& run, const std::string& work, const std::vector<CudnnPlan>& plans,
                State& state) {
  const bool backward = call.op == &kAttentionBackward;
  AlgorithmFile& algorithms = *run.algorithms;
  const std::optional<std::string> kept = algorithms.Find(work);
  size_t chosen = 0;
  while (kept && chosen < plans.size() && PlanName(plans, chosen) != *kept) ++chosen;
  if ((!kept || chosen == plans.size()) && algorithms.measures()) {
    if (run.load != nullptr && backward) {
      const auto& on = call.operands(kAttentionBackward).reads;
      WriteRandomTensors(run, {on.q, on.k, on.v, on.o, on.d_o});
    } else if (run.load != nullptr) {
      const auto& on = call.operands(kAttentionForward).reads;
      WriteRandomTensors(run, {on.q, on.k, on.v});
    }
    const auto queue = [&](size_t way) {
      state.plan = plans[way];
      backward ? RunBackwardPlan(call, run, state) : RunForwardPlan(call, run, state);
      return true;
    };
    chosen = *Fastest(plans.size(), queue, run.stream, run.load);
    algorithms.Keep(work, PlanName(plans, chosen));
  }
  if (chosen == plans.size()) chosen = 0;
  state.plan = plans[chosen];
  state.of = plans.size();
}

std::shared_ptr<KernelState> Prepare(const OpCall& call, const CudaRun& run, const Tensor& workspace, Plan plan) {
  const bool there = run.libraries != nullptr && run.libraries->cudnn != nullptr;
  if (!workspace.defined() || !there) {
    Tell(run, plan,
         there ? "ours: cuDNN is asked for 16 bits and heads of multiples of 8 alone" : "ours: without cuDNN");
    return nullptr;
  }
  const Cudnn& cudnn = run.libraries->cudnn();
  CudnnAttention attention(call);
  const bool backward = call.op == &kAttentionBackward;
  const bool all = run.all_plans && run.algorithms != nullptr;
  constexpr size_t kMostPlans = 16;
  if (all) attention.most_plans = kMostPlans;
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  const AttentionShape& s = attention.shape;
  std::vector<int64_t> key = {device,     backward,
                              s.repeats,  static_cast<int64_t>(attention.dtype),
                              s.batch,    s.seq,
                              s.heads,    s.kv_heads,
                              s.head_dim, all ? reinterpret_cast<int64_t>(run.algorithms) : 0};
  key.insert(key.end(), attention.row_strides.begin(), attention.row_strides.end());
  static SharedCache<int, Handle> handles;
  static SharedCache<std::vector<int64_t>, State> states;
  std::shared_ptr<State> state = states.Get(key, [&] {
    auto made = std::make_shared<State>();
    made->handle = handles.Get(device, [&] { return std::make_shared<Handle>(cudnn); });
    made->scale = 1 / std::sqrt(static_cast<float>(s.head_dim));
    const auto plans = plan(cudnn, attention, CudnnDevice(made->handle->On(run.stream)), made->why);
    if (all && plans.size() > 1) {
      ChoosePlan(call, run, PlanWork(attention, backward, cudnn.cudnnGetVersion()), plans, *made);
    } else if (!plans.empty()) {
      made->plan = plans.front();
    }
    return made;
  });
  Tell(run, plan, WhoOf(*state, backward, s.repeats));
  return state;
}

}  // namespace

std::shared_ptr<KernelState> PrepareAttentionForwardCudnn(const OpCall& call, const CudaRun& run) {
  return Prepare(call, run, call.operands(kAttentionForward).scratch.workspace, PlanAttentionForward);
}
std::shared_ptr<KernelState> PrepareAttentionBackwardCudnn(const OpCall& call, const CudaRun& run) {
  return Prepare(call, run, call.operands(kAttentionBackward).scratch.workspace, PlanAttentionBackward);
}

bool AttentionForwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state) {
  auto* with = static_cast<State*>(state);
  if (with == nullptr || !with->plan) return false;
  RunForwardPlan(call, run, *with);
  return true;
}

bool AttentionBackwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state) {
  auto* with = static_cast<State*>(state);
  if (with == nullptr || !with->plan) return false;
  RunBackwardPlan(call, run, *with);
  return true;
}

}  // namespace ridgeline::engine
