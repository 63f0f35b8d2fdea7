// Whether two blocks of a grid write to one place, and not by atomics: on a device either may be the last, or both read
// what was there before. Blocks run one after another here, so that what they compute does not show it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda_on_cpu/memory.h"

namespace cuda_on_cpu {

// Of one grid. It compares memory as it was with memory as it is: a block that writes what was there is not seen.
class WriteWatch {
 public:
  // As long as it lives, NoteAtomic tells it.
  explicit WriteWatch(const DeviceMemory& memory);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // Looks what the next block changed. What is wrong of it, in words; empty: nothing.
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
