#include "engine/ops/cpu/gemm_packed.h"

#include <omp.h>

#include <algorithm>

#include "engine/ops/cpu/gemm_rows.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kQuantizedBlock = 32;  // the unit in which quantized operands can be cut
constexpr int64_t kMostCols = 1536;      // the most columns of b packed at once
constexpr int64_t kFewCols = 384;        // and the fewest, if b has as many
constexpr int64_t kPackedWords = int64_t{2} << 20;
constexpr int64_t kSumWords = int64_t{1} << 20;

int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }
int64_t RoundUp(int64_t n, int64_t to) { return DivideUp(n, to) * to; }

// A thread's own memory, in bytes, each part aligned to 64.
struct ThreadRoom {
  int64_t operand;   // a part of an operand, converted
  int64_t packed_a;  // a block of a
  int64_t tile;      // sums of a part of c
  int64_t bytes() const { return operand + packed_a + tile; }
};
ThreadRoom ThreadRoomOf(const PanelKernel& kernel) {
  return {RoundUp(4 * std::max(kernel.cols, kernel.pack_rows) * kernel.block_steps, 64),
          RoundUp(4 * kernel.block_rows * kernel.block_steps, 64), RoundUp(4 * kernel.rows * kernel.cols, 64)};
}

struct Parts {
  int64_t rows, cols;
};
// Divides a part of c of so many rows and columns among threads, so that all have work and each spends the least time
// on its operands. Each thread packs the rows of a that it needs. b is packed once for all.
Parts Share(int64_t threads, int64_t rows, int64_t row_panels, int64_t row_cost, int64_t cols, int64_t panels) {
  const int64_t few_rows = std::min(threads, row_panels);
  Parts best{few_rows, std::min(threads / few_rows, panels)};
  int64_t least = row_cost * (rows / best.rows) + cols / best.cols;
  for (int64_t col_parts = 1; col_parts <= std::min(threads, panels); ++col_parts) {
    const int64_t row_parts = threads / col_parts;
    const int64_t cost = row_cost * (rows / row_parts) + cols / col_parts;
    if (row_parts * col_parts == threads && row_parts <= row_panels && cost < least) {
      best = {row_parts, col_parts};
      least = cost;
    }
  }
  return best;
}

}  // namespace

// How a product is cut. Only the order in which k is summed affects the result: block_steps and chunk_steps.
struct PackedProduct::Blocking {
  int64_t steps;        // words along k
  int64_t block_steps;  // in a block
  int64_t cols;         // columns of c whose part of b is packed at once
  int64_t chunk_steps;  // steps of b packed at once
  int64_t super_rows;   // rows of c whose sums are kept at once
};

PackedProduct::Blocking PackedProduct::Cut() const {
  const int64_t cols = kernel_->cols;
  Blocking b{};
  b.steps = RoundUp(DivideUp(shape_.k, 4 / SizeOf(shape_.in)), kernel_->step_unit);
  b.block_steps = RoundUp(DivideUp(b.steps, DivideUp(b.steps, kernel_->block_steps)), kQuantizedBlock);
  const int64_t all_cols = RoundUp(shape_.n, cols);
  b.cols =
      std::clamp(kPackedWords / b.steps / cols * cols, std::min(kFewCols, all_cols), std::min(kMostCols, all_cols));
  b.cols = RoundUp(DivideUp(all_cols, DivideUp(all_cols, b.cols)), cols);
  b.chunk_steps = std::min(b.steps, kPackedWords / b.cols / b.block_steps * b.block_steps);
  b.super_rows =
      std::min(RoundUp(shape_.m, kernel_->rows), kSumWords / b.cols / kernel_->block_rows * kernel_->block_rows);
  return b;
}

PackedProduct::PackedProduct(const PackedShape& shape)
    : shape_(shape), kernel_(&PanelKernelFor(shape.in)), threads_(omp_get_max_threads()) {}

