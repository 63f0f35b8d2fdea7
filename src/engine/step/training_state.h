// The state of a run that is needed to continue it to the bit, as named whole tensors, whichever part of them a rank
// holds. (Data, dropout and the learning rate follow from the step's number.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/device/executor.h"
#include "engine/step/program.h"

namespace ridgeline::engine {

// One tensor of the state, as it is stored.
struct StateTensor {
  std::string name;            // a weight's from Hugging Face; NAME.exp_avg and NAME.exp_avg_sq for its moments
  std::string dtype;           // safetensors': "F32", "BF16"; a weight with a remainder is its exact fp32 master
  std::vector<int64_t> shape;  // the whole tensor's
  bool is_weight = false;      // else the optimizer's, or other state

  int64_t elements() const;
  int64_t element_bytes() const { return dtype == "F32" || dtype == "I32" ? 4 : dtype == "U8" ? 1 : 2; }
  int64_t bytes() const { return elements() * element_bytes(); }

  // Its place in the slab. It belongs to a larger tensor, and begins at element `offset` of that. The rank has `share`
  // of the larger tensor, in which `high` (and `master`, which keeps the master weight besides it) hold the elements
  // from `first` on. `whole`, if defined, has all of the share's weights as they are multiplied. If only `codes`, which
  // are state of their own, hold a weight, it has their values, which are read and never written.
  Tensor high;
  Tensor master;
  Tensor whole;
  QuantizedTensor codes;
  MeshAxes in_parts = {};  // ranks along these axes hold some of it each; all others hold the same
  Share share;
  int64_t first = 0;
  int64_t offset = 0;
};

class TrainingState {
 public:
  // All arguments must outlive it.
  TrainingState(const StepProgram& program, Executor& executor, Communicator& communicator);

  const std::vector<StateTensor>& tensors() const { return tensors_; }

  struct Range {
    int64_t first = 0;
    int64_t count = 0;
  };
  // The smallest ranges with all elements that this rank keeps up to date, and with those that it needs. (With shard:
  // optimizer, it updates a part of the weights, and multiplies all of them.)
  Range Held(const StateTensor& tensor) const;
  Range Needed(const StateTensor& tensor) const;

  // Reads elements [first, first + to.size() / element_bytes) of the whole tensor, as stored. If ranks hold parts,
  // every rank must call it with the same arguments, and each gets all elements. (Tensors not in parts are whole on
  // every rank.)
  void Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;
  // Writes these elements into the slab, as far as this rank needs them.
  void Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);

  Communicator& communicator() const { return communicator_; }
  // Whether ranks hold parts, so that all of them must call Read together.
  bool in_parts() const { return in_parts_; }

 private:
  // Elements of the rank's share of the larger tensor, from `first` on.
  void ReadShare(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;
  void WriteShare(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);
  void ReadCodes(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const;

  Executor& executor_;
  Communicator& communicator_;
  bool in_parts_;
  int64_t tensor_place_;  // among the ranks along the tensor axis
  std::vector<StateTensor> tensors_;
};

}  // namespace ridgeline::engine
