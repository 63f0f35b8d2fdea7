// How a step program reaches parameters, whoever holds them: whole on one rank, or split over many.
#pragma once

#include "engine/precision/quantizer.h"
#include "engine/tensor/tensor.h"

namespace ridgeline {

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;

  // The whole weight, (rows, cols) in the compute dtype; not of one that is kept as codes. Valid until EndUse.
  virtual Tensor Weight(int parameter) = 0;

  // A weight that is kept as codes, as it lies, (rows, cols), or turned round; without codes where it is not kept so.
  // Valid until EndUse.
  virtual QuantizedTensor Codes(int parameter, bool as_it_lies) = 0;

  // Where the next contribution to a parameter's gradient goes, (rows, cols); added to what is there where
  // `accumulate`.
  struct Gradient {
    Tensor tensor;
    bool accumulate = false;
  };
  virtual Gradient NextGradient(int parameter) = 0;

  // Every contribution of this micro-step was recorded, and the step uses the weight no more: it may be updated.
  virtual void GradientDone(int parameter) = 0;

  // Weights handed out so far may be dropped; they are asked for again when needed again.
  virtual void EndUse() = 0;
};

}  // namespace ridgeline
