// The model's numbers between steps, by name, as floats: written before the first step, read afterwards.
#pragma once

#include <span>
#include <vector>

#include "engine/device/cpu/executor.h"
#include "engine/step/program.h"

namespace ridgeline {

class ModelState {
 public:
  // Both must outlive it.
  ModelState(const StepProgram& program, CpuExecutor& executor) : program_(program), executor_(executor) {}

  // Weights from the seed (normal with the family's deviation; norms 1, biases 0), moments 0, the rotary table. A
  // sharded rank writes its own part of what the unsharded model would hold.
  void Initialize();

  // A parameter's master weights, or a part's rows of them; unsharded programs only. Codes stay.
  void SetWeight(size_t parameter, const ParameterPart& part, std::span<const float> values);
  std::vector<float> Weight(size_t parameter, const ParameterPart& part) const;
  // Needs a program built with keep_gradients. Without the factor of loss scaling, where that did not just change.
  std::vector<float> Gradient(size_t parameter, const ParameterPart& part) const;

  double Loss() const;
  int64_t SkippedSteps() const;  // so far, by loss scaling
  double GradNorm() const;       // NaN where the program does not compute it

 private:
  float Element(const Tensor& t, int64_t index) const;
  // Element `index` of the whole parameter, where this rank keeps it.
  void SetElement(const ParameterState& state, int64_t index, float value);
  void SetCompute(const Tensor& tensor, int64_t index, float value);
  // What the optimizer would have made of it.
  uint16_t RoundedToBf16(float value) const;

  const StepProgram& program_;
  CpuExecutor& executor_;
};

}  // namespace ridgeline
