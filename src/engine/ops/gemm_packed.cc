#include "engine/ops/gemm_packed.h"

#include <omp.h>

#include <algorithm>

#include "engine/ops/gemm_onednn.h"
#include "engine/ops/gemm_rows.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ridgeline {

// The inner loop takes one 32-bit word of a and one of b at a step: an fp32, or a pair of bf16 that are neighbours in
// k. Packed, a is panels of kRows, word by word, and b panels of kCols: [step][row] and [step][column].
constexpr int64_t kRows = 8;
constexpr int64_t kCols = 48;
// Of a block, at most: of its size, a block of a and a panel of b stay in the second-level cache.
constexpr int64_t kSteps = 384;
constexpr int64_t kBlockRows = 96;
constexpr int64_t kQuantizedBlock = 32;  // where quantized operands can be cut
constexpr int64_t kAhead = 16;           // steps of b fetched ahead
constexpr int64_t kPackRows = 32;        // of a, packed at once
constexpr int64_t kMostCols = 1536;      // of b packed at once
constexpr int64_t kFewCols = 384;        // and no fewer, where there are
constexpr int64_t kPackedWords = int64_t{2} << 20;
constexpr int64_t kSumWords = int64_t{1} << 20;
constexpr int64_t kThreadWords = kBlockRows * kSteps + kRows * kCols;
constexpr int64_t kRoomBytes = kCols * kSteps * 4;

namespace {
int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }
int64_t RoundUp(int64_t n, int64_t to) { return DivideUp(n, to) * to; }
}  // namespace

// How a product is cut. Only the order in which k is summed matters to the result: block_steps and `chunk_steps`.
struct PackedProduct::Blocking {
  int64_t steps;        // words along k
  int64_t block_steps;  // of a block
  int64_t cols;         // of c, whose part of b is packed at once
  int64_t chunk_steps;  // likewise
  int64_t super_rows;   // of c, whose sums are kept at once
  int threads;
};

PackedProduct::Blocking PackedProduct::BlockingFor(int threads) const {
  Blocking b{};
  b.threads = threads;
  b.steps = DivideUp(shape_.k, 4 / SizeOf(shape_.in));
  b.block_steps = RoundUp(DivideUp(b.steps, DivideUp(b.steps, kSteps)), kQuantizedBlock);
  const int64_t all_cols = RoundUp(shape_.n, kCols);
  b.cols =
      std::clamp(kPackedWords / b.steps / kCols * kCols, std::min(kFewCols, all_cols), std::min(kMostCols, all_cols));
  b.cols = RoundUp(DivideUp(all_cols, DivideUp(all_cols, b.cols)), kCols);
  b.chunk_steps = std::min(b.steps, kPackedWords / b.cols / b.block_steps * b.block_steps);
  b.super_rows = std::min(RoundUp(shape_.m, kRows), kSumWords / b.cols / kBlockRows * kBlockRows);
  return b;
}

PackedProduct::PackedProduct(const PackedShape& shape) : shape_(shape) {}

#ifndef __x86_64__
bool PackedProduct::Supports(DType /*in*/) { return false; }
int64_t PackedProduct::scratch_bytes() const { return 0; }
void PackedProduct::Run(const ProductOperand&, const ProductOperand&, void*, const void*, float, std::byte*) const {}
#else

bool PackedProduct::Supports(DType in) {
  const CpuIsa isa = EffectiveCpuIsa();
  return isa >= (in == DType::kBF16 ? CpuIsa::kAvx512Bf16 : CpuIsa::kAvx512);
}

int64_t PackedProduct::scratch_bytes() const {
  return 4 * (kPackedWords + kSumWords + kMostCols) + omp_get_max_threads() * (4 * kThreadWords + kRoomBytes);
}

// GCC 12's own intrinsics begin from a value they leave undefined.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,bmi2,prefer-vector-width=512")
#endif

