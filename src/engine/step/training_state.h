// What has to be kept of a run to continue it to the bit, as named whole tensors, whatever part of them a rank holds.
// (Data, dropout and the learning rate follow from the step's number.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/device/executor.h"
#include "engine/step/program.h"

namespace ridgeline {

// One tensor of the state, as it is stored.
struct StateTensor {
  std::string name;            // Hugging Face's of a weight; NAME.exp_avg and NAME.exp_avg_sq of its moments
  std::string dtype;           // safetensors': "F32", "BF16"; a weight with a remainder is its exact fp32 master
  std::vector<int64_t> shape;  // the whole tensor's
  bool is_weight = false;      // else the optimizer's, or other state

  int64_t elements() const;
  int64_t element_bytes() const { return dtype == "F32" || dtype == "I32" ? 4 : dtype == "U8" ? 1 : 2; }
  int64_t bytes() const { return elements() * element_bytes(); }

  // Where it lies in the slab: `high` (and `master`, what keeps the master weight beside it) hold elements from `first`
  // on of what it is a part of, and it begins at element `offset` of that. `whole`, where it is defined, are all of its
  // weights as they are multiplied. Of a weight that nothing holds but `codes`, which are state of their own, it is
  // what they stand for: read, and never written.
  Tensor high;
  Tensor master;
  Tensor whole;
  QuantizedTensor codes;
  bool in_parts = false;  // each rank holds some of it; else all hold all
  int64_t first = 0;
  int64_t offset = 0;
};

class TrainingState {
 public:
  // All must outlive it.
  TrainingState(const StepProgram& program, Executor& executor, Communicator& communicator);

  const std::vector<StateTensor>& tensors() const { return tensors_; }

  struct Range {
    int64_t first = 0;
    int64_t count = 0;
  };
  // The elements of a tensor that this rank keeps up to date, and those it needs: with shard: optimizer it updates a
  // part of the weights, and multiplies all of them.
  Range Held(const StateTensor& tensor) const;
  Range Needed(const StateTensor& tensor) const;

  // Elements [first, first + to.size() / element_bytes) of the whole tensor, as stored. Where ranks hold parts, every
  // rank calls it with the same arguments, and each gets them all. (All hold what is not in parts.)
  void Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;
  // The same, of those that this rank needs, written into the slab.
  void Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);

  Communicator& communicator() const { return communicator_; }
  // Whether ranks hold parts, so that Read is for all of them at once.
  bool in_parts() const { return in_parts_; }

 private:
  void ReadHeld(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;
  void ReadCodes(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;

  Executor& executor_;
  Communicator& communicator_;
  bool in_parts_;
  std::vector<StateTensor> tensors_;
};

}  // namespace ridgeline