int64_t PackedProduct::scratch_bytes() const {
  return 4 * (kPackedWords + kSumWords + kMostCols) + threads_ * ThreadRoomOf(*kernel_).bytes();
}

// Packs a part of an operand as the kernel's panels. room: for elements that must be converted.
void PackedProduct::Pack(const ProductOperand& operand, bool is_a, int64_t i, int64_t count, int64_t k, int64_t terms,
                         int64_t steps, std::byte* room, uint32_t* to) const {
  const ProductOperand::Block block = operand.Read(i, count, k, terms, room);
  (is_a ? kernel_->pack_a : kernel_->pack_b)({block.data, block.stride, operand.terms_contiguous(), count, terms},
                                             steps, to);
}

void PackedProduct::Run(const ProductOperand& a, const ProductOperand& b, void* c, const void* bias, float scale,
                        std::byte* scratch) const {
  const int64_t word_terms = 4 / SizeOf(shape_.in);
  const PackedShape& s = shape_;
  const PanelKernel& kernel = *kernel_;
  const Blocking blocking = Cut();
  const ThreadRoom thread_room = ThreadRoomOf(kernel);
  const bool direct = s.out == DType::kF32 && !s.has_bias && !s.scaled;  // sums are made in c
  auto* packed_b = reinterpret_cast<uint32_t*>(scratch);
  auto* sums = reinterpret_cast<float*>(packed_b + kPackedWords);
  float* wide_bias = sums + kSumWords;
  auto* of_threads = reinterpret_cast<std::byte*>(wide_bias + kMostCols);

#pragma omp parallel num_threads(std::min(threads_, omp_get_max_threads()))
  {
    const int64_t me = omp_get_thread_num();
    const int64_t threads = omp_get_num_threads();
    std::byte* room = of_threads + me * thread_room.bytes();
    auto* packed_a = reinterpret_cast<uint32_t*>(room + thread_room.operand);
    auto* tile = reinterpret_cast<float*>(room + thread_room.operand + thread_room.packed_a);
    if (kernel.enter != nullptr) kernel.enter();
    const int64_t chunks = DivideUp(blocking.steps, blocking.chunk_steps);

    for (int64_t col = 0; col < s.n; col += blocking.cols) {
      const int64_t cols = std::min(blocking.cols, s.n - col);
      const int64_t panels = DivideUp(cols, kernel.cols);
      const int64_t super_rows = direct ? s.m : blocking.super_rows;
      for (int64_t super = 0; super < s.m; super += super_rows) {
        const int64_t rows = std::min(super_rows, s.m - super);
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          const int64_t first_step = chunk * blocking.chunk_steps;
          const int64_t steps = std::min(blocking.chunk_steps, blocking.steps - first_step);
          const int64_t blocks = DivideUp(steps, blocking.block_steps);
          const auto first_term = [&](int64_t block) {
            return (first_step + block * blocking.block_steps) * word_terms;
          };
          const auto steps_of = [&](int64_t block) {
            return std::min(blocking.block_steps, steps - block * blocking.block_steps);
          };
          const auto terms_of = [&](int64_t block) {
            return std::min(steps_of(block) * word_terms, s.k - first_term(block));
          };
          const auto panel_of_b = [&](int64_t block, int64_t panel) {
            return packed_b + (block * blocking.block_steps * panels + panel * steps_of(block)) * kernel.cols;
          };
#pragma omp barrier
          if (chunks > 1 || super == 0) {
            // Neighbouring panels go to one thread, because packing fetches the next one ahead.
            for (int64_t block = 0; block < blocks; ++block) {
              for (int64_t panel = panels * me / threads; panel < panels * (me + 1) / threads; ++panel) {
                const int64_t first = col + panel * kernel.cols;
                Pack(b, false, first, std::min(kernel.cols, s.n - first), first_term(block), terms_of(block),
                     steps_of(block), room, panel_of_b(block, panel));
              }
            }
            if (me == 0 && s.has_bias) {
              WidenRow(static_cast<const std::byte*>(bias) + col * SizeOf(s.bias), s.bias, wide_bias, cols);
            }
#pragma omp barrier
          }

          const int64_t row_panels = DivideUp(rows, kernel.rows);
          const auto [row_parts, col_parts] = Share(threads, rows, row_panels, kernel.row_cost, cols, panels);
          if (me >= row_parts * col_parts) continue;
          const int64_t col_part = me % col_parts;
          const int64_t first_panel = panels * col_part / col_parts;
          const int64_t last_panel = panels * (col_part + 1) / col_parts;
          const int64_t row_part = me / col_parts;
          const int64_t first_row = super + row_panels * row_part / row_parts * kernel.rows;
          const int64_t last_row =
              std::min(super + row_panels * (row_part + 1) / row_parts * kernel.rows, super + rows);
          const int64_t row_blocks = DivideUp(last_row - first_row, kernel.block_rows);
          const int64_t block_rows = RoundUp(DivideUp(last_row - first_row, row_blocks), kernel.rows);
          for (int64_t row_of_block = first_row; row_of_block < last_row; row_of_block += block_rows) {
            const int64_t rows_of_block = std::min(block_rows, last_row - row_of_block);
            for (int64_t block = 0; block < blocks; ++block) {
              const int64_t block_steps = steps_of(block);
              for (int64_t row = 0; row < rows_of_block; row += kernel.pack_rows) {
                Pack(a, true, row_of_block + row, std::min(kernel.pack_rows, rows_of_block - row), first_term(block),
                     terms_of(block), block_steps, room, packed_a + row * block_steps);
              }
              const bool first_sum = chunk == 0 && block == 0;
              const bool last_sum = chunk + 1 == chunks && block + 1 == blocks;
              for (int64_t panel = first_panel; panel < last_panel; ++panel) {
                const int64_t width = std::min(kernel.cols, cols - panel * kernel.cols);
                const int64_t soon_words = DivideUp(kernel.cols, DivideUp(rows_of_block, kernel.rows));
                for (int64_t row = 0; row < rows_of_block; row += kernel.rows) {
                  const int64_t height = std::min(kernel.rows, rows_of_block - row);
                  const uint32_t* of_a = packed_a + row * block_steps;
                  const uint32_t* of_b = panel_of_b(block, panel);
                  const uint32_t* soon = of_b + block_steps * (kernel.cols + row / kernel.rows * soon_words);
                  std::byte* in_c = static_cast<std::byte*>(c) +
                                    ((row_of_block + row) * s.ldc + col + panel * kernel.cols) * SizeOf(s.out);
                  if (direct && width == kernel.cols && height == kernel.rows) {
                    auto* sum = reinterpret_cast<float*>(in_c);
                    kernel.multiply(block_steps, of_a, of_b, first_sum && !s.accumulate ? nullptr : sum, s.ldc, sum,
                                    s.ldc, soon, soon_words);
                    continue;
                  }
                  // Sums that are not made in c lie tile after tile.
                  float* sum = sums + (panel * super_rows + row_of_block - super + row) * kernel.cols;
                  const bool kept = !direct && !last_sum;
                  float* to = kept ? sum : tile;
                  kernel.multiply(block_steps, of_a, of_b, first_sum || direct ? nullptr : sum, kernel.cols, to,
                                  kernel.cols, soon, soon_words);
                  if (kept) continue;
                  const float* of_bias = s.has_bias ? wide_bias + panel * kernel.cols : nullptr;
                  kernel.finish(tile, height, width, scale, of_bias, in_c, s.ldc, s.out,
                                s.accumulate || (direct && !first_sum));
                }
              }
            }
          }
        }
      }
    }
    if (kernel.leave != nullptr) kernel.leave();
  }
}

}  // namespace ridgeline::engine
