// Five ways to a product, chosen once per shape by what was measured fastest (bench/ops_bench.cc):
//   packed   our own (gemm_packed.h), where the CPU has AVX-512 and no matrix unit of its own (AMX).
//   whole    bf16 on AMX: one oneDNN matmul. Its blocked kernel (brgemm) takes dense operands only.
//   tiles    bf16 on AMX, of operands that are strided, or where b is not transposed and large, which brgemm packs
//            slowly: oneDNN's older kernel (gemm:jit), which it picks for strided operands, on tiles of c. It would
//            keep an fp32 copy of a bf16 c for every thread, so it is given an fp32 tile instead, which is then
//            rounded.
//   sgemm    fp32 elsewhere: oneDNN's sgemm into c.
//   widened  the rest: blocks of a and b converted to fp32, then sgemm.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <tuple>

#include "engine/device/cpu/parallel.h"
#include "engine/ops/gemm.h"
#include "engine/ops/gemm_onednn.h"
#include "engine/ops/gemm_operand.h"
#include "engine/ops/gemm_packed.h"
#include "engine/ops/gemm_rows.h"
#include "engine/ops/scratch.h"

namespace ridgeline {
namespace {

constexpr int64_t kTileRows = 2048;
constexpr int64_t kTileCols = 1024;
constexpr int64_t kWideRows = 512;    // of the widened way: rows of a block of a and c
constexpr int64_t kWideDepth = 1024;  // and what it sums over at a time
constexpr int64_t kTileBytes = kTileRows * kTileCols * 4;
static_assert((kWideRows * kTileCols + kWideRows * kWideDepth + kWideDepth * kTileCols) * 4 <= kTileBytes);
// From how many columns and terms on tiles win, measured: with a transposed, and without.
constexpr int64_t kTilesFromCols = 1024;
constexpr int64_t kTilesFromTerms = 1024;
constexpr int64_t kTilesFromTermsPlain = 4096;

// What all products share, since they run one after another.
struct Scratch {
  AlignedBuffer tile;  // a part of c in fp32; the widened way's blocks
  AlignedBuffer bias;  // a tile's, in fp32
  AlignedBuffer work;  // what oneDNN or the packed way asks for
  int64_t bytes() const { return tile.bytes() + bias.bytes() + work.bytes(); }
};

SharedCache<int, Scratch>& Scratches() {
  static SharedCache<int, Scratch> scratches;
  return scratches;
}
std::shared_ptr<Scratch> SharedScratch() {
  return Scratches().Get(0, [] { return std::make_shared<Scratch>(); });
}

enum class Way : uint8_t { kPacked, kWhole, kTiles, kSgemm, kWidened };

// The size of the tiles that n is cut into: about equal, multiples of 64, at most `most`.
int64_t TileSize(int64_t n, int64_t most) {
  const int64_t tiles = (n + most - 1) / most;
  return std::min({n, most, ((n + tiles - 1) / tiles + 63) / 64 * 64});
}

struct Problem {
  MatmulShape shape;
  bool quantized = false;
  Way way = Way::kSgemm;
  int64_t tile_rows = 0, tile_cols = 0;

  explicit Problem(const OpCall& call) : quantized(call.op == &kQuantizedGemm) {
    // A single row's stride means nothing, and oneDNN wants it to be at least the row.
    const auto stride = [](const Tensor& t) { return std::max(t.row_stride, t.cols); };
    const Tensor& c = call.args[quantized ? 6 : 2];
    const Tensor& bias = call.args[quantized ? 7 : 3];
    if (quantized) {
      const auto& attrs = call.attrs<QuantizedGemmAttrs>();
      shape.trans_b = true;
      shape.k = attrs.terms;
      shape.in = DType::kBF16;
      shape.accumulate = attrs.accumulate;
    } else {
      const auto& [a, b] = std::tie(call.args[0], call.args[1]);
      const auto& attrs = call.attrs<GemmAttrs>();
      shape.trans_a = attrs.trans_a == Trans::kYes;
      shape.trans_b = attrs.trans_b == Trans::kYes;
      shape.k = shape.trans_a ? a.rows : a.cols;
      shape.lda = stride(a);
      shape.ldb = stride(b);
      shape.in = a.dtype;
      shape.accumulate = attrs.accumulate;
    }
    shape.m = c.rows;
    shape.n = c.cols;
    shape.ldc = stride(c);
    shape.out = c.dtype;
    shape.has_bias = bias.defined();
    if (shape.has_bias) shape.bias = bias.dtype;

    tile_rows = TileSize(shape.m, kTileRows);
    tile_cols = TileSize(shape.n, kTileCols);
    if (shape.in == DType::kBF16 && !quantized && EffectiveCpuIsa() == CpuIsa::kAmx) {
      const bool dense = shape.lda == call.args[0].cols && shape.ldb == call.args[1].cols && shape.ldc == c.cols;
      const bool slow = !shape.trans_b && shape.n >= kTilesFromCols &&
                        shape.k >= (shape.trans_a ? kTilesFromTerms : kTilesFromTermsPlain);
      way = dense && !slow ? Way::kWhole : Way::kTiles;
      if (slow && shape.n == tile_cols) tile_cols = TileSize(shape.n, kTileCols / 2);  // strided, so gemm:jit
    } else if (PackedProduct::Supports(DType::kF32)) {
      way = Way::kPacked;
    } else {
      way = shape.in == DType::kF32 && shape.out == DType::kF32 ? Way::kSgemm : Way::kWidened;
    }
  }

