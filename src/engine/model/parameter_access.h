// How a step program reaches parameters, whether one rank holds them whole or many ranks share them.
#pragma once

#include "engine/precision/quantizer.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;

  // Returns the whole weight, (rows, cols) in the compute dtype. Valid until EndUse. REQUIRES: it is not kept as codes.
  virtual Tensor Weight(int parameter) = 0;

  // Returns a weight that is kept as codes, (rows, cols) as stored, or transposed. Has no codes if the weight is not
  // kept so. Valid until EndUse.
  virtual QuantizedTensor Codes(int parameter, bool as_it_lies) = 0;

  // Where the next contribution to a parameter's gradient goes, (rows, cols). With `accumulate`, it must be added to
  // the contents.
  struct Gradient {
    Tensor tensor;
    bool accumulate = false;
  };
  virtual Gradient NextGradient(int parameter) = 0;

  // Says that all contributions of this micro-step are recorded and the step no longer uses the weight: it may be
  // updated.
  virtual void GradientDone(int parameter) = 0;

  // Says that weights handed out so far may be dropped. The step asks for them again when it needs them.
  virtual void EndUse() = 0;
};

}  // namespace ridgeline::engine
