// What has to be kept of a run to continue it to the bit, as named whole tensors, whatever part of them a rank holds.
// (Data, dropout and the learning rate follow from the step's number.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/device/cpu/executor.h"
#include "engine/train/program.h"

namespace ridgeline {

// One tensor of the state, as it is stored.
struct StateTensor {
  std::string name;            // Hugging Face's of a weight; NAME.exp_avg and NAME.exp_avg_sq of its moments
  std::string dtype;           // safetensors': "F32", "BF16"; a weight with a remainder is its exact fp32 master
  std::vector<int64_t> shape;  // the whole tensor's
  bool is_weight = false;      // else the optimizer's, or other state

  int64_t elements() const;
  int64_t element_bytes() const { return dtype == "F32" || dtype == "I32" ? 4 : 2; }
  int64_t bytes() const { return elements() * element_bytes(); }

  // Where it lies in the slab: in `high` (and `low`, the remainder) from element `offset` on. Of a sharded parameter
  // these hold a part of the elements.
  Tensor high;
  Tensor low;
  int64_t offset = 0;
};

class TrainingState {
 public:
  // Both must outlive it.
  TrainingState(const StepProgram& program, CpuExecutor& executor);

  const std::vector<StateTensor>& tensors() const { return tensors_; }

  struct Range {
    int64_t first = 0;
    int64_t count = 0;
  };
  // The elements of a tensor that this rank holds.
  Range Held(const StateTensor& tensor) const;

  // Elements [first, first + to.size() / element_bytes) of the whole tensor, as stored. REQUIRES: this rank holds them.
  void Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;
  // The same, written into the slab.
  void Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);

 private:
  CpuExecutor& executor_;
  std::vector<StateTensor> tensors_;
};

}  // namespace ridgeline
