// Copies and transposes bytes, and codes of 4 bits. Included once for each target, inside of Highway's
// foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_TRANSPOSE_INL_H_
#undef RIDGELINE_OPS_TRANSPOSE_INL_H_
#else
#define RIDGELINE_OPS_TRANSPOSE_INL_H_
#endif

#include "engine/ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

inline constexpr int64_t kLineBytes = 64;
inline constexpr int64_t kTransposeCols = 32;

// Stores 16 bytes of a column, and of the column 16 further on if a vector has both.
template <typename V>
HWY_INLINE void StoreColumns(V v, uint8_t* to) {
  const hn::FixedTag<uint8_t, 16> d;
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == 32) {
    hn::StoreU(hn::LowerHalf(d, v), d, to);
    hn::StoreU(hn::UpperHalf(d, v), d, to + 16 * kLineBytes);
  } else {
    hn::StoreU(v, d, to);
  }
}

// Writes column c of 16 rows of 32 bytes as 16 bytes at to + c * kLineBytes.
HWY_INLINE void Transpose16(const uint8_t* from, int64_t stride, uint8_t* to) {
  const hn::CappedTag<uint8_t, kTransposeCols> d;
  for (int64_t col = 0; col < kTransposeCols; col += static_cast<int64_t>(hn::MaxLanes(d))) {
    hn::Vec<decltype(d)> v[16];
    HWY_UNROLL(16)
    for (int64_t i = 0; i < 16; ++i) v[i] = hn::LoadU(d, from + i * stride + col);
    // A vector has one or two rows of a block of 16 x 16 bytes. Four perfect shuffles of its rows transpose the block.
    HWY_UNROLL(4)
    for (int64_t step = 0; step < 4; ++step) {
      hn::Vec<decltype(d)> shuffled[16];
      HWY_UNROLL(8)
      for (int64_t i = 0; i < 8; ++i) {
        shuffled[2 * i] = hn::InterleaveLower(d, v[i], v[i + 8]);
        shuffled[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + 8]);
      }
      HWY_UNROLL(16)
      for (int64_t i = 0; i < 16; ++i) v[i] = shuffled[i];
    }
    HWY_UNROLL(16)
    for (int64_t i = 0; i < 16; ++i) StoreColumns(v[i], to + (col + i) * kLineBytes);
  }
}

// `stream`: store whole lines past the caches; `to` must then begin one.
HWY_INLINE void CopyBytes(const uint8_t* from, int64_t count, uint8_t* to, bool stream) {
  const hn::CappedTag<uint8_t, kLineBytes> d;
  constexpr auto kBytes = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + kBytes <= count / kLineBytes * kLineBytes; i += kBytes) {
    if (stream) {
      hn::Stream(hn::LoadU(d, from + i), d, to + i);
    } else {
      hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    }
  }
  if (i < count) std::memcpy(to + i, from + i, static_cast<size_t>(count - i));
}

// Row c of `to` = column c of `from`, a matrix (rows, cols) of at most 32 columns. 32 columns may be read, and rows up
// to a multiple of 16. `stream`: as in CopyBytes, for each row of `to`.
HWY_INLINE void TransposeBytes(const uint8_t* from, int64_t stride, int64_t rows, int64_t cols, uint8_t* to,
                               int64_t to_stride, bool stream) {
  alignas(64) uint8_t lines[kTransposeCols * kLineBytes];
  for (int64_t first = 0; first < rows; first += kLineBytes) {
    const int64_t count = std::min(kLineBytes, rows - first);
    for (int64_t r = 0; r < count; r += 16) Transpose16(from + (first + r) * stride, stride, lines + r);
    for (int64_t c = 0; c < cols; ++c) CopyBytes(lines + c * kLineBytes, count, to + c * to_stride + first, stream);
  }
}

// Converts two rows of codes of 4 bits, `bytes` of each, to the bytes that their columns have when transposed: the
// first row's code in the lower bits. `to`: 2 * bytes.
HWY_INLINE void PairNibbles(const uint8_t* even, const uint8_t* odd, int64_t bytes, uint8_t* to) {
  const DH d;
  const hn::Rebind<uint8_t, DH> narrow;
  const auto inner = hn::Set(d, 0x0ff0);
  for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(hn::MaxLanes(d))) {
    // Four codes, of which the middle two change places.
    const auto both = hn::Or(hn::PromoteTo(d, hn::LoadU(narrow, even + i)),
                             hn::ShiftLeft<8>(hn::PromoteTo(d, hn::LoadU(narrow, odd + i))));
    const auto swapped = hn::Or(hn::And(hn::ShiftLeft<4>(both), hn::Set(d, 0x0f00)),
                                hn::And(hn::ShiftRight<4>(both), hn::Set(d, 0x00f0)));
    hn::StoreU(hn::Or(hn::AndNot(inner, both), swapped), d, reinterpret_cast<uint16_t*>(to + 2 * i));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
