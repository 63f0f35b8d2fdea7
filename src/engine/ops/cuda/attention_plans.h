// cuDNN's plans of attention, forward and backward.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/device/trace.h"
#include "engine/ops/attention.h"
#include "engine/ops/cuda/cudnn_graph.h"

namespace ridgeline {

// What a plan is made from: the op's shape and how its tensors lie.
struct CudnnAttention {
  // The graphs' tensors and scalars, by the numbers that a plan's run knows them by.
  enum Id : int64_t { kQ = 1, kK, kV, kO, kLse, kDO, kDQ, kDK, kDV, kDelta, kDqSum, kScale, kMinusInfinity, kOne };

  AttentionShape shape;
  DType dtype = DType::kBF16;
  // Of q, k, v, o and, of a backward call, d_o, dq, dk, dv; in elements.
  std::array<int64_t, 8> row_strides{};
  int64_t workspace_bytes = 0;  // what a plan may want at most

  explicit CudnnAttention(const OpCall& call);
};

// As CudnnPlan::Make: nothing where cuDNN has none, and why.
std::optional<CudnnPlan> PlanAttentionForward(const Cudnn& cudnn, const CudnnAttention& attention,
                                              const CudnnDevice& device, std::string& why);
std::optional<CudnnPlan> PlanAttentionBackward(const Cudnn& cudnn, const CudnnAttention& attention,
                                               const CudnnDevice& device, std::string& why);

}  // namespace ridgeline
