// Codes turned round. Bytes: all codes and scales, twice. (8192, 4096) of 8 bits: 67 MB, 16 us on an H200.
#include "engine/ops/cuda/tiles.cuh"

namespace ridgeline {
namespace {

template <Format kFormat>
__global__ void __launch_bounds__(kTileThreads) Transpose(CodeMatrix codes, Side turned) {
  for (int k = 0; k < kUnitsOfWarp; ++k) {
    const Place place = PlaceOf(k);
    const int64_t row = TileRow() + place.row;
    const int64_t col = TileCol() + place.col;
    RowCodes rows;
    codes.Load<kFormat>(row, col, rows);
    ColumnCodes columns;
    TurnCodes(rows, columns);
    StoreColumns<kFormat>(turned, row, col, columns);
  }
}

constexpr int kScaleThreads = 256;

// A thread a scale: every row of a 16x16 block has the block's.
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
  const Side turned = SideOf(run, {on.writes.codes, {}, {}}, quantizer, codes.rows, kThreadRows);
  const bool pairs = quantizer.format == Format::kE2M1;
  Launch(run.stream, TilesOf(codes.rows, turned.outer), pairs ? Transpose<Format::kE2M1> : Transpose<Format::kE4M3>,
         CodeMatrix(run, codes, quantizer.format), turned);
  if (!on.reads.scales.defined()) return;
  const Tensor& scales = on.writes.scales;
  Launch(run.stream, {dim3(BlocksFor(scales.elements(), kScaleThreads)), dim3(kScaleThreads)}, TransposeScales,
         run.Data<uint8_t>(on.reads.scales), on.reads.scales.row_stride, run.Data<uint8_t>(scales), scales.rows,
         scales.cols, scales.row_stride);
}

}  // namespace

void AddTransposeQuantizedCuda(CudaKernelTable& table) { table[&kTransposeQuantized].run = TransposeQuantizedCuda; }

}  // namespace ridgeline
