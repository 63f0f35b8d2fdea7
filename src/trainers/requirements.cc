#include "trainers/requirements.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/fields.h"
#include "run/parallelism.h"

namespace ridgeline::trainers {
namespace {

// Looks up values of a point alone, wherever it runs.
Lookup PointLookup(const Invocation& invocation, const RunSpec& spec) {
  return [&](std::string_view name) -> std::optional<FieldValue> {
    if (name == "data_parallel") return DataParallelRanks(invocation, spec);
    return ValueOfField(invocation, spec, name);
  };
}

// Names the fields among `names` that a person may have set. Those by which the ranks cannot be divided come first,
// then those that differ from their defaults.
Problem ProblemOf(const std::vector<std::string>& names, const Invocation& invocation, const RunSpec& spec,
                  const RunSpec& plain, std::string message) {
  const auto rank_of = [&](const std::string& name) {
    const auto value = ValueOfField(invocation, spec, name);
    if (name == "ranks") return 2;
    if (!value || value == ValueOfField(invocation, plain, name)) return 3;
    const auto* whole = std::get_if<int64_t>(&*value);
    return whole != nullptr && *whole > 0 && spec.ranks % *whole != 0 ? 0 : 1;
  };
  std::vector<const Field*> fields;
  std::vector<std::string> sorted = names;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const std::string& a, const std::string& b) { return rank_of(a) < rank_of(b); });
  for (const std::string& name : sorted) {
    const Field* own = invocation.FindOwn(name);
    const Field* field = own != nullptr ? own : FindField(name);
    if (field != nullptr) fields.push_back(field);
  }
  if (fields.empty()) return {"trainer", std::move(message)};
  Problem problem = {std::string(fields.front()->name), std::move(message), {"trainer"}};
  for (const Field* field : std::span(fields).subspan(1)) problem.with.push_back(field->name);
  return problem;
}

// "heads is 32, tensor_parallel is 3"
std::string ValuesText(const std::vector<std::string>& names, const Lookup& lookup) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    if (const auto value = lookup(name)) {
      parts.push_back(fmt::format("{} is {}", name, ShortenToBytes(ValueText(*value), 80)));
    }
  }
  return Join(parts, ", ");
}

}  // namespace

std::optional<FieldValue> ValueOfField(const Invocation& invocation, const RunSpec& spec, std::string_view name) {
  if (const Field* own = invocation.FindOwn(name)) return ValueOf(spec, *own);
  const Field* field = FindField(name);
  return field == nullptr ? std::nullopt : std::optional(ValueOf(spec, *field));
}

bool Holds(const Expression& condition, const Invocation& invocation, const RunSpec& spec) {
  return condition.Holds(PointLookup(invocation, spec));
}

int64_t DataParallelRanks(const Invocation& invocation, const RunSpec& spec) {
  if (!invocation.data_parallel) return DataParallelRanks(spec);
  int64_t ranks = 0;
  try {
    ranks =
        invocation.data_parallel->Number([&](std::string_view name) { return ValueOfField(invocation, spec, name); });
  } catch (const Error& e) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("its number of data-parallel ranks is not whole: {}", e.message()));
  }
  if (ranks < 1 || ranks > spec.ranks) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("it has {} data-parallel ranks by its definition, and a point of {} ranks has 1 to {}",
                            ranks, spec.ranks, spec.ranks));
  }
  return ranks;
}

std::vector<Problem> WhyUnmet(const std::string& name, const Invocation& invocation, const RunSpec& spec,
                              const RunSpec& plain) {
  std::vector<Problem> problems;
  const Lookup lookup = PointLookup(invocation, spec);
  try {
    DataParallelRanks(invocation, spec);
  } catch (const Error& e) {
    const std::vector<std::string>& names = invocation.data_parallel->names();
    problems.push_back(ProblemOf(names, invocation, spec, plain,
                                 fmt::format("trainer {}: {} ({})", name, e.message(), ValuesText(names, lookup))));
    return problems;
  }
  for (const auto& [condition, otherwise] : invocation.require) {
    std::string why = otherwise;
    try {
      if (condition.Holds(lookup)) continue;
    } catch (const Error& e) {
      if (why.empty()) why = e.message();
    }
    std::vector<std::string> names = condition.names();
    const std::string values = ValuesText(names, lookup);
    if (invocation.data_parallel && std::erase(names, "data_parallel") > 0) {
      const std::vector<std::string>& more = invocation.data_parallel->names();
      names.insert(names.end(), more.begin(), more.end());
    }
    problems.push_back(ProblemOf(names, invocation, spec, plain,
                                 why.empty()
                                     ? fmt::format("trainer {} needs {}, and {}", name, condition.words(), values)
                                     : fmt::format("trainer {}: {} ({})", name, why, values)));
  }
  return problems;
}

}  // namespace ridgeline::trainers