namespace {

__mmask16 FirstOf16(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1); }

__mmask32 FirstOf32(int64_t n) { return n >= 32 ? 0xffffffffU : n <= 0 ? 0 : (1U << n) - 1; }

// to (kRows, kCols) = [from +] a panel · b panel. Rows of `from` and `to` are ld_from and ld_to apart.
template <bool kPairs>
void MultiplyPanels(int64_t steps, const uint32_t* a, const uint32_t* b, const float* from, int64_t ld_from, float* to,
                    int64_t ld_to) {
  constexpr int64_t kVectors = kCols / 16;
  const float* later = from != nullptr ? from : to;  // wanted at the end
  const int64_t ld_later = from != nullptr ? ld_from : ld_to;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int64_t j = 0; j < kVectors; ++j) {
      sums[i][j] = _mm512_setzero_ps();
      _mm_prefetch(reinterpret_cast<const char*>(later + i * ld_later + 16 * j), _MM_HINT_T0);
    }
  }
  for (int64_t step = 0; step < steps; ++step, a += kRows, b += kCols) {
    __m512 columns[kVectors];
#pragma GCC unroll 3
    for (int64_t j = 0; j < kVectors; ++j) {
      columns[j] = _mm512_load_ps(reinterpret_cast<const float*>(b) + 16 * j);
      _mm_prefetch(reinterpret_cast<const char*>(b + kAhead * kCols + 16 * j), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
      const __m512 row = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(a[i])));
#pragma GCC unroll 3
      for (int64_t j = 0; j < kVectors; ++j) {
        if constexpr (kPairs) {
          sums[i][j] =
              _mm512_dpbf16_ps(sums[i][j], reinterpret_cast<__m512bh>(row), reinterpret_cast<__m512bh>(columns[j]));
        } else {
          sums[i][j] = _mm512_fmadd_ps(row, columns[j], sums[i][j]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int64_t j = 0; j < kVectors; ++j) {
      const __m512 sum =
          from != nullptr ? _mm512_add_ps(sums[i][j], _mm512_loadu_ps(from + i * ld_from + 16 * j)) : sums[i][j];
      _mm512_storeu_ps(to + i * ld_to + 16 * j, sum);
    }
  }
}

__m512 Widen16(const std::byte* from, DType dtype, __mmask16 there) {
  switch (dtype) {
    case DType::kBF16:
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from)), 16));
    case DType::kF16:
      return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, from));
    default:
      return _mm512_maskz_loadu_ps(there, from);
  }
}

// Rounded to nearest, ties to even; a NaN stays one.
__m256i ToBf16x16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000)), 16));
}

void Narrow16(__m512 value, std::byte* to, DType dtype, __mmask16 there) {
  switch (dtype) {
    case DType::kBF16:
      return _mm256_mask_storeu_epi16(to, there, ToBf16x16(value));
    case DType::kF16:
      return _mm256_mask_storeu_epi16(to, there, _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    default:
      return _mm512_mask_storeu_ps(to, there, value);
  }
}

// c (height, width) = scale · tile [+ bias] [+ c]; tile has rows of kCols.
void FinishTile(const float* tile, int64_t height, int64_t width, float scale, const float* bias, std::byte* c,
                int64_t ldc, DType dtype, bool accumulate) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t first = 0; first < width; first += 16) {
    const __mmask16 there = FirstOf16(width - first);
    const __m512 shift = bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(there, bias + first);
    for (int64_t row = 0; row < height; ++row) {
      std::byte* to = c + (row * ldc + first) * SizeOf(dtype);
      __m512 value = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(tile + row * kCols + first), factor), shift);
      if (accumulate) value = _mm512_add_ps(value, Widen16(to, dtype, there));
      Narrow16(value, to, dtype, there);
    }
  }
}

