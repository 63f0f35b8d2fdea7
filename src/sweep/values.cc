#include "sweep/values.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "run/names.h"
#include "run/presets.h"
#include "run/spec.h"
#include "yaml/units.h"

namespace ridgeline::sweep {
namespace {

bool IsNumeric(const Field& field) { return field.type() == "integer" || field.type() == "number"; }

// Keeps integers as integers, so that messages show the difference.
Json NumberJson(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return Json(static_cast<int64_t>(value));
  return Json(value);
}

std::optional<int64_t> ParseWhole(std::string_view text) {
  text = Trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsRange(const Field& field, const yaml::YamlNode& node) {
  return IsNumeric(field) && node.scalar.is_string() && node.scalar.get<std::string>().find("..") != std::string::npos;
}

// Expands "1..64*2", "512..2048+512", "1..8" (in steps of 1). Throws Fault.
std::vector<Json> UnfoldRange(const Field& field, const yaml::YamlNode& node) {
  const auto text = node.scalar.get<std::string>();
  const auto wrong = [&](const std::string& why) {
    return yaml::Fault{node.place, fmt::format("{}: the range '{}' {}", field.name, text, why)};
  };
  const size_t dots = text.find("..");
  const std::string_view rest = std::string_view(text).substr(dots + 2);
  size_t sign = rest.find('*');
  if (sign == std::string_view::npos) {
    sign = rest.find('+');
    // Not the plus sign of an exponent.
    if (sign != std::string_view::npos && sign > 0 && (rest[sign - 1] == 'e' || rest[sign - 1] == 'E')) {
      sign = rest.find('+', sign + 1);
    }
  }
  const bool geometric = sign != std::string_view::npos && rest[sign] == '*';
  const std::string_view first_text = std::string_view(text).substr(0, dots);
  const std::string_view last_text = rest.substr(0, sign);
  const std::string_view by_text = sign == std::string_view::npos ? "1" : rest.substr(sign + 1);
  const auto require_an_end = [&](auto first, auto last, auto by) {
    if (first > last) throw wrong("runs backwards; write the smaller end first");
    if (geometric && (by <= 1 || first <= 0))
      throw wrong("never ends; its factor must be above 1 and its start above 0");
    if (!geometric && by <= 0) throw wrong("never ends; its step must be above 0");
  };
  std::vector<Json> values;
  const auto add = [&](const Json& value) {
    if (std::ssize(values) == kMaxAxisValues) throw wrong(fmt::format("has more than {} values", kMaxAxisValues));
    values.push_back(value);
  };

  const auto whole_first = ParseWhole(first_text);
  const auto whole_last = ParseWhole(last_text);
  const auto whole_by = ParseWhole(by_text);
  if (whole_first && whole_last && whole_by) {
    require_an_end(*whole_first, *whole_last, *whole_by);
    bool overflows = false;  // a value that overflows is beyond LAST
    for (int64_t value = *whole_first; !overflows && value <= *whole_last;) {
      add(value);
      overflows = geometric ? __builtin_mul_overflow(value, *whole_by, &value)
                            : __builtin_add_overflow(value, *whole_by, &value);
    }
    return values;
  }

  const auto first = yaml::ParseNumber(first_text);
  const auto last = yaml::ParseNumber(last_text);
  const auto by = yaml::ParseNumber(by_text);
  if (!first || !last || !by) throw wrong("is not of the form FIRST..LAST*FACTOR or FIRST..LAST+STEP");
  require_an_end(*first, *last, *by);
  // Rounding must neither lose the last value nor show in the others.
  const double end = *last + std::abs(*last) * 1e-9;
  double exact = *first;
  while (exact <= end && std::isfinite(exact)) {
    add(NumberJson(*yaml::ParseNumber(fmt::format("{:.12g}", exact))));
    exact = geometric ? exact * *by : *first + static_cast<double>(values.size()) * *by;
  }
  return values;
}

// Converts one value to a FieldValue. Returns what is wrong, or nothing. `scratch` is reused for many values, because
// making it takes longer than all else.
std::string Convert(const Field& field, const Json& value, RunSpec& scratch, FieldValue& to) {
  if (field.name == "checkpointing" && value.is_string() && !ParseCheckpointing(value.get_ref<const std::string&>())) {
    static const std::vector<std::string> kPolicies = {"none", "selective", "full"};
    const std::string text = value;
    return fmt::format("checkpointing '{}' is not one of none, selective, full, full/K{}", text,
                       DidYouMean(text, kPolicies));
  }
  const auto problems = SetField(scratch, field, value);
  if (!problems.empty()) return problems.front().message;
  if (field.name == "model") {
    to = std::string(MeantModel(value.get<std::string>()));
    return {};
  }
  to = ValueOf(scratch, field);
  return {};
}

// The spec in which values are converted. If the sweep has a trainer other than ours, the spec allows any model, which
// may be that trainer's.
RunSpec ScratchFor(const SweepTrainers& trainers) {
  RunSpec scratch;
  if (trainers.names_others()) scratch.trainer.clear();
  return scratch;
}

std::optional<Condition::Op> TakeComparison(std::string_view& text) {
  using Op = Condition::Op;
  static constexpr std::array<std::pair<std::string_view, Op>, 7> kOps = {{{"multiple of ", Op::kMultiple},
                                                                           {"not multiple of ", Op::kNotMultiple},
                                                                           {"<=", Op::kLessEqual},
                                                                           {">=", Op::kGreaterEqual},
                                                                           {"!=", Op::kNotEqual},
                                                                           {"<", Op::kLess},
                                                                           {">", Op::kGreater}}};
  for (const auto& [sign, op] : kOps) {
    if (text.starts_with(sign)) {
      text = Trim(text.substr(sign.size()));
      return op;
    }
  }
  return std::nullopt;
}

// Comparisons of numbers hold a double for every field.
double NumberOf(const FieldValue& value) {
  return std::holds_alternative<double>(value) ? std::get<double>(value)
                                               : static_cast<double>(std::get<int64_t>(value));
}

bool HoldsOfNumbers(Condition::Op op, double left, double right) {
  switch (op) {
    case Condition::Op::kNotEqual:
      return left != right;
    case Condition::Op::kLess:
      return left < right;
    case Condition::Op::kLessEqual:
      return left <= right;
    case Condition::Op::kGreater:
      return left > right;
    case Condition::Op::kMultiple:
      return right != 0 && std::fmod(left, right) == 0;
    case Condition::Op::kNotMultiple:
      return right == 0 || std::fmod(left, right) != 0;
    default:
      return left >= right;
  }
}

}  // namespace

void ValueCount::Add(size_t values, const yaml::Place& place) {
  count_ += static_cast<int64_t>(values);
  if (count_ <= kMaxValues) return;
  throw yaml::Fault{place,
                    fmt::format("with this the axes and conditions of the file have more than {} values", kMaxValues)};
}

std::optional<Assignment> ReadAssignment(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
                                         std::vector<yaml::Fault>& faults) {
  Assignment assignment{&field, {}, node.place};
  std::string wrong;
  if (node.kind != yaml::YamlNode::Kind::kScalar) {
    wrong = fmt::format("{} takes one value here, not {}", field.name, yaml::Describe(node));
  } else if (IsRange(field, node)) {
    wrong = fmt::format("{} takes one value here; a range belongs in matrix or zip", field.name);
  } else if (field.name == "batch_size" && !field.is_own() && node.scalar == "max") {
    assignment.value = int64_t{1};
    assignment.largest = true;
  } else if (IsNumeric(field) && IsFormula(node)) {
    if (field.type() != "integer" || &field == &GlobalBatch()) {
      wrong = fmt::format("{} takes no formula: formulas compute fields of whole numbers", field.name);
    } else {
      assignment.formula = ReadFormula(node, /*is_condition=*/false, trainers, faults);
      if (!assignment.formula) return std::nullopt;
      assignment.value = int64_t{0};
    }
  } else {
    RunSpec scratch = ScratchFor(trainers);
    wrong = Convert(field, node.scalar, scratch, assignment.value);
    if (wrong.empty()) return AssignmentOf(field, std::move(assignment.value), node.place);
  }
  if (wrong.empty()) return assignment;
  faults.push_back({node.place, wrong});
  return std::nullopt;
}

Assignment AssignmentOf(const Field& field, FieldValue value, const yaml::Place& place) {
  Assignment assignment{&field, std::move(value), place};
  if (&field == &GlobalBatch()) {
    static const Field* const kAccumulation = FindField("grad_accumulation");
    assignment.field = kAccumulation;
    assignment.formula = AccumulationFor(std::get<int64_t>(assignment.value));
    assignment.is_global_batch = true;
  }
  return assignment;
}

std::string Assignment::Text() const {
  const std::string_view name = is_global_batch ? GlobalBatch().name : field->name;
  const bool is_written = formula == nullptr || is_global_batch;
  return fmt::format("{}: {}", name, is_written ? ValueText(value) : "{{" + formula->words() + "}}");
}

Axis ReadAxis(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
              std::vector<yaml::Fault>& faults) {
  Axis axis;
  const auto read_one = [&](const yaml::YamlNode& item) {
    if (item.kind != yaml::YamlNode::Kind::kScalar || !IsRange(field, item)) {
      if (auto assignment = ReadAssignment(field, item, trainers, faults)) axis.push_back(std::move(*assignment));
      return;
    }
    try {
      RunSpec scratch = ScratchFor(trainers);
      for (const Json& value : UnfoldRange(field, item)) {
        FieldValue one;
        std::string wrong = Convert(field, value, scratch, one);
        if (!wrong.empty()) throw yaml::Fault{item.place, wrong};
        axis.push_back(AssignmentOf(field, std::move(one), item.place));
      }
    } catch (const yaml::Fault& fault) {
      faults.push_back(fault);
    }
  };
  if (node.kind != yaml::YamlNode::Kind::kList) {
    read_one(node);
    return axis;
  }
  if (node.items.empty()) faults.push_back({node.place, fmt::format("{} has no values", field.name)});
  for (const yaml::YamlNode& item : node.items) {
    read_one(item);
    if (std::ssize(axis) > kMaxAxisValues) {
      throw yaml::Fault{item.place, fmt::format("with this {} has more than {} values", field.name, kMaxAxisValues)};
    }
  }
  return axis;
}

std::optional<Condition> ReadCondition(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
                                       std::vector<yaml::Fault>& faults) {
  Condition condition{&field, Condition::Op::kOneOf, {}, nullptr, node.place};
  RunSpec scratch = ScratchFor(trainers);
  if (node.kind == yaml::YamlNode::Kind::kScalar && node.scalar.is_string()) {
    const auto text = node.scalar.get<std::string>();
    std::string_view operand = text;
    if (const auto op = TakeComparison(operand)) {
      condition.op = *op;
      const auto wrong = [&](const std::string& why) {
        faults.push_back({node.place, fmt::format("{}: the comparison '{}' {}", field.name, text, why)});
        return std::nullopt;
      };
      FieldValue value = std::string(operand);
      if (IsNumeric(field)) {
        const bool divides = *op == Condition::Op::kMultiple || *op == Condition::Op::kNotMultiple;
        condition.than = trainers.FieldOf(operand);
        const auto number = yaml::ParseNumber(operand);
        if (condition.than != nullptr ? !IsNumeric(*condition.than) : !number) {
          return wrong("needs a number, or a field of numbers" +
                       DidYouMean(std::string(operand), trainers.field_names()));
        }
        const bool is_whole = condition.than != nullptr ? condition.than->type() == "integer"
                                                        : *number == std::floor(*number) && *number > 0;
        if (divides && (field.type() != "integer" || !is_whole)) return wrong("needs integers");
        value = number.value_or(0);
      } else if (*op != Condition::Op::kNotEqual) {
        return wrong("needs a number, and this is a field of text; only != works here");
      } else if (field.type() == "true or false") {
        if (operand != "true" && operand != "false") return wrong("needs true or false");
        value = operand == "true";
      } else if (std::string why = Convert(field, Json(std::string(operand)), scratch, value); !why.empty()) {
        return wrong("is wrong: " + why);
      }
      condition.values.push_back(std::move(value));
      return condition;
    }
    if (IsNumeric(field) && text.starts_with('=')) {
      faults.push_back({node.place, fmt::format("{}: write the plain value instead of '{}'; comparisons are "
                                                "<, <=, >, >= and !=",
                                                field.name, text)});
      return std::nullopt;
    }
  }
  const size_t faults_before = faults.size();
  for (Assignment& assignment : ReadAxis(field, node, trainers, faults)) {
    if (assignment.largest) {
      faults.push_back({assignment.place, "batch_size: max stands for what fits, and nothing can be compared with it"});
    }
    if (assignment.formula && !assignment.is_global_batch) {
      faults.push_back({assignment.place, fmt::format("a condition on {} takes values and comparisons; write the "
                                                      "formula as the whole condition, such as "
                                                      "\"{{{{ranks > batch_size}}}}\"",
                                                      field.name)});
    }
    condition.values.push_back(std::move(assignment.value));
  }
  if (faults.size() != faults_before) return std::nullopt;
  return condition;
}

bool Condition::Holds(const PointValues& values) const {
  if (formula) return formula->Holds(values);
  const std::optional<FieldValue> value = values.of_field(*field);
  if (!value) return false;
  if (than == nullptr) return Holds(*value);
  const std::optional<FieldValue> other = values.of_field(*than);
  return other && HoldsOfNumbers(op, NumberOf(*value), NumberOf(*other));
}

bool Condition::Holds(const FieldValue& value) const {
  if (op == Op::kOneOf) {
    for (const FieldValue& allowed : values) {
      if (value == allowed) return true;
    }
    return false;
  }
  if (std::holds_alternative<std::string>(value) || std::holds_alternative<bool>(value)) {
    return value != values.front();
  }
  return HoldsOfNumbers(op, NumberOf(value), std::get<double>(values.front()));
}

}  // namespace ridgeline::sweep
