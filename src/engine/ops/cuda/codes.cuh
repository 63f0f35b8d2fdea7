// Code that kernels which make codes share: largest magnitudes, random bits, rounding, and the positions of scales.
#pragma once

#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "engine/device/cuda/registers.cuh"
#include "engine/ops/cuda/tiles.cuh"
#include "engine/ops/philox.h"

namespace ridgeline::engine {

// The magnitude's bits. Compared as integers, a NaN is larger than all numbers.
__device__ inline uint32_t Magnitude(float value) { return BitsOf(value) & kMagnitudeBits; }

// The largest magnitude of a patch.
__device__ inline uint32_t LargestOf(const float (&values)[kThreadRows][kThreadCols]) {
  uint32_t largest = 0;
  for (const auto& of_row : values) {
    for (const float value : of_row) largest = max(largest, Magnitude(value));
  }
  return largest;
}

// The index of this lane among kLanes lanes at distances of kStride, and the value of the `number`-th of them.
template <int kLanes, int kStride>
__device__ int NumberOfLane() {
  return static_cast<int>(threadIdx.x) / kStride % kLanes;
}
template <int kLanes, int kStride>
__device__ float FromLane(int number, float value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return __shfl_sync(kAllLanes, value, lane + (number - NumberOfLane<kLanes, kStride>()) * kStride);
}
// Each of kLanes lanes has kCount numbers. Afterwards the i-th lane has the largest over the lanes for kCount / kLanes
// of them, from index i * kCount / kLanes on.
template <int kLanes, int kStride, int kCount>
__device__ void ShareLargest(uint32_t (&numbers)[kCount]) {
  if constexpr (kLanes > 1) {
    constexpr int kHalf = kCount / 2;
    constexpr int kApart = kStride * kLanes / 2;
    const bool upper = (threadIdx.x & kApart) != 0;
    uint32_t mine[kHalf];
    for (int i = 0; i < kHalf; ++i) {
      const uint32_t other = __shfl_xor_sync(kAllLanes, upper ? numbers[i] : numbers[kHalf + i], kApart);
      mine[i] = max(upper ? numbers[kHalf + i] : numbers[i], other);
    }
    ShareLargest<kLanes / 2, kStride>(mine);
    for (int i = 0; i < kHalf; ++i) numbers[i] = mine[i];
  }
}

// Raises *amax, the bits of a magnitude, to the largest of the block's. `scratch`: one number for each of its warps.
__device__ inline void RaiseAmax(uint32_t* amax, uint32_t largest, uint32_t* scratch,
                                 int warps = kTileThreads / kWarp) {
  largest = __reduce_max_sync(kAllLanes, largest);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < warps; ++i) largest = max(largest, scratch[i]);
  atomicMax(amax, largest);
}

// The source of a call's random numbers.
struct RandomSource {
  const StepInputs* inputs;
  uint32_t stream;
};

// The words of random bits by which a thread's kCount elements of each of kLines lines are rounded. Element i of a line
// has the number first + line * stride + i. Lanes at distances of kStride have neighbouring elements of a line, whose
// random numbers belong to one group. So each computes its share of the lines' groups, and the lanes exchange words.
template <int kBits, int kCount, int kLines, int kStride>
struct RoundingWords {
  static constexpr int kPerGroup = kBits == 9 ? 16 : 8;
  static constexpr int kShare = kPerGroup / kCount;
  static constexpr int kOwn = kLines / kShare;
  static constexpr int kWords = 4 / kShare;

  uint32_t words[kShare][kOwn][kWords];

  __device__ RoundingWords(const RandomSource& random, int64_t first, int64_t stride) {
    const StepInputs& inputs = *random.inputs;
    const int lane = NumberOfLane<kShare, kStride>();
    for (int own = 0; own < kOwn; ++own) {
      const int64_t element = first + (lane * kOwn + own) * stride;
      const PhiloxWords group =
          RandomGroup(inputs.seed, inputs.step, random.stream, static_cast<uint64_t>(element) / kPerGroup);
      for (int i = 0; i < 4; ++i) words[i / kWords][own][i % kWords] = group.of[i];
    }
    if constexpr (kShare >= 2) Exchange<1>(lane);
    if constexpr (kShare >= 4) Exchange<2>(lane);
  }