  // What is multiplied: bf16 as it is where the CPU can, else widened.
  DType multiplied() const { return shape.in == DType::kBF16 && CpuMultipliesBf16() ? DType::kBF16 : DType::kF32; }
  PackedShape Packed() const {
    return {shape.m,   shape.n,        shape.k,    shape.ldc,        multiplied(),
            shape.out, shape.has_bias, shape.bias, shape.accumulate, quantized};
  }

  // Tiles go straight to c where it needs no rounding and no bias.
  bool direct() const { return shape.out == DType::kF32 && !shape.has_bias; }

  // Equal for calls that can share a state.
  std::array<int64_t, 14> Key() const {
    const MatmulShape& s = shape;
    return {s.m,
            s.n,
            s.k,
            s.lda,
            s.ldb,
            s.ldc,
            int64_t{s.trans_a},
            int64_t{s.trans_b},
            int64_t{s.accumulate},
            int64_t{quantized},
            static_cast<int64_t>(s.in),
            static_cast<int64_t>(s.out),
            s.has_bias ? static_cast<int64_t>(s.bias) : -1,
            omp_get_max_threads()};
  }
};

int64_t OffsetOf(bool transposed, int64_t row, int64_t col, int64_t stride) {
  return transposed ? col * stride + row : row * stride + col;
}

class GemmState : public KernelState {
 public:
  explicit GemmState(const Problem& problem) : problem_(problem), scratch_(SharedScratch()) {
    const MatmulShape& s = problem_.shape;
    if (problem_.way == Way::kPacked) {
      packed_ = std::make_unique<PackedProduct>(problem_.Packed());
      scratch_->work.Reserve(packed_->scratch_bytes());
    } else if (problem_.way == Way::kWhole) {
      matmuls_[0][0] = Make(s);
    } else if (problem_.way == Way::kTiles) {
      for (const bool last_row : {false, true}) {
        for (const bool last_col : {false, true}) {
          MatmulShape tile = s;
          tile.m = last_row ? (s.m - 1) % problem_.tile_rows + 1 : problem_.tile_rows;
          tile.n = last_col ? (s.n - 1) % problem_.tile_cols + 1 : problem_.tile_cols;
          if (!problem_.direct()) {
            tile.out = DType::kF32;
            tile.ldc = problem_.tile_cols;
            tile.has_bias = false;
            tile.accumulate = false;
          }
          matmuls_[last_row ? 1 : 0][last_col ? 1 : 0] = Make(tile);
        }
      }
    }
    if (problem_.way == Way::kWidened || (problem_.way == Way::kTiles && !problem_.direct())) {
      scratch_->tile.Reserve(kTileBytes);
    }
    if (s.has_bias && problem_.way != Way::kPacked) scratch_->bias.Reserve(kTileCols * 4);
  }

  void Run(const OpCall& call, const CpuRun& run) {
    if (problem_.quantized) return RunQuantized(call, run);
    const auto* a = run.Data<std::byte>(Bytewise(call.args[0]));
    const auto* b = run.Data<std::byte>(Bytewise(call.args[1]));
    auto* c = run.Data<std::byte>(Bytewise(call.args[2]));
    const auto* bias = call.args[3].defined() ? run.Data<std::byte>(Bytewise(call.args[3])) : nullptr;
    switch (problem_.way) {
      case Way::kPacked:
      case Way::kWidened:
        return RunStored(a, b, c, bias);
      case Way::kSgemm:
        return RunSgemm(a, b, c, bias);
      case Way::kWhole:
        return matmuls_[0][0].Run(a, b, c, bias, scratch_->work.data());
      case Way::kTiles:
        return RunTiles(a, b, c, bias);
    }
  }

