#include "sweep/formula.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "sweep/sweep_trainers.h"

namespace ridgeline::sweep {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

// The fields from which the data-parallel ranks follow. A definition may count others, which are the trainer's own.
constexpr std::array<std::string_view, 5> kOfDataParallel = {"ranks", "tensor_parallel", "pipeline_parallel",
                                                             "context_parallel", "expert_parallel"};

const Field* FieldNamed(std::string_view name, const SweepTrainers& trainers) {
  return name == kDataParallelName ? nullptr : trainers.FieldOf(name);
}

trainers::Expression ExpressionOf(std::string_view text, const SweepTrainers& trainers) {
  const std::string_view inner = text.substr(kOpen.size(), text.size() - kOpen.size() - kClose.size());
  // Each name may also stand in braces of its own, as in a definition.
  const bool is_whole = inner.find(kOpen) == std::string_view::npos;
  return trainers::Expression(is_whole ? inner : text, [&](std::string_view word) {
    return word == kDataParallelName || FieldNamed(word, trainers) != nullptr;
  });
}

// The bare words of a formula that might be misspelt names.
std::string NearestNames(std::string_view text, const SweepTrainers& trainers) {
  constexpr std::string_view kWordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  for (size_t at = text.find_first_of(kWordChars); at != std::string_view::npos;
       at = text.find_first_of(kWordChars, at)) {
    const size_t end = std::min(text.find_first_not_of(kWordChars, at), text.size());
    const std::string word(text.substr(at, end - at));
    at = end;
    if (word.front() <= '9' || word == kDataParallelName || trainers.FieldOf(word) != nullptr) continue;
    if (std::string meant = DidYouMean(word, trainers.field_names()); !meant.empty()) {
      return fmt::format("; '{}' is not a field{}", word, meant);
    }
  }
  return {};
}

}  // namespace

const Field& GlobalBatch() {
  static const Field field = {.name = "global_batch",
                              .member = &RunSpec::grad_accumulation,
                              .help = "sequences of a step over all ranks; sets grad_accumulation",
                              .choices = {},
                              .min = 1,
                              .max = 1e12};
  return field;
}

Formula::Formula(trainers::Expression expression, std::vector<const Field*> fields)
    : expression_(std::move(expression)), fields_(std::move(fields)) {}

bool Formula::GoesBy(const Field& field) const {
  const auto is = [&](std::string_view name) { return field.name == name; };
  const bool of_ranks = field.is_own() || std::ranges::any_of(kOfDataParallel, is);
  const bool of_batches = of_ranks || is("batch_size") || is("grad_accumulation");
  return std::ranges::any_of(fields_, [&](const Field* named) {
    return named == &field || (named == nullptr && of_ranks) || (named == &GlobalBatch() && of_batches);
  });
}

trainers::Lookup Formula::LookupOf(const PointValues& values) const {
  return [this, &values](std::string_view name) -> std::optional<FieldValue> {
    const auto& names = expression_.names();
    const auto at = std::ranges::find(names, name);
    const Field* field = fields_.at(static_cast<size_t>(at - names.begin()));
    return field == nullptr ? values.data_parallel() : values.of_field(*field);
  };
}

int64_t Formula::Number(const PointValues& values) const { return expression_.Number(LookupOf(values)); }

bool Formula::Holds(const PointValues& values) const {
  const bool all_known = std::ranges::all_of(
      fields_, [&](const Field* field) { return field == nullptr || values.of_field(*field).has_value(); });
  return all_known && expression_.Holds(LookupOf(values));
}

bool IsFormula(const yaml::YamlNode& node) {
  if (node.kind != yaml::YamlNode::Kind::kScalar || !node.scalar.is_string()) return false;
  const std::string_view text = Trim(node.scalar.get_ref<const std::string&>());
  return text.size() >= kOpen.size() + kClose.size() && text.starts_with(kOpen) && text.ends_with(kClose);
}

std::shared_ptr<const Formula> ReadFormula(const yaml::YamlNode& node, bool is_condition, const SweepTrainers& trainers,
                                           std::vector<yaml::Fault>& faults) {
  const std::string_view text = Trim(node.scalar.get_ref<const std::string&>());
  const auto wrong = [&](std::string_view why) {
    faults.push_back({node.place, fmt::format("the formula '{}': {}{}", text, why, NearestNames(text, trainers))});
    return nullptr;
  };
  try {
    trainers::Expression expression = ExpressionOf(text, trainers);
    if (expression.is_condition() != is_condition) {
      return wrong(is_condition ? "it is a number, but a condition is a comparison, such as {{ranks > batch_size}}"
                                : "it is a comparison, but a value is a number, such as {{4096 / seq_length}}");
    }
    std::vector<const Field*> fields;
    for (const std::string& name : expression.names()) {
      fields.push_back(FieldNamed(name, trainers));
      if (fields.back() == nullptr && name != kDataParallelName) return wrong(name + " is no field");
    }
    return std::make_shared<const Formula>(std::move(expression), std::move(fields));
  } catch (const Error& e) {
    return wrong(e.message());
  }
}

std::shared_ptr<const Formula> AccumulationFor(int64_t global_batch) {
  return std::make_shared<const Formula>(
      trainers::Expression(fmt::format("{} / ({{{{batch_size}}}} * {{{{{}}}}})", global_batch, kDataParallelName)),
      std::vector<const Field*>{FindField("batch_size"), nullptr});
}

}  // namespace ridgeline::sweep