  // The random bits that round element i of a line.
  __device__ uint32_t Draw(int line, int i) const {
    const uint32_t(&of)[kWords] = words[line / kOwn][line % kOwn];
    if constexpr (kBits == 9) return of[i / 4] >> (i / 2 % 2 * 16 + i % 2 * 7) & 0x1ff;
    return of[i / 2] >> (i % 2 * 16) & 0xffff;
  }

 private:
  // Between lanes at a distance of kApart, exchanges the lower lane's upper words and the upper lane's lower words.
  template <int kApart>
  __device__ void Exchange(int lane) {
    const bool upper = (lane & kApart) != 0;
    for (int share = 0; share < kShare; ++share) {
      if ((share & kApart) != 0) continue;
      for (int own = 0; own < kOwn; ++own) {
        for (int i = 0; i < kWords; ++i) {
          uint32_t& low = words[share][own][i];
          uint32_t& high = words[share | kApart][own][i];
          const uint32_t other = __shfl_xor_sync(kAllLanes, upper ? low : high, kApart * kStride);
          low = upper ? other : low;
          high = upper ? high : other;
        }
      }
    }
  }
};
// For as few rows at once as possible, to save registers.
template <int kBits>
using RowWords = RoundingWords<kBits, kThreadCols, kBits == 9 ? 2 : 1, 1>;
template <int kBits>
using ColumnWords = RoundingWords<kBits, kThreadRows, kThreadCols, kChunks>;

// Whether the compiler has an instruction for two codes of 4 bits: for the family of sm_100, and that of sm_120
// (cmake/cuda.cmake). As C++, the toolkit's header says what it computes.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
constexpr bool kPairsOfNibbles = true;
#else
constexpr bool kPairsOfNibbles = false;
#endif

// The codes of value(0 … 3), rounded to nearest. Devices have an instruction for two codes of 8 bits. It equals
// formats.h's Encode except for NaN, which becomes a code beyond the largest number's. That for two codes of 4 bits
// equals Encode.
template <Format kFormat, typename Value>
__device__ uint32_t NearestCodes(const Value& value) {
  uint32_t codes = 0;
  if constexpr (kFormat == Format::kE2M1 && kPairsOfNibbles) {
    for (int i = 0; i < 4; i += 2) {
      const uint32_t pair = __nv_cvt_float2_to_fp4x2(make_float2(value(i), value(i + 1)), __NV_E2M1, cudaRoundNearest);
      codes |= ((pair | pair << 4) & 0x0f0f) << (8 * i);
    }
  } else if constexpr (kFormat == Format::kE2M1) {
    for (int i = 0; i < 4; ++i) codes |= uint32_t{Encode(kFormat, value(i))} << (8 * i);
  } else {
    constexpr FormatInfo kInfo = InfoOf(kFormat);
    static_assert(kInfo.nan_code == 0x7f && kInfo.sign_code == 0x80);
    constexpr auto kInto = kFormat == Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
    const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(value(0), value(1)), __NV_SATFINITE, kInto);
    const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(value(2), value(3)), __NV_SATFINITE, kInto);
    codes = low | high << 16;
    const uint32_t nans = ((codes & 0x7f7f7f7f) + (0x7fU - kInfo.max_code) * 0x01010101) & 0x80808080;
    codes = (codes & ~nans) | (nans - (nans >> 7));
  }
  return codes;
}
// Rounded by draw(0 … 3), with kBits random bits each.
template <Format kFormat, int kBits, typename Value, typename Draw>
__device__ uint32_t DrawnCodes(const Value& value, const Draw& draw) {
  uint32_t codes = 0;
  for (int i = 0; i < 4; ++i) codes |= uint32_t{Encode(kFormat, value(i), draw(i), kBits)} << (8 * i);
  return codes;
}