 private:
  // The tensor with its offset in bytes, whatever its dtype.
  static Tensor Bytewise(Tensor t) {
    t.offset *= SizeOf(t.dtype);
    return t;
  }

  Matmul Make(const MatmulShape& shape) {
    Matmul matmul(shape, Threading::kAll);
    scratch_->work.Reserve(matmul.scratch_bytes());
    return matmul;
  }

  const std::byte* A(const std::byte* a, int64_t row, int64_t depth) const {
    const MatmulShape& s = problem_.shape;
    return a + OffsetOf(s.trans_a, row, depth, s.lda) * SizeOf(s.in);
  }
  const std::byte* B(const std::byte* b, int64_t depth, int64_t col) const {
    const MatmulShape& s = problem_.shape;
    return b + OffsetOf(s.trans_b, depth, col, s.ldb) * SizeOf(s.in);
  }
  std::byte* C(std::byte* c, int64_t row, int64_t col) const {
    return c + (row * problem_.shape.ldc + col) * SizeOf(problem_.shape.out);
  }

  void RunStored(const std::byte* a, const std::byte* b, std::byte* c, const std::byte* bias) {
    const MatmulShape& s = problem_.shape;
    if (problem_.multiplied() == s.in) {
      RunOperands(StoredOperand(a, s.lda, !s.trans_a, s.in), StoredOperand(b, s.ldb, s.trans_b, s.in), c, bias, 1);
    } else {
      RunOperands(WidenedOperand(a, s.lda, !s.trans_a, s.in), WidenedOperand(b, s.ldb, s.trans_b, s.in), c, bias, 1);
    }
  }

  void RunQuantized(const OpCall& call, const CpuRun& run) {
    const auto& attrs = call.attrs<QuantizedGemmAttrs>();
    const auto data = [&](size_t first, const Quantizer& quantizer) {
      QuantizedTensor q;
      q.quantizer = quantizer;
      q.codes = call.args[first];
      q.scales = call.args[first + 1];
      return DataOf(run, q);
    };
    float scale = 1;
    for (const size_t at : {size_t{2}, size_t{5}}) {
      if (call.args[at].defined()) scale *= *run.Data<float>(call.args[at]);
    }
    auto* c = run.Data<std::byte>(Bytewise(call.args[6]));
    const auto* bias = call.args[7].defined() ? run.Data<std::byte>(Bytewise(call.args[7])) : nullptr;
    const DType multiplied = problem_.multiplied();
    RunOperands(QuantizedOperand(data(0, attrs.a), multiplied), QuantizedOperand(data(3, attrs.b), multiplied), c, bias,
                scale);
  }

  void RunOperands(const ProductOperand& a, const ProductOperand& b, std::byte* c, const std::byte* bias, float scale) {
    if (problem_.way == Way::kPacked) {
      packed_->Run(a, b, c, bias, scale, scratch_->work.data());
    } else {
      RunWidened(a, b, c, bias, scale);
    }
  }