// 16 rows of 16 words become their columns.
void Transpose16(__m512i r[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// How far packing fetches ahead of itself: terms, or the 16 rows after these.
constexpr int64_t kPackAheadTerms = 24;

// Puts a step's words of 16 neighbours, from the `first`, where they belong: panels of kWidth, of which there are as
// many as hold `count`, lie one after the other.
template <int64_t kWidth>
void StoreWords(__m512i words, int64_t first, int64_t step, int64_t steps, int64_t count, uint32_t* to) {
  if constexpr (kWidth % 16 == 0) {
    _mm512_storeu_si512(to + first / kWidth * kWidth * steps + step * kWidth + first % kWidth, words);
  } else {
    static_assert(kWidth == 8);
    uint32_t* panel = to + first * steps + step * kWidth;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel), _mm512_castsi512_si256(words));
    if (first + kWidth < count) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + kWidth * steps), _mm512_extracti64x4_epi64(words, 1));
    }
  }
}

// Panels of kWidth from `count` of them with contiguous terms, `stride` elements apart; zeros where nothing is.
template <bool kPairs, int64_t kWidth>
void PackContiguous(const std::byte* from, int64_t stride, int64_t count, int64_t terms, uint32_t* to) {
  constexpr int64_t kTerms = kPairs ? 2 : 1;  // a word
  constexpr int64_t kSize = 4 / kTerms;
  const int64_t steps = DivideUp(terms, kTerms);
  for (int64_t first = 0; first < RoundUp(count, kWidth); first += 16) {
    for (int64_t step = 0; step < steps; step += 16) {
      const int64_t left = terms - step * kTerms;
      const __mmask32 pairs = FirstOf32(left);
      const __mmask16 singles = FirstOf16(left);
      __m512i words[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const std::byte* row = from + ((first + i) * stride + step * kTerms) * kSize;
        if (first + i >= count) {
          words[i] = _mm512_setzero_si512();
          continue;
        }
        words[i] = kPairs ? _mm512_maskz_loadu_epi16(pairs, row) : _mm512_maskz_loadu_epi32(singles, row);
        _mm_prefetch(reinterpret_cast<const char*>(row + 16 * stride * kSize), _MM_HINT_T0);
      }
      Transpose16(words);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        if (step + i < steps) StoreWords<kWidth>(words[i], first, step + i, steps, count, to);
      }
    }
  }
}

// The same from terms that are `stride` elements apart, each with its `count` side by side.
template <bool kPairs, int64_t kWidth>
void PackStrided(const std::byte* from, int64_t stride, int64_t count, int64_t terms, uint32_t* to) {
  constexpr int64_t kTerms = kPairs ? 2 : 1;
  constexpr int64_t kSize = 4 / kTerms;
  const int64_t steps = DivideUp(terms, kTerms);
  const int64_t wanted = RoundUp(count, kWidth);
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                       5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  for (int64_t step = 0; step < steps; ++step) {
    const std::byte* row = from + step * kTerms * stride * kSize;
    for (int64_t t = 0; t < kTerms; ++t) {
      const auto* ahead = reinterpret_cast<const char*>(row) + (kPackAheadTerms + t) * stride * kSize;
      for (int64_t byte = 0; byte < count * kSize; byte += 64) _mm_prefetch(ahead + byte, _MM_HINT_T0);
    }
    if constexpr (kPairs) {
      const auto* even = reinterpret_cast<const uint16_t*>(row);
      const bool whole = 2 * step + 1 < terms;
      for (int64_t first = 0; first < wanted; first += 32) {
        const __mmask32 there = FirstOf32(count - first);
        const __m512i a = _mm512_maskz_loadu_epi16(there, even + first);
        const __m512i b = _mm512_maskz_loadu_epi16(whole ? there : 0, even + stride + first);
        StoreWords<kWidth>(_mm512_permutex2var_epi16(a, low, b), first, step, steps, wanted, to);
        if (first + 16 < wanted) {
          StoreWords<kWidth>(_mm512_permutex2var_epi16(a, high, b), first + 16, step, steps, wanted, to);
        }
      }
    } else {
      for (int64_t first = 0; first < wanted; first += 16) {
        const __mmask16 there = FirstOf16(count - first);
        StoreWords<kWidth>(_mm512_maskz_loadu_epi32(there, reinterpret_cast<const float*>(row) + first), first, step,
                           steps, wanted, to);
      }
    }
  }
}

