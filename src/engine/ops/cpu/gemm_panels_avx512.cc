// Products on CPUs with AVX-512: of fp32, of pairs of bf16, and, with AMX, of tiles of bf16.
#ifdef __x86_64__
#include <immintrin.h>

#include <algorithm>

#include "engine/ops/cpu/gemm_panels.h"

namespace ridgeline::engine {

// GCC 12's own intrinsics start from an undefined value.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifdef __clang__
#pragma clang attribute push(                                                                            \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16,fma,bmi2"))), \
    apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16,fma,bmi2,prefer-vector-width=512")
#endif

namespace {
constexpr int64_t kRows = 8;
constexpr int64_t kCols = 48;
constexpr int64_t kAhead = 16;  // steps of b fetched ahead

__mmask16 FirstOf16(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1); }

__mmask32 FirstOf32(int64_t n) { return n >= 32 ? 0xffffffffU : n <= 0 ? 0 : (1U << n) - 1; }

template <bool kPairs>
void Multiply(int64_t steps, const uint32_t* a, const uint32_t* b, const float* from, int64_t ld_from, float* to,
              int64_t ld_to, const uint32_t* /*soon*/, int64_t /*soon_words*/) {
  constexpr int64_t kVectors = kCols / 16;
  const float* later = from != nullptr ? from : to;  // needed at the end
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

// Rounds to nearest, ties to even; a NaN stays NaN.
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

template <int64_t kWidth>
void Finish(const float* tile, int64_t height, int64_t width, float scale, const float* bias, std::byte* c, int64_t ldc,
            DType dtype, bool accumulate) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t first = 0; first < width; first += 16) {
    const __mmask16 there = FirstOf16(width - first);
    const __m512 shift = bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(there, bias + first);
    for (int64_t row = 0; row < height; ++row) {
      std::byte* to = c + (row * ldc + first) * SizeOf(dtype);
      __m512 value = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(tile + row * kWidth + first), factor), shift);
      if (accumulate) value = _mm512_add_ps(value, Widen16(to, dtype, there));
      Narrow16(value, to, dtype, there);
    }
  }
}

// Transposes 16 rows of 16 words.
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

// How far packing fetches ahead: in terms, or the 16 rows after these.
constexpr int64_t kPackAheadTerms = 24;

// Stores a step's words of 16 neighbours, from the `first` on, in their panels of kWidth, which lie one after the
// other. There are as many panels as hold `count`.
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

// Packs panels of kWidth if terms are contiguous.
template <bool kPairs, int64_t kWidth>
void PackContiguous(const PanelSource& source, int64_t steps, uint32_t* to) {
  constexpr int64_t kTerms = kPairs ? 2 : 1;  // a word
  constexpr int64_t kSize = 4 / kTerms;
  const auto& [from, stride, terms_contiguous, count, terms] = source;
  for (int64_t first = 0; first < (count + kWidth - 1) / kWidth * kWidth; first += 16) {
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

// The same if neighbours in memory are the `count` of one term.
template <bool kPairs, int64_t kWidth>
void PackStrided(const PanelSource& source, int64_t steps, uint32_t* to) {
  constexpr int64_t kTerms = kPairs ? 2 : 1;
  constexpr int64_t kSize = 4 / kTerms;
  const auto& [from, stride, terms_contiguous, count, terms] = source;
  const int64_t wanted = (count + kWidth - 1) / kWidth * kWidth;
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
      for (int64_t first = 0; first < wanted; first += 32) {
        const __mmask32 there = FirstOf32(count - first);
        const __m512i a = _mm512_maskz_loadu_epi16(2 * step < terms ? there : 0, even + first);
        const __m512i b = _mm512_maskz_loadu_epi16(2 * step + 1 < terms ? there : 0, even + stride + first);
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
void Pack(const PanelSource& from, int64_t steps, uint32_t* to) {
  if (from.terms_contiguous) {
    PackContiguous<kPairs, kWidth>(from, steps, to);
  } else {
    PackStrided<kPairs, kWidth>(from, steps, to);
  }
}

// AMX tiles are 16 rows of 16 words. Four tiles keep the sums of 32 rows and columns.
constexpr int64_t kTile = 16;
constexpr int64_t kTileRows = 2 * kTile;
constexpr int64_t kTileCols = 2 * kTile;

void MultiplyTiles(int64_t steps, const uint32_t* a, const uint32_t* b, const float* from, int64_t ld_from, float* to,
                   int64_t ld_to, const uint32_t* soon, int64_t soon_words) {
  if (from == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, from, ld_from * 4);
    _tile_loadd(1, from + kTile, ld_from * 4);
    _tile_loadd(2, from + kTile * ld_from, ld_from * 4);
    _tile_loadd(3, from + kTile * ld_from + kTile, ld_from * 4);
  }
  const float* next = (from != nullptr ? from : to) + kTileRows * (from != nullptr ? ld_from : ld_to);
  const int64_t ld_next = from != nullptr ? ld_from : ld_to;
  for (int64_t step = 0; step < steps; step += kTile, a += kTile * kTileRows, b += kTile * kTileCols) {
    if (step < kTileRows * kTile / 4) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i, next += ld_next) {
        _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(next + kTile), _MM_HINT_T0);
      }
    }
    for (int64_t word = 0; word < kTile * soon_words; word += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(soon + word), _MM_HINT_T0);
    }
    soon += kTile * soon_words;
    _tile_loadd(4, a, kTile * 4);
    _tile_loadd(6, b, kTileCols * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTile, kTileCols * 4);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTile * kTile, kTile * 4);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, to, ld_to * 4);
  _tile_stored(1, to + kTile, ld_to * 4);
  _tile_stored(2, to + kTile * ld_to, ld_to * 4);
  _tile_stored(3, to + kTile * ld_to + kTile, ld_to * 4);
}

