// Detects whether two blocks of a grid write to one place without atomics. On a device either may write last, or both
// may read the old value. Here blocks run one after another, so the results do not show it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda_on_cpu/memory.h"

namespace cuda_on_cpu {

// Watches one grid. It compares memory before and after, so it does not see a block that writes the same value.
class WriteWatch {
 public:
  // NoteAtomic reports to it while it exists.
  explicit WriteWatch(const DeviceMemory& memory);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // Checks what the next block changed. Returns the fault, in words; empty if none.
  std::string AfterBlock();

 private:
  struct Piece {
    const std::byte* memory;
    std::vector<std::byte> before;
    std::vector<int> writer;  // the block that changed a byte, from 1
  };
  std::vector<Piece> pieces_;
  int block_ = 0;
};

}  // namespace cuda_on_cpu
