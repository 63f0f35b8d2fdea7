// The attributes of the memory-bound ops: what their record functions hand to the kernels of every device.
#pragma once

#include <cstdint>

namespace ridgeline {

struct NormAttrs {
  double eps = 0;
};
struct NormBackwardAttrs {
  bool overwrite_dx = false;
  bool accumulate = false;
};
struct RopeAttrs {
  int64_t seq = 0;
  int64_t head_dim = 0;
  bool inverse = false;
};
struct DropoutAttrs {
  double p = 0;
  uint32_t stream = 0;
  int64_t first = 0;
};
struct FillAttrs {
  double value = 0;
};
struct StreamAttrs {
  uint32_t stream = 0;
  int64_t first = 0;
};
struct ColumnSumAttrs {
  bool accumulate = false;
};
struct EmbeddingAttrs {
  int64_t seq = 0;
};
struct LossAttrs {
  double scale = 1;
};
struct ClipAttrs {
  double clip = 0;
};

}  // namespace ridgeline