template <bool kPairs, int64_t kWidth>
void Pack(const ProductOperand& operand, int64_t i, int64_t count, int64_t k, int64_t terms, std::byte* room,
          uint32_t* to) {
  const ProductOperand::Block block = operand.Read(i, count, k, terms, room);
  if (operand.terms_contiguous()) {
    PackContiguous<kPairs, kWidth>(block.data, block.stride, count, terms, to);
  } else {
    PackStrided<kPairs, kWidth>(block.data, block.stride, count, terms, to);
  }
}

}  // namespace

template <bool kPairs>
void PackedProduct::RunAs(const ProductOperand& a, const ProductOperand& b, void* c, const void* bias, float scale,
                          std::byte* scratch) const {
  constexpr int64_t kTerms = kPairs ? 2 : 1;
  const PackedShape& s = shape_;
  const bool direct = s.out == DType::kF32 && !s.has_bias && !s.scaled;  // sums are made in c
  auto* packed_b = reinterpret_cast<uint32_t*>(scratch);
  auto* sums = reinterpret_cast<float*>(packed_b + kPackedWords);
  float* wide_bias = sums + kSumWords;
  auto* of_threads = reinterpret_cast<std::byte*>(wide_bias + kMostCols);

#pragma omp parallel
  {
    const Blocking blocking = BlockingFor(omp_get_num_threads());
    const int64_t me = omp_get_thread_num();
    const int64_t threads = blocking.threads;
    std::byte* room = of_threads + me * (4 * kThreadWords + kRoomBytes);
    auto* packed_a = reinterpret_cast<uint32_t*>(room + kRoomBytes);
    auto* tile = reinterpret_cast<float*>(packed_a + kBlockRows * kSteps);
    const int64_t chunks = DivideUp(blocking.steps, blocking.chunk_steps);

    for (int64_t col = 0; col < s.n; col += blocking.cols) {
      const int64_t cols = std::min(blocking.cols, s.n - col);
      const int64_t panels = DivideUp(cols, kCols);
      const int64_t super_rows = direct ? s.m : blocking.super_rows;
      for (int64_t super = 0; super < s.m; super += super_rows) {
        const int64_t rows = std::min(super_rows, s.m - super);
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          const int64_t first_step = chunk * blocking.chunk_steps;
          const int64_t steps = std::min(blocking.chunk_steps, blocking.steps - first_step);
          const int64_t blocks = DivideUp(steps, blocking.block_steps);
          const auto first_term = [&](int64_t block) { return (first_step + block * blocking.block_steps) * kTerms; };
          const auto steps_of = [&](int64_t block) {
            return std::min(blocking.block_steps, steps - block * blocking.block_steps);
          };
          const auto terms_of = [&](int64_t block) {
            return std::min(steps_of(block) * kTerms, s.k - first_term(block));
          };
          const auto panel_of_b = [&](int64_t block, int64_t panel) {
            return packed_b + (block * blocking.block_steps * panels + panel * steps_of(block)) * kCols;
          };
#pragma omp barrier
          if (chunks > 1 || super == 0) {
            for (int64_t i = me; i < blocks * panels; i += threads) {
              const int64_t block = i / panels;
              const int64_t first = col + i % panels * kCols;
              Pack<kPairs, kCols>(b, first, std::min(kCols, s.n - first), first_term(block), terms_of(block), room,
                                  panel_of_b(block, i % panels));
            }
            if (me == 0 && s.has_bias) {
              WidenRow(static_cast<const std::byte*>(bias) + col * SizeOf(s.bias), s.bias, wide_bias, cols);
            }
#pragma omp barrier
          }

          // Every thread has as many rows; where there are too few, columns are shared out too.
          const int64_t row_panels = DivideUp(rows, kRows);
          const int64_t row_parts = std::min(threads, row_panels);
          const int64_t col_parts = std::min(threads / row_parts, panels);
          if (me >= row_parts * col_parts) continue;
          const int64_t col_part = me % col_parts;
          const int64_t first_panel = panels * col_part / col_parts;
          const int64_t last_panel = panels * (col_part + 1) / col_parts;
          const int64_t row_part = me / col_parts;
          const int64_t first_row = super + row_panels * row_part / row_parts * kRows;
          const int64_t last_row = std::min(super + row_panels * (row_part + 1) / row_parts * kRows, super + rows);
          const int64_t row_blocks = DivideUp(last_row - first_row, kBlockRows);
          const int64_t block_rows = RoundUp(DivideUp(last_row - first_row, row_blocks), kRows);
          for (int64_t row_of_block = first_row; row_of_block < last_row; row_of_block += block_rows) {
            const int64_t rows_of_block = std::min(block_rows, last_row - row_of_block);
            for (int64_t block = 0; block < blocks; ++block) {
              const int64_t block_steps = steps_of(block);
              for (int64_t row = 0; row < rows_of_block; row += kPackRows) {
                Pack<kPairs, kRows>(a, row_of_block + row, std::min(kPackRows, rows_of_block - row), first_term(block),
                                    terms_of(block), room, packed_a + row * block_steps);
              }
              const bool first_sum = chunk == 0 && block == 0;
              const bool last_sum = chunk + 1 == chunks && block + 1 == blocks;
              for (int64_t panel = first_panel; panel < last_panel; ++panel) {
                const int64_t width = std::min(kCols, cols - panel * kCols);
                for (int64_t row = 0; row < rows_of_block; row += kRows) {
                  const int64_t height = std::min(kRows, rows_of_block - row);
                  const uint32_t* of_a = packed_a + row * block_steps;
                  const uint32_t* of_b = panel_of_b(block, panel);
                  std::byte* in_c =
                      static_cast<std::byte*>(c) + ((row_of_block + row) * s.ldc + col + panel * kCols) * SizeOf(s.out);
                  if (direct && width == kCols && height == kRows) {
                    auto* sum = reinterpret_cast<float*>(in_c);
                    MultiplyPanels<kPairs>(block_steps, of_a, of_b, first_sum && !s.accumulate ? nullptr : sum, s.ldc,
                                           sum, s.ldc);
                    continue;
                  }
                  float* sum = sums + (row_of_block - super + row) * blocking.cols + panel * kCols;
                  const float* from = first_sum || direct ? nullptr : sum;
                  if (!direct && !last_sum) {
                    MultiplyPanels<kPairs>(block_steps, of_a, of_b, from, blocking.cols, sum, blocking.cols);
                    continue;
                  }
                  MultiplyPanels<kPairs>(block_steps, of_a, of_b, from, blocking.cols, tile, kCols);
                  const float* of_bias = s.has_bias ? wide_bias + panel * kCols : nullptr;
                  FinishTile(tile, height, width, scale, of_bias, in_c, s.ldc, s.out,
                             s.accumulate || (direct && !first_sum));
                }
              }
            }
          }
        }
      }
    }
  }
}

void PackedProduct::Run(const ProductOperand& a, const ProductOperand& b, void* c, const void* bias, float scale,
                        std::byte* scratch) const {
  if (shape_.in == DType::kBF16) {
    RunAs<true>(a, b, c, bias, scale, scratch);
  } else {
    RunAs<false>(a, b, c, bias, scale, scratch);
  }
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop
#endif

}  // namespace ridgeline
