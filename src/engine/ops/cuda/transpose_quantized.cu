// Transposes codes. Bytes: all codes and scales, twice. (8192, 4096) of 8 bits: 67 MB, 16 us on an H200.
#include "engine/ops/cuda/tiles.cuh"

namespace ridgeline::engine {
namespace {

template <bool kWhole, Format kFormat>
__global__ void __launch_bounds__(kPatchThreads) Transpose(CodeMatrix codes, Side turned) {
  __shared__ TurnedTile tile;
  const Place place = PlaceOfPatch();
  RowCodes rows;
  codes.Load<kFormat, kWhole>(TileRow() + place.row, TileCol() + place.col, rows);
  RowCodes columns;
  TurnTile(rows, tile, columns);
  StoreCodes<kFormat, kWhole>(turned, TileCol() + place.row, TileRow() + place.col, columns);
}

constexpr int kScaleThreads = 256;

// One thread per scale: every row of a 16x16 block has the block's scale.
__global__ void __launch_bounds__(kScaleThreads)
    TransposeScales(const uint8_t* scales, int64_t stride, uint8_t* turned, int64_t turned_rows, int64_t turned_cols,
                    int64_t turned_stride) {
  const int64_t at = int64_t{blockIdx.x} * kScaleThreads + threadIdx.x;
  const int64_t row = at / turned_cols;
  const int64_t block = at % turned_cols;
  if (row < turned_rows) turned[row * turned_stride + block] = scales[block * 16 * stride + row / 16];
}

void TransposeQuantizedCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const TransposeQuantizedOperands on = call.operands(kTransposeQuantized);
  const Quantizer& quantizer = call.attrs(kTransposeQuantized);
  const Tensor& codes = on.reads.codes;
  const Side turned = SideOf(run, {on.writes.codes, {}, {}}, quantizer, codes.rows, kThreadCols);
  const CodeMatrix rows(run, codes, quantizer.format);
  const bool whole = WholePatches(codes.rows, turned.outer, rows.vectors, {}, turned);
  auto kernel = whole ? Transpose<true, Format::kE4M3> : Transpose<false, Format::kE4M3>;
  if (quantizer.format == Format::kE2M1) {
    kernel = whole ? Transpose<true, Format::kE2M1> : Transpose<false, Format::kE2M1>;
  }
  Launch(run.stream, TilesOf(codes.rows, turned.outer, kPatchThreads), kernel, rows, turned);
  if (!on.reads.scales.defined()) return;
  const Tensor& scales = on.writes.scales;
  Launch(run.stream, {dim3(BlocksFor(scales.elements(), kScaleThreads)), dim3(kScaleThreads)}, TransposeScales,
         run.Data<uint8_t>(on.reads.scales), on.reads.scales.row_stride, run.Data<uint8_t>(scales), scales.rows,
         scales.cols, scales.row_stride);
}

}  // namespace

void AddTransposeQuantizedCuda(CudaKernelTable& table) { table[&kTransposeQuantized].run = TransposeQuantizedCuda; }

}  // namespace ridgeline::engine
