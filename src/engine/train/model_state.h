// The model's numbers between steps, by name, as floats: written before the first step, read afterwards.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/device/executor.h"
#include "engine/step/program.h"

namespace ridgeline::engine {

class ModelState {
 public:
  // Both must outlive it.
  ModelState(const StepProgram& program, Executor& executor) : program_(program), executor_(executor) {}

  // Fills a whole parameter's initial elements from `first` on.
  using FirstValues = std::function<void(size_t parameter, int64_t first, std::span<float> to)>;
  // Sets weights from `values`, or without them from the seed (normal with the family's deviation; norms 1, biases 0),
  // the moments to 0, and the rotary table. A sharded rank asks for and writes its own part of what the unsharded model
  // would hold.
  void Initialize(const FirstValues& values = {});

  // A parameter's master weights, or a part's rows of them; for programs of one rank only. Codes do not change.
  void SetWeight(size_t parameter, const ParameterPart& part, std::span<const float> values);
  std::vector<float> Weight(size_t parameter, const ParameterPart& part) const;
  // Needs a program built with keep_gradients. Without the factor of loss scaling, unless that has just changed.
  std::vector<float> Gradient(size_t parameter, const ParameterPart& part) const;

  // Returns (tokens of a step, vocab). Needs such a program, for a model with a head.
  std::vector<float> Logits() const;

  double Loss() const;
  int64_t SkippedSteps() const;  // so far, by loss scaling

 private:
  std::vector<float> Elements(const Tensor& t, int64_t first, int64_t count) const;
  // Sets elements of the rank's share of the parameter from `first` on, as far as this rank keeps them.
  void SetElements(const ParameterState& state, int64_t first, std::span<const float> values);
  void SetCompute(const Tensor& tensor, int64_t first, std::span<const float> values);
  // `on_all_cores`: several threads may ask `values` at once.
  void InitializeWeight(size_t parameter, const FirstValues& values, bool on_all_cores);
  NormalNumbers NumbersOf(size_t parameter) const;
  void FromSeed(size_t parameter, int64_t first, std::span<float> to) const;
  bool MadeOnDevice(size_t parameter);
  // Rounds as the optimizer would have.
  uint16_t RoundedToBf16(float value) const;

  const StepProgram& program_;
  Executor& executor_;
};

}  // namespace ridgeline::engine