  void RunSgemm(const std::byte* a, const std::byte* b, std::byte* c, const std::byte* bias) {
    MatmulShape s = problem_.shape;
    if (bias != nullptr) {  // goes into c first; the product is then added
      for (int64_t col = 0; col < s.n; col += kTileCols) {
        const int64_t cols = std::min(kTileCols, s.n - col);
        const float* wide = WideBias(bias, col, cols);
        ParallelFor(s.m, 16, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            FinishRow(wide, 1, nullptr, C(c, row, col), s.out, s.accumulate, cols);
          }
        });
      }
      s.accumulate = true;
    }
    Sgemm(s, reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), reinterpret_cast<float*>(c));
  }

  void RunTiles(const std::byte* a, const std::byte* b, std::byte* c, const std::byte* bias) {
    const MatmulShape& s = problem_.shape;
    for (int64_t col = 0; col < s.n; col += problem_.tile_cols) {
      const int64_t cols = std::min(problem_.tile_cols, s.n - col);
      for (int64_t row = 0; row < s.m; row += problem_.tile_rows) {
        const int64_t rows = std::min(problem_.tile_rows, s.m - row);
        Matmul& matmul = matmuls_[row + rows == s.m ? 1 : 0][col + cols == s.n ? 1 : 0];
        std::byte* to = problem_.direct() ? C(c, row, col) : scratch_->tile.data();
        matmul.Run(A(a, row, 0), B(b, 0, col), to, nullptr, scratch_->work.data());
        if (!problem_.direct()) Finish(bias, c, row, rows, col, cols, problem_.tile_cols);
      }
    }
  }

  void RunWidened(const ProductOperand& a, const ProductOperand& b, std::byte* c, const std::byte* bias, float scale) {
    const MatmulShape& s = problem_.shape;
    auto* wide_c = reinterpret_cast<float*>(scratch_->tile.data());
    float* wide_a = wide_c + kWideRows * kTileCols;
    float* wide_b = wide_a + kWideRows * kWideDepth;
    for (int64_t col = 0; col < s.n; col += kTileCols) {
      const int64_t cols = std::min(kTileCols, s.n - col);
      for (int64_t row = 0; row < s.m; row += kWideRows) {
        const int64_t rows = std::min(kWideRows, s.m - row);
        for (int64_t depth = 0; depth < s.k; depth += kWideDepth) {
          const int64_t terms = std::min(kWideDepth, s.k - depth);
          MatmulShape block;
          block.m = rows;
          block.n = cols;
          block.k = terms;
          block.ldc = cols;
          block.accumulate = depth > 0;
          const ProductOperand::Block in_a = ReadAll(a, row, rows, depth, terms, wide_a);
          const ProductOperand::Block in_b = ReadAll(b, col, cols, depth, terms, wide_b);
          block.lda = in_a.stride;
          block.trans_a = !a.terms_contiguous();
          block.ldb = in_b.stride;
          block.trans_b = b.terms_contiguous();
          Sgemm(block, reinterpret_cast<const float*>(in_a.data), reinterpret_cast<const float*>(in_b.data), wide_c);
        }
        Finish(bias, c, row, rows, col, cols, cols, scale);
      }
    }
  }

  // A block in fp32, converted by all cores where it has to be.
  static ProductOperand::Block ReadAll(const ProductOperand& operand, int64_t i, int64_t count, int64_t k,
                                       int64_t terms, float* room) {
    const bool by_row = operand.terms_contiguous();
    const int64_t cols = by_row ? terms : count;
    ProductOperand::Block block{};
    ParallelFor(by_row ? count : terms, 16, [&](int64_t begin, int64_t end) {
      auto* to = reinterpret_cast<std::byte*>(room + begin * cols);
      const auto part = by_row ? operand.Read(i + begin, end - begin, k, terms, to)
                               : operand.Read(i, count, k + begin, end - begin, to);
      if (begin == 0) block = part;
    });
    return block;
  }

  const float* WideBias(const std::byte* bias, int64_t col, int64_t cols) {
    auto* wide = reinterpret_cast<float*>(scratch_->bias.data());
    WidenRow(bias + col * SizeOf(problem_.shape.bias), problem_.shape.bias, wide, cols);
    return wide;
  }

  // The fp32 tile, `stride` elements a row, into its part of c.
  void Finish(const std::byte* bias, std::byte* c, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t stride,
              float scale = 1) {
    const MatmulShape& s = problem_.shape;
    const auto* tile = reinterpret_cast<const float*>(scratch_->tile.data());
    const float* wide = bias == nullptr ? nullptr : WideBias(bias, col, cols);
    ParallelFor(rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        FinishRow(tile + r * stride, scale, wide, C(c, row + r, col), s.out, s.accumulate, cols);
      }
    });
  }

  Problem problem_;
  std::shared_ptr<Scratch> scratch_;
  std::unique_ptr<PackedProduct> packed_;
  std::array<std::array<Matmul, 2>, 2> matmuls_;  // of tiles: [last row of them][last column]
};

std::shared_ptr<KernelState> Prepare(const OpCall& call) {
  static SharedCache<std::array<int64_t, 14>, GemmState> states;
  const Problem problem(call);
  return states.Get(problem.Key(), [&] { return std::make_shared<GemmState>(problem); });
}

void Run(const OpCall& call, const CpuRun& run, KernelState* state) { static_cast<GemmState*>(state)->Run(call, run); }

}  // namespace

int64_t GemmScratchBytes() { return SharedScratch()->bytes(); }

void AddGemmCpu(CpuKernelTable& table) { table[&kGemm] = table[&kQuantizedGemm] = {Run, Prepare}; }

}  // namespace ridgeline
