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
constexpr int64_t kSteps = 192;      // of a block: a panel of b stays in the first-level cache, about
constexpr int64_t kBlockRows = 96;   // a block of a stays in the second-level cache
constexpr int64_t kMostCols = 1536;  // of b packed at once
constexpr int64_t kFewCols = 384;    // and no fewer, where there are
constexpr int64_t kPackedWords = int64_t{2} << 20;
constexpr int64_t kSumWords = int64_t{1} << 20;
constexpr int64_t kThreadWords = kBlockRows * kSteps + kRows * kCols;
constexpr int64_t kRoomBytes = kCols * kSteps * 4;

namespace {
int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }
int64_t RoundUp(int64_t n, int64_t to) { return DivideUp(n, to) * to; }
}  // namespace

// How a product is cut. Only the order in which k is summed matters to the result: kSteps and `chunk_steps`.
struct PackedProduct::Blocking {
  int64_t steps;        // words along k
  int64_t cols;         // of c, whose part of b is packed at once
  int64_t chunk_steps;  // likewise
  int64_t super_rows;   // of c, whose sums are kept at once
  int threads;
};

PackedProduct::Blocking PackedProduct::BlockingFor(int threads) const {
  Blocking b{};
  b.threads = threads;
  b.steps = DivideUp(shape_.k, 4 / SizeOf(shape_.in));
  const int64_t all_cols = RoundUp(shape_.n, kCols);
  b.cols =
      std::clamp(kPackedWords / b.steps / kCols * kCols, std::min(kFewCols, all_cols), std::min(kMostCols, all_cols));
  b.cols = RoundUp(DivideUp(all_cols, DivideUp(all_cols, b.cols)), kCols);
  b.chunk_steps = std::min(b.steps, kPackedWords / b.cols / kSteps * kSteps);
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

// c (kRows, kCols) = [c +] a panel · b panel.
template <bool kPairs>
void MultiplyPanels(int64_t steps, const uint32_t* a, const uint32_t* b, float* c, int64_t ldc, bool add) {
  constexpr int64_t kVectors = kCols / 16;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 3
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  for (int64_t step = 0; step < steps; ++step, a += kRows, b += kCols) {
    __m512 columns[kVectors];
#pragma GCC unroll 3
    for (int64_t j = 0; j < kVectors; ++j) columns[j] = _mm512_load_ps(reinterpret_cast<const float*>(b) + 16 * j);
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
      float* to = c + i * ldc + 16 * j;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(sums[i][j], _mm512_loadu_ps(to)) : sums[i][j]);
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

// A panel of kWidth from `count` of them with contiguous terms, `stride` elements apart; zeros where nothing is.
template <bool kPairs, int64_t kWidth>
void PackContiguous(const std::byte* from, int64_t stride, int64_t count, int64_t terms, uint32_t* to) {
  constexpr int64_t kTerms = kPairs ? 2 : 1;  // a word
  constexpr int64_t kSize = 4 / kTerms;
  const int64_t steps = DivideUp(terms, kTerms);
  for (int64_t step = 0; step < steps; step += 16) {
    const int64_t left = terms - step * kTerms;
    const __mmask32 pairs = left >= 32 ? 0xffffffffU : (1U << left) - 1;
    const __mmask16 singles = FirstOf16(left);
    for (int64_t first = 0; first < kWidth; first += 16) {
      __m512i words[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const std::byte* row = from + ((first + i) * stride + step * kTerms) * kSize;
        if (first + i >= count) {
          words[i] = _mm512_setzero_si512();
        } else if constexpr (kPairs) {
          words[i] = _mm512_maskz_loadu_epi16(pairs, row);
        } else {
          words[i] = _mm512_maskz_loadu_epi32(singles, row);
        }
      }
      Transpose16(words);
      const __mmask16 wanted = FirstOf16(kWidth - first);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        if (step + i < steps) _mm512_mask_storeu_epi32(to + (step + i) * kWidth + first, wanted, words[i]);
      }
    }
  }
}

// The same from terms that are `stride` elements apart, each with its `count` side by side.
template <bool kPairs, int64_t kWidth>
void PackStrided(const std::byte* from, int64_t stride, int64_t count, int64_t terms, uint32_t* to) {
  for (int64_t first = 0; first < kWidth; first += 16) {
    const __mmask16 there = FirstOf16(std::min(count, kWidth) - first);
    const __mmask16 wanted = FirstOf16(kWidth - first);
    if constexpr (kPairs) {
      const auto* in = reinterpret_cast<const uint16_t*>(from) + first;
      const auto read = [&](int64_t k) __attribute__((always_inline)) {
        return k < terms ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, in + k * stride))
                         : _mm512_setzero_si512();
      };
      for (int64_t k = 0; k < terms; k += 2) {
        const __m512i pair = _mm512_or_si512(read(k), _mm512_slli_epi32(read(k + 1), 16));
        _mm512_mask_storeu_epi32(to + k / 2 * kWidth + first, wanted, pair);
      }
    } else {
      const auto* in = reinterpret_cast<const float*>(from) + first;
      for (int64_t k = 0; k < terms; ++k) {
        _mm512_mask_storeu_epi32(to + k * kWidth + first, wanted, _mm512_maskz_loadu_epi32(there, in + k * stride));
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

// A block of c's rows, and some of its panels of columns, by one thread.
struct PackedProduct::Task {
  int64_t row, rows;            // of c
  int64_t first_panel, panels;  // of the packed columns
};

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
    auto* edge = reinterpret_cast<float*>(packed_a + kBlockRows * kSteps);
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
          const int64_t blocks = DivideUp(steps, kSteps);
          const auto steps_of = [&](int64_t block) { return std::min(kSteps, steps - block * kSteps); };
          const auto terms_of = [&](int64_t block) {
            return std::min(steps_of(block) * kTerms, s.k - (first_step + block * kSteps) * kTerms);
          };
          const auto panel_of_b = [&](int64_t block, int64_t panel) {
            return packed_b + (block * kSteps * panels + panel * steps_of(block)) * kCols;
          };
#pragma omp barrier
          if (chunks > 1 || super == 0) {
            for (int64_t i = me; i < blocks * panels; i += threads) {
              const int64_t block = i / panels;
              const int64_t first = col + i % panels * kCols;
              Pack<kPairs, kCols>(b, first, std::min(kCols, s.n - first), (first_step + block * kSteps) * kTerms,
                                  terms_of(block), room, panel_of_b(block, i % panels));
            }
            if (me == 0 && s.has_bias) {
              WidenRow(static_cast<const std::byte*>(bias) + col * SizeOf(s.bias), s.bias, wide_bias, cols);
            }
#pragma omp barrier
          }

          // As many blocks of rows as keep all threads busy; where there are too few, columns are shared out too.
          int64_t row_blocks = DivideUp(rows, kBlockRows);
          if (row_blocks >= threads) row_blocks = RoundUp(row_blocks, threads);
          const int64_t block_rows = RoundUp(DivideUp(rows, row_blocks), kRows);
          row_blocks = DivideUp(rows, block_rows);
          const int64_t col_groups = std::min(panels, DivideUp(threads, row_blocks));
          for (int64_t i = me; i < row_blocks * col_groups; i += threads) {
            const int64_t group = i % col_groups;
            Task task;
            task.row = super + i / col_groups * block_rows;
            task.rows = std::min(block_rows, super + rows - task.row);
            task.first_panel = panels * group / col_groups;
            task.panels = panels * (group + 1) / col_groups - task.first_panel;
            for (int64_t block = 0; block < blocks; ++block) {
              const int64_t block_steps = steps_of(block);
              for (int64_t row = 0; row < task.rows; row += kRows) {
                Pack<kPairs, kRows>(a, task.row + row, std::min(kRows, task.rows - row),
                                    (first_step + block * kSteps) * kTerms, terms_of(block), room,
                                    packed_a + row * block_steps);
              }
              const bool first_sum = chunk == 0 && block == 0;
              for (int64_t panel = task.first_panel; panel < task.first_panel + task.panels; ++panel) {
                const int64_t width = std::min(kCols, cols - panel * kCols);
                for (int64_t row = 0; row < task.rows; row += kRows) {
                  const uint32_t* of_a = packed_a + row * block_steps;
                  const uint32_t* of_b = panel_of_b(block, panel);
                  if (!direct) {
                    float* to = sums + (task.row - super + row) * blocking.cols + panel * kCols;
                    MultiplyPanels<kPairs>(block_steps, of_a, of_b, to, blocking.cols, !first_sum);
                    continue;
                  }
                  float* to = static_cast<float*>(c) + (task.row + row) * s.ldc + col + panel * kCols;
                  const bool add = !first_sum || s.accumulate;
                  const int64_t height = std::min(kRows, task.rows - row);
                  if (width == kCols && height == kRows) {
                    MultiplyPanels<kPairs>(block_steps, of_a, of_b, to, s.ldc, add);
                  } else {  // beyond c's edge lies something else
                    MultiplyPanels<kPairs>(block_steps, of_a, of_b, edge, kCols, false);
                    for (int64_t r = 0; r < height; ++r) {
                      FinishRow(edge + r * kCols, 1, nullptr, to + r * s.ldc, DType::kF32, add, width);
                    }
                  }
                }
              }
            }
            if (!direct && chunk + 1 == chunks) {
              const int64_t first = task.first_panel * kCols;
              const int64_t width = std::min(task.panels * kCols, cols - first);
              for (int64_t row = task.row; row < task.row + task.rows; ++row) {
                FinishRow(sums + (row - super) * blocking.cols + first, scale, s.has_bias ? wide_bias + first : nullptr,
                          static_cast<std::byte*>(c) + (row * s.ldc + col + first) * SizeOf(s.out), s.out, s.accumulate,
                          width);
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
