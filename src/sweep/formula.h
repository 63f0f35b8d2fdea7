// Formulas over a point's fields in a sweep: computed values, `batch_size: "{{4096 / seq_length}}"`, conditions,
// `"{{ranks % tensor_parallel != 0}}"`, and `global_batch`, which computes grad_accumulation. The grammar is that of
// trainers/expression.h, within one pair of braces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/fields.h"
#include "trainers/expression.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

class SweepTrainers;

// The values of a point, for formulas and conditions.
struct PointValues {
  // Nothing for a field whose own formula has no value on the point.
  std::function<std::optional<FieldValue>(const Field&)> of_field;
  std::function<int64_t()> data_parallel;  // ranks with batches of their own
};

// The name in formulas for the data-parallel ranks, which are no field.
inline constexpr std::string_view kDataParallelName = "data_parallel";

// Sequences of a step over all ranks: batch_size x grad_accumulation x data-parallel ranks. It is no field of a point.
// As a value it stands for the grad_accumulation that gives this many.
const Field& GlobalBatch();

class Formula {
 public:
  Formula(trainers::Expression expression, std::vector<const Field*> fields);

  // The formula without braces.
  const std::string& words() const { return expression_.words(); }
  bool is_condition() const { return expression_.is_condition(); }
  // Whether it names the field, or something that follows from it.
  bool GoesBy(const Field& field) const;

  // Each throws Error(kInvalidInput) if the formula has no value on the point. Holds is false if a field has none.
  int64_t Number(const PointValues& values) const;
  bool Holds(const PointValues& values) const;

 private:
  trainers::Lookup LookupOf(const PointValues& values) const;

  trainers::Expression expression_;
  std::vector<const Field*> fields_;  // one for each of the expression's names; nullptr for kDataParallelName
};

// Whether a value is a text in double braces.
bool IsFormula(const yaml::YamlNode& node);

// Reads such a text. Nothing, and a fault, if it is no formula, or not the kind that `is_condition` asks for.
std::shared_ptr<const Formula> ReadFormula(const yaml::YamlNode& node, bool is_condition, const SweepTrainers& trainers,
                                           std::vector<yaml::Fault>& faults);

// The formula of grad_accumulation for a number of sequences.
std::shared_ptr<const Formula> AccumulationFor(int64_t global_batch);

}  // namespace ridgeline::sweep