// A panel of a has, for every 16 steps, its rows of 16 words.
void PackTilesOfA(const PanelSource& from, int64_t steps, uint32_t* to) {
  constexpr int64_t kSize = 2;
  const __m512i interleaved = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                               6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  for (int64_t panel = 0; panel < from.count; panel += kTileRows, to += kTileRows * steps) {
    for (int64_t step = 0; step < steps; step += kTile) {
      for (int64_t half = 0; half < kTileRows; half += kTile) {
        const int64_t first = panel + half;
        __m512i words[kTile];
        if (from.terms_contiguous) {
          const __mmask32 there = FirstOf32(from.terms - 2 * step);
#pragma GCC unroll 16
          for (int64_t i = 0; i < kTile; ++i) {
            const std::byte* row = from.data + ((first + i) * from.stride + 2 * step) * kSize;
            words[i] = first + i < from.count ? _mm512_maskz_loadu_epi16(there, row) : _mm512_setzero_si512();
            _mm_prefetch(reinterpret_cast<const char*>(row + kTileRows * from.stride * kSize), _MM_HINT_T0);
          }
        } else {
          const __mmask32 there = FirstOf32(std::min(from.count - first, kTile));
#pragma GCC unroll 16
          for (int64_t i = 0; i < kTile; ++i) {
            const int64_t term = 2 * (step + i);
            const std::byte* even = from.data + (term * from.stride + first) * kSize;
            const std::byte* odd = even + from.stride * kSize;
            words[i] =
                _mm512_permutex2var_epi16(_mm512_maskz_loadu_epi16(term < from.terms ? there : 0, even), interleaved,
                                          _mm512_maskz_loadu_epi16(term + 1 < from.terms ? there : 0, odd));
            if (half == 0) {  // the rows of the next steps
              _mm_prefetch(reinterpret_cast<const char*>(even + 2 * kTile * from.stride * kSize), _MM_HINT_T0);
              _mm_prefetch(reinterpret_cast<const char*>(odd + 2 * kTile * from.stride * kSize), _MM_HINT_T0);
            }
          }
          Transpose16(words);
        }
        uint32_t* group = to + step * kTileRows + half * kTile;
#pragma GCC unroll 16
        for (int64_t i = 0; i < kTile; ++i) _mm512_storeu_si512(group + i * kTile, words[i]);
      }
    }
  }
}

void ConfigureTiles() {
  // Palette 1: the rows, and the bytes in a row, of each of 8 tiles (Intel's Architecture Instruction Set Extensions,
  // 3.4).
  struct alignas(64) Configuration {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Configuration) == 64);
  static constexpr Configuration kConfiguration;
  _tile_loadconfig(&kConfiguration);
}
void ReleaseTiles() { _tile_release(); }

template <bool kPairs>
PanelKernel VectorPanels() {
  PanelKernel kernel{};
  kernel.rows = kRows;
  kernel.cols = kCols;
  kernel.step_unit = 1;
  kernel.pack_rows = 4 * kRows;
  kernel.block_rows = 12 * kRows;
  kernel.block_steps = 384;
  kernel.row_cost = 16;
  kernel.pack_a = Pack<kPairs, kRows>;
  kernel.pack_b = Pack<kPairs, kCols>;
  kernel.multiply = Multiply<kPairs>;
  kernel.finish = Finish<kCols>;
  return kernel;
}

}  // namespace

PanelKernel Avx512Panels() { return VectorPanels<false>(); }
PanelKernel Avx512Bf16Panels() { return VectorPanels<true>(); }

PanelKernel AmxPanels() {
  PanelKernel kernel{};
  kernel.rows = kTileRows;
  kernel.cols = kTileCols;
  kernel.step_unit = kTile;
  kernel.pack_rows = kTileRows;
  kernel.block_rows = 12 * kTileRows;
  kernel.block_steps = 128;
  kernel.row_cost = 2;
  kernel.pack_a = PackTilesOfA;
  kernel.pack_b = Pack<true, kTileCols>;
  kernel.multiply = MultiplyTiles;
  kernel.finish = Finish<kTileCols>;
  kernel.enter = ConfigureTiles;
  kernel.leave = ReleaseTiles;
  return kernel;
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

}  // namespace ridgeline::engine
#endif