// Codes of value(r, c), for a thread's rows or columns from (row, col) on. kBits: the bits of stochastic rounding; 0 if
// no side uses it.
template <Format kFormat, int kBits, typename Value>
__device__ void EncodeRows(const Side& side, const RandomSource& random, int64_t row, int64_t col, const Value& value,
                           RowCodes& codes) {
  if constexpr (kBits != 0) {
    if (side.stochastic) {
      constexpr int kLines = RowWords<kBits>::kShare;
      Unrolled<kThreadRows / kLines>([&](auto part) {
        const int64_t first = row + part * kLines;
        const RowWords<kBits> words(random, first * side.draw_cols + col, side.draw_cols);
        Unrolled<kLines>([&](auto line) {
          Unrolled<kThreadCols / 4>([&](auto word) {
            const int r = part * kLines + line;
            codes[r][word] = DrawnCodes<kFormat, kBits>([&](int i) { return value(r, 4 * word + i); },
                                                        [&](int i) { return words.Draw(line, 4 * word + i); });
          });
        });
      });
      return;
    }
  }
  Unrolled<kThreadRows>([&](auto r) {
    Unrolled<kThreadCols / 4>(
        [&](auto word) { codes[r][word] = NearestCodes<kFormat>([&](int i) { return value(r, 4 * word + i); }); });
  });
}
template <Format kFormat, int kBits, typename Value>
__device__ void EncodeColumns(const Side& side, const RandomSource& random, int64_t row, int64_t col,
                              const Value& value, ColumnCodes& codes) {
  if constexpr (kBits != 0) {
    if (side.stochastic) {
      const ColumnWords<kBits> words(random, kColumnwiseDraws + col * side.draw_cols + row, side.draw_cols);
      for (int c = 0; c < kThreadCols; ++c) {
        codes[c][0] =
            DrawnCodes<kFormat, kBits>([&](int i) { return value(i, c); }, [&](int i) { return words.Draw(c, i); });
      }
      return;
    }
  }
  Unrolled<kThreadCols>([&](auto c) { codes[c][0] = NearestCodes<kFormat>([&](int i) { return value(i, c); }); });
}

// The scales of a tile's rows, or of its columns, kBlocks of each. They are gathered in shared memory, because a row's
// scales are contiguous. (In the layout for tensor cores, tiles of 128 by 4, all scales of a tile would be contiguous.)
template <int kBlocks>
using ScaleRow = Vec<uint8_t, kBlocks>;
// Called by kTile threads; this is the `thread`-th. `outer` and `block` are the tile's first.
template <int kBlocks>
__device__ void StoreScales(const Side& side, int64_t outer, int64_t block, int thread, const ScaleRow<kBlocks>* rows) {
  if (side.codes == nullptr || outer + thread >= side.outer) return;
  uint8_t* to = side.scales + (outer + thread) * side.scale_stride + block;
  const ScaleRow<kBlocks>& row = rows[thread];
  if (block + kBlocks <= side.scale_cols && reinterpret_cast<uintptr_t>(to) % kBlocks == 0) {
    StoreVec(to, row);
    return;
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (block + i < side.scale_cols) to[i] = row.of[i];
  }
}
// Writes the scales of both sides, after the whole block has stored them there.
template <int kBlocks>
__device__ void StoreScales(const Side& row, const Side& col, const ScaleRow<kBlocks>* of_rows,
                            const ScaleRow<kBlocks>* of_columns) {
  static_assert(kTileThreads == 2 * kTile);
  constexpr int kSize = kTile / kBlocks;
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kTile) {
    StoreScales(row, TileRow(), TileCol() / kSize, thread, of_rows);
  } else {
    StoreScales(col, TileCol(), TileRow() / kSize, thread - kTile, of_columns);
  }
}

}  // namespace ridgeline::engine
