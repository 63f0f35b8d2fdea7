// cuDNN's plans of attention, forward and backward.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/trace.h"
#include "engine/ops/attention.h"
#include "engine/ops/cuda/cudnn_graph.h"

namespace ridgeline::engine {

// The inputs of a plan: the op's shape and the layout of its tensors.
struct CudnnAttention {
  // The graphs' tensors and scalars, by the numbers that a plan's run uses.
  enum Id : int64_t { kQ = 1, kK, kV, kO, kLse, kDO, kDQ, kDK, kDV, kDelta, kDqSum, kScale, kMinusInfinity, kOne };

  AttentionShape shape;
  DType dtype = DType::kBF16;
  // For q, k, v, o and, in a backward call, d_o, dq, dk, dv; in elements.
  std::array<int64_t, 8> row_strides{};
  int64_t workspace_bytes = 0;  // the most that a plan may request
  size_t most_plans = 1;

  explicit CudnnAttention(const OpCall& call);
};

// As CudnnPlan::Make: none if cuDNN has no plan, and why.
std::vector<CudnnPlan> PlanAttentionForward(const Cudnn& cudnn, const CudnnAttention& attention,
                                            const CudnnDevice& device, std::string& why);
std::vector<CudnnPlan> PlanAttentionBackward(const Cudnn& cudnn, const CudnnAttention& attention,
                                             const CudnnDevice& device, std::string& why);

}  // namespace ridgeline::engine
