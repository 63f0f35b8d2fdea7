// The attributes of the memory-bound ops: what their record functions hand to the kernels of every device.
#pragma once

#include <cstdint>

#include "engine/precision/quantizer.h"

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
// A matrix is quantized tile by tile: rows enough for whole cache lines of a transposed output, columns for the first
// caches.
inline constexpr int64_t kQuantizeTileRows = 128;
inline constexpr int64_t kQuantizeTileCols = 256;
constexpr int64_t QuantizeTiles(int64_t rows, int64_t cols) {
  return (rows + kQuantizeTileRows - 1) / kQuantizeTileRows * ((cols + kQuantizeTileCols - 1) / kQuantizeTileCols);
}
struct QuantizeAttrs {
  Quantizer row;  // those of the orientations that are there
  Quantizer col;
  uint32_t stream = 0;
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
