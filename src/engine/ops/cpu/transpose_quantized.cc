// Transposes codes tile by tile: gathers the bytes of the result's rows in a buffer, then transposes them.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "engine/ops/cpu/quantized_rows.h"
#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/transpose_quantized.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/transpose-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

constexpr int64_t kTileRows = 128;  // in bytes: 128 or 256 rows of codes
constexpr int64_t kTileCols = 64;   // in elements

// A part of a matrix of codes, with zeros beyond its end.
class CodeTile {
 public:
  CodeTile(const uint8_t* codes, int64_t stride, int64_t rows, int64_t bytes)
      : codes_(codes), stride_(stride), rows_(rows), bytes_(bytes) {}

  // Returns `count` <= kTileCols bytes of a row, in place if all of them exist.
  HWY_INLINE const uint8_t* Row(int64_t row, int64_t first, int64_t count, uint8_t* room) const {
    const int64_t there = row < rows_ ? std::clamp<int64_t>(bytes_ - first, 0, count) : 0;
    if (there == count) return codes_ + row * stride_ + first;
    std::memset(room, 0, static_cast<size_t>(count));
    if (there > 0) std::memcpy(room, codes_ + row * stride_ + first, static_cast<size_t>(there));
    return room;
  }

 private:
  const uint8_t* codes_;
  int64_t stride_;
  int64_t rows_;
  int64_t bytes_;  // in a row
};

// Fills bytes (kTileRows, kTileCols). For 8-bit codes, they are elements (row + r, col + c). For 4-bit codes, a byte
// has two elements, those of rows row + 2 r and row + 2 r + 1, as a byte of the result has them.
template <bool kPairs>
HWY_NOINLINE void ReadTile(const CodeTile& tile, int64_t row, int64_t col, uint8_t* bytes) {
  uint8_t room[2][kTileCols];
  for (int64_t r = 0; r < kTileRows; ++r) {
    uint8_t* to = bytes + r * kTileCols;
    if constexpr (kPairs) {
      const uint8_t* even = tile.Row(row + 2 * r, col / 2, kTileCols / 2, room[0]);
      const uint8_t* odd = tile.Row(row + 2 * r + 1, col / 2, kTileCols / 2, room[1]);
      PairNibbles(even, odd, kTileCols / 2, to);
    } else {
      std::memcpy(to, tile.Row(row + r, col, kTileCols, room[0]), kTileCols);
    }
  }
}

void TransposeQuantizedCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const TransposeQuantizedOperands on = call.operands(kTransposeQuantized);
  const Tensor& codes = on.reads.codes;
  const Tensor& scales = on.reads.scales;
  const Tensor& turned = on.writes.codes;
  const bool pairs = call.attrs(kTransposeQuantized).format == Format::kE2M1;
  const CodeTile all(run.Data<uint8_t>(codes), codes.row_stride, codes.rows, codes.cols);
  auto* to = run.Data<uint8_t>(turned);
  const int64_t down = (turned.cols + kTileRows - 1) / kTileRows;
  const int64_t across = (turned.rows + kTileCols - 1) / kTileCols;
  ParallelFor(down * across, 1, [&](int64_t begin, int64_t end) {
    alignas(64) uint8_t bytes[kTileRows * kTileCols];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / across * kTileRows;
      const int64_t col = i % across * kTileCols;
      if (pairs) {
        ReadTile<true>(all, 2 * row, col, bytes);
      } else {
        ReadTile<false>(all, row, col, bytes);
      }
      const int64_t rows = std::min(kTileRows, turned.cols - row);
      for (int64_t c = 0; c < kTileCols && col + c < turned.rows; c += kTransposeCols) {
        TransposeBytes(bytes + c, kTileCols, rows, std::min(kTransposeCols, turned.rows - col - c),
                       to + (col + c) * turned.row_stride + row, turned.row_stride, false);
      }
    }
  });
  if (!scales.defined()) return;
  // Every row of a 16x16 block has its scale.
  const auto* from = run.Data<uint8_t>(scales);
  const Tensor& turned_scales = on.writes.scales;
  auto* scales_to = run.Data<uint8_t>(turned_scales);
  ParallelFor(turned_scales.rows, 256, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t block = 0; block < turned_scales.cols; ++block) {
        scales_to[r * turned_scales.row_stride + block] = from[block * 16 * scales.row_stride + r / 16];
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {

HWY_EXPORT(TransposeQuantizedCpu);

void AddTransposeQuantizedCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kTransposeQuantized].run = HWY_DYNAMIC_DISPATCH(TransposeQuantizedCpu);
}

}  // namespace ridgeline::engine
#endif
