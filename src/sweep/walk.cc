#include "sweep/walk.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/families.h"
#include "run/job.h"
#include "run/model.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/presets.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/values.h"

namespace ridgeline::sweep {
namespace {

constexpr int64_t kMaxComparisons = 2'000'000'000;
constexpr size_t kImpossibleKept = 1000;  // people fix only a few at a time

using Assignments = std::vector<const Assignment*>;  // each field at most once

void Apply(const Assignment& assignment, RunSpec& spec) {
  if (!assignment.formula) SetValue(spec, *assignment.field, assignment.value);
}

const Assignment* Find(const Assignments& assignments, const Field* field) {
  const auto it =
      std::find_if(assignments.begin(), assignments.end(), [&](const Assignment* s) { return s->field == field; });
  return it == assignments.end() ? nullptr : *it;
}

void Set(const Assignment& assignment, Assignments& assignments) {
  for (const Assignment*& s : assignments) {
    if (s->field == assignment.field) {
      s = &assignment;
      return;
    }
  }
  assignments.push_back(&assignment);
}

// Throws Fault if the condition is a formula without a value on the point.
bool HoldsOn(const Condition& condition, const PointValues& values) {
  try {
    return condition.Holds(values);
  } catch (const Error& e) {
    const std::string formula = condition.formula ? condition.formula->words() + ": " : "";
    throw yaml::Fault{condition.place, formula + e.message()};
  }
}

// Limits the work of a walk, because a few letters in a sweep can ask for a lot.
class Budget {
 public:
  // Each is called before the work is done, and throws Fault if it is too much. This one counts the combinations of the
  // axes' values, or 1 without axes.
  void Combine(const std::vector<const Axis*>& axes, const yaml::Place& place) {
    int64_t product = 1;
    for (const Axis* axis : axes) {
      const int64_t count = std::ssize(*axis);
      if (product > (kMaxCombinations - combinations_) / count) {
        throw yaml::Fault{place,
                          fmt::format("with this entry the sweep has more than {} combinations", kMaxCombinations)};
      }
      product *= count;
    }
    combinations_ += product;
  }
  void Compare(int64_t values, const yaml::Place& place) {
    comparisons_ += values;
    if (comparisons_ <= kMaxComparisons) return;
    throw yaml::Fault{
        place, fmt::format("with this, to hold conditions against all combinations takes more than {} comparisons: "
                           "say it in fewer entries or values",
                           kMaxComparisons)};
  }

 private:
  int64_t combinations_ = 0;
  int64_t comparisons_ = 0;
};

// The conditions of an exclude or include entry. Those on axes are evaluated in advance for each position in a group.
class Match {
 public:
  Match(const std::vector<Condition>& conditions, const std::vector<AxisGroup>& groups, Budget& budget)
      : holds_(groups.size()) {
    for (const Condition& condition : conditions) {
      if (AddToAxis(condition, groups, budget)) continue;
      others_.push_back(&condition);
      comparisons_ += std::ssize(condition.values);
    }
  }

  // The most comparisons for one combination.
  int64_t comparisons() const { return comparisons_; }

  bool OnAxes(const std::vector<size_t>& position) const {
    for (size_t g = 0; g < holds_.size(); ++g) {
      if (!holds_[g].empty() && !holds_[g][position[g]]) return false;
    }
    return true;
  }

  bool OnOthers(const PointValues& values) const {
    return std::ranges::all_of(others_, [&](const Condition* condition) { return HoldsOn(*condition, values); });
  }

  bool only_axes() const { return others_.empty(); }

 private:
  bool AddToAxis(const Condition& condition, const std::vector<AxisGroup>& groups, Budget& budget) {
    if (condition.than != nullptr || condition.formula) return false;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Axis& axis : groups[g]) {
        if (axis.front().field != condition.field) continue;
        if (std::ranges::any_of(axis, [](const Assignment& value) { return value.formula != nullptr; })) return false;
        budget.Compare(std::ssize(axis) * std::ssize(condition.values), condition.place);
        if (holds_[g].empty()) holds_[g].assign(axis.size(), true);
        for (size_t i = 0; i < axis.size(); ++i) holds_[g][i] = holds_[g][i] && condition.Holds(axis[i].value);
        return true;
      }
    }
    return false;
  }

  std::vector<std::vector<bool>> holds_;  // [group][position]; empty: no condition on this group
  std::vector<const Condition*> others_;
  int64_t comparisons_ = 1;
};

// Advances to the next position, like an odometer, the last wheel fastest. Returns false after the last position.
template <typename SizeOf>
bool Advance(std::vector<size_t>& position, SizeOf size_of) {
  for (size_t wheel = position.size(); wheel > 0; --wheel) {
    if (++position[wheel - 1] < size_of(wheel - 1)) return true;
    position[wheel - 1] = 0;
  }
  return false;
}

class Walker {
 public:
  Walker(const Sweep& sweep, const VisitSpec& visit) : sweep_(sweep), visit_(visit) {
    const int64_t grid = GridSize();
    const auto add = [&](const auto& entry, std::vector<Match>& to) {
      budget_.Compare(grid * to.emplace_back(entry.conditions, sweep.groups, budget_).comparisons(), entry.place);
    };
    for (const Exclude& exclude : sweep.exclude) add(exclude, excludes_);
    for (const Include& include : sweep.include) add(include, includes_);
    const auto count = [&](const std::vector<Condition>& conditions) {
      for (const Condition& condition : conditions) {
        budget_.Compare(grid * std::ssize(condition.values), condition.place);
      }
    };
    for (const LaunchRule& rule : sweep.rules) count(rule.when);
    count(sweep.selected);
    ForEachAssignment(sweep, [&](const Assignment& value) { has_formulas_ = has_formulas_ || value.formula; });
    if (HasGrid()) CountCombinations();
    walked_.exclude_hits.assign(sweep.exclude.size(), 0);
    walked_.rule_hits.assign(sweep.rules.size(), 0);
    include_hits_.assign(sweep.include.size(), 0);
  }

  Walked Go() {
    if (HasGrid()) WalkGrid();
    for (size_t i = 0; i < sweep_.include.size(); ++i) {
      if (include_hits_[i] == 0) AddPoints(sweep_.include[i]);
    }
    return std::move(walked_);
  }

 private:
  // Without axes there is no grid for `include` to add to, so its entries are the points.
  bool HasGrid() const { return !sweep_.groups.empty() || sweep_.include.empty(); }

  int64_t GridSize() const {
    int64_t size = 1;
    for (const AxisGroup& group : sweep_.groups) {
      const auto count = static_cast<int64_t>(group.front().size());
      if (size > kMaxCombinations / count) {
        throw yaml::Fault{group.front().front().place,
                          fmt::format("with this axis the grid has more than {} combinations", kMaxCombinations)};
      }
      size *= count;
    }
    return size;
  }

  // Counts before making any combination: those of the grid, excluded or not, with the repetitions by `include`.
  void CountCombinations() {
    const auto multiplies = [](const Include& include) {
      return std::any_of(include.additions.begin(), include.additions.end(),
                         [](const Axis& axis) { return axis.size() > 1; });
    };
    if (std::none_of(sweep_.include.begin(), sweep_.include.end(), multiplies)) return;
    std::vector<size_t> position(sweep_.groups.size(), 0);
    do {
      const yaml::Place place = TakeAdditions(position, nullptr);
      budget_.Combine(additions_, place);
    } while (Advance(position, [&](size_t group) { return sweep_.groups[group].front().size(); }));
  }

  // Collects what `include` adds to the combination in additions_. Returns the place of the last entry that adds to it.
  // `built`: the combination, which spec_ has if any entry compares its values; without it, takes every entry that may
  // apply.
  yaml::Place TakeAdditions(const std::vector<size_t>& position, const Assignments* built) {
    additions_.clear();
    yaml::Place place;
    for (size_t i = 0; i < includes_.size(); ++i) {
      if (!includes_[i].OnAxes(position)) continue;
      if (built != nullptr) {
        if (!includes_[i].only_axes() && !includes_[i].OnOthers(ValuesOf(*built))) continue;
        ++include_hits_[i];
      }
      for (const Axis& axis : sweep_.include[i].additions) additions_.push_back(&axis);
      place = sweep_.include[i].place;
    }
    return place;
  }

  void WalkGrid() {
    const auto& groups = sweep_.groups;
    std::vector<size_t> position(groups.size(), 0);
    Assignments assignments;
    do {
      assignments.clear();
      for (size_t g = 0; g < groups.size(); ++g) {
        for (const Axis& axis : groups[g]) assignments.push_back(&axis[position[g]]);
      }
      Combination(position, assignments);
    } while (Advance(position, [&](size_t group) { return groups[group].front().size(); }));
  }

  void Combination(const std::vector<size_t>& position, const Assignments& assignments) {
    bool excluded = false;
    bool built = false;
    for (size_t i = 0; i < excludes_.size(); ++i) {
      if (!excludes_[i].OnAxes(position)) continue;
      if (!excludes_[i].only_axes()) {
        if (!built) Build(assignments);
        built = true;
        if (!excludes_[i].OnOthers(ValuesOf(assignments))) continue;
      }
      ++walked_.exclude_hits[i];
      excluded = true;
    }
    if (excluded) {
      ++walked_.excluded;
      return;
    }
    const bool asks_values = std::ranges::any_of(includes_, [](const Match& match) { return !match.only_axes(); });
    if (asks_values && !built) {
      Build(assignments);
      built = true;
    }
    TakeAdditions(position, &assignments);
    if (additions_.empty()) {
      if (!built) Build(assignments);
      Emit(assignments);
    } else {
      EmitWithAdditions(assignments);
    }
  }

  // Runs once for each combination of the values in additions_. A later addition replaces an earlier one.
  void EmitWithAdditions(const Assignments& assignments) {
    std::vector<size_t> position(additions_.size(), 0);
    do {
      Assignments variant = assignments;
      for (size_t i = 0; i < position.size(); ++i) Set((*additions_[i])[position[i]], variant);
      Build(variant);
      Emit(variant);
    } while (Advance(position, [&](size_t axis) { return additions_[axis]->size(); }));
  }

  // Handles an include entry that applied to no combination.
  void AddPoints(const Include& include) {
    std::vector<Assignment> own;
    for (const Condition& condition : include.conditions) {
      if (condition.op != Condition::Op::kOneOf) {
        walked_.impossible.push_back(
            {{condition.place,
              fmt::format("no combination has such a {}, and a comparison adds no point", condition.field->name)}});
        return;
      }
      own.push_back(AssignmentOf(*condition.field, condition.values.front(), condition.place));
    }
    Assignments assignments;
    for (const Assignment& assignment : own) assignments.push_back(&assignment);
    additions_.clear();
    for (const Axis& axis : include.additions) additions_.push_back(&axis);
    budget_.Combine(additions_, include.place);
    EmitWithAdditions(assignments);
  }

  // Builds spec_ from the family's defaults, the model's shape, the sweep's defaults and `assignments`, and makes it
  // canonical. The order is that of BuildSpec.
  void Build(const Assignments& assignments) {
    const Assignment* family = Effective(assignments, kFamily);
    const Assignment* model = Effective(assignments, kModel);
    if (base_.family_from != family || base_.model_from != model || !base_.ready) {
      base_ = {true, family, model, {}};
      const Preset* preset = model != nullptr ? FindPreset(std::get<std::string>(model->value)) : nullptr;
      base_.spec = FamilyDefaults(preset != nullptr   ? preset->family
                                  : model != nullptr  ? ModelFamily::kOther
                                  : family != nullptr ? *ValueNamed<ModelFamily>(std::get<std::string>(family->value))
                                                      : RunSpec().family);
      if (preset != nullptr) {
        ApplyPreset(*preset, base_.spec);
      } else if (model != nullptr) {
        base_.spec.model = std::get<std::string>(model->value);
      }
      for (const Assignment& assignment : sweep_.defaults) {
        if (assignment.field != kFamily && assignment.field != kModel) Apply(assignment, base_.spec);
      }
    }
    spec_ = base_.spec;
    for (const Assignment* assignment : assignments) {
      if (assignment->field != kFamily && assignment->field != kModel) Apply(*assignment, spec_);
    }
    if (has_formulas_) Compute(assignments);
    MakeCanonical(spec_);
  }

  void MakeCanonical(RunSpec& spec) const {
    Canonicalize(spec);
    sweep_.trainers.Canonicalize(spec);
  }

  // Sets the fields of spec_ that have formulas, each after those that its formula goes by. Those without a value go
  // to uncomputed_.
  void Compute(const Assignments& assignments) {
    uncomputed_.clear();
    std::vector<const Assignment*> left;
    for (const Assignment* assignment : assignments) {
      if (assignment->formula) left.push_back(assignment);
    }
    for (const Assignment& assignment : sweep_.defaults) {
      if (assignment.formula && Find(assignments, assignment.field) == nullptr) left.push_back(&assignment);
    }
    while (!left.empty()) {
      const auto next = std::ranges::find_if(left, [&](const Assignment* one) {
        return std::ranges::none_of(left, [&](const Assignment* other) { return one->formula->GoesBy(*other->field); });
      });
      if (next == left.end()) {
        for (const Assignment* one : left) uncomputed_.push_back({one, "its formula depends on its own value"});
        return;
      }
      ComputeOne(**next);
      left.erase(next);
    }
  }

  void ComputeOne(const Assignment& assignment) {
    RunSpec known = spec_;
    MakeCanonical(known);
    PointValues values = sweep_.trainers.ValuesOf(known);
    values.of_field = KnownAlone(std::move(values.of_field));
    try {
      const int64_t number = assignment.formula->Number(values);
      const auto problems = SetField(spec_, *assignment.field, Json(number));
      if (!problems.empty()) uncomputed_.push_back({&assignment, problems.front().message});
    } catch (const Error& e) {
      uncomputed_.push_back({&assignment, assignment.is_global_batch ? NoMultiple(values) : e.message()});
    }
  }

  // The same values, but none for fields in uncomputed_.
  decltype(PointValues::of_field) KnownAlone(decltype(PointValues::of_field) values) const {
    if (uncomputed_.empty()) return values;
    return [this, values = std::move(values)](const Field& field) -> std::optional<FieldValue> {
      const auto is = [&](const Uncomputed& each) { return each.assignment->field == &field; };
      if (&field == &GlobalBatch() || std::ranges::any_of(uncomputed_, is)) return std::nullopt;
      return values(field);
    };
  }

  static std::string NoMultiple(const PointValues& values) {
    const auto batch = values.of_field(*FindField("batch_size"));
    if (!batch) return "batch_size has no value";
    return fmt::format("it is not a multiple of batch_size {} x {} data-parallel ranks", ValueText(*batch),
                       values.data_parallel());
  }

  const Assignment* Effective(const Assignments& assignments, const Field* field) const {
    if (const Assignment* assignment = Find(assignments, field)) return assignment;
    const auto it = std::find_if(sweep_.defaults.begin(), sweep_.defaults.end(),
                                 [&](const Assignment& given) { return given.field == field; });
    return it == sweep_.defaults.end() ? nullptr : &*it;
  }

  void Emit(const Assignments& assignments) {
    if (!HoldAll(sweep_.selected, assignments)) {
      ++walked_.excluded;
      return;
    }
    ++walked_.selected;
    if (!uncomputed_.empty()) return EmitUncomputed(assignments);
    std::vector<Problem> problems = CheckSpec(spec_);
    if (problems.empty()) problems = sweep_.trainers.WhyRefused(spec_);
    if (problems.empty() && is_ours_ && spec_.trainer == kOurTrainer) {
      RunSpec spec = spec_;
      const Assignment* batch = Effective(assignments, kBatchSize);  // `max` has no value yet
      if (batch != nullptr && batch->largest) spec.batch_size = LeastForTokens(spec, &RunSpec::batch_size);
      problems = BeyondTheEngine(spec);
    }
    if (base_.family_from != nullptr && std::get<std::string>(base_.family_from->value) != NameOf(spec_.family)) {
      problems.push_back(
          OtherFamily(ValueText(base_.family_from->value), ValueText(base_.model_from->value), spec_.family));
    }
    if (problems.empty()) {
      Visit(assignments);
      return;
    }
    ++walked_.impossible_points;
    if (walked_.impossible.size() >= kImpossibleKept) return;
    for (const Problem& problem : problems) {
      const auto [place, attributed] = PlaceOf(problem, assignments);
      if (!seen_.emplace(place.line, place.column, problem.message).second) continue;
      walked_.impossible.push_back({{place, problem.message + PointText(assignments)}, attributed});
    }
  }

  void EmitUncomputed(const Assignments& assignments) {
    ++walked_.impossible_points;
    for (const auto& [assignment, why] : uncomputed_) {
      if (walked_.impossible.size() >= kImpossibleKept) return;
      const yaml::Place& place = assignment->place;
      const std::string message = fmt::format("{}: {}", assignment->Text(), why);
      if (seen_.emplace(place.line, place.column, message).second) {
        walked_.impossible.push_back({{place, message + PointText(assignments)}});
      }
    }
  }

  // Visits the current point, or for `batch_size: max` the points that replace it.
  void Visit(const Assignments& assignments) {
    const std::vector<size_t> rules = RulesOf(assignments);
    const Assignment* batch = sweep_.largest == nullptr ? nullptr : Effective(assignments, kBatchSize);
    if (batch == nullptr || !batch->largest) return visit_(spec_, rules);
    for (const int64_t size : sweep_.largest->Of(sweep_, {"", spec_, rules}, batch->place)) {
      spec_.batch_size = size;
      visit_(spec_, rules);
    }
    spec_.batch_size = 1;
  }

  // Returns whether the conditions hold on the current point. As for `exclude`, the written value is compared before
  // the canonical one.
  bool HoldAll(const std::vector<Condition>& conditions, const Assignments& assignments) const {
    if (conditions.empty()) return true;
    const PointValues values = ValuesOf(assignments);
    return std::ranges::all_of(conditions, [&](const Condition& condition) { return HoldsOn(condition, values); });
  }

  // The values of the current point: the written one of a field, otherwise the canonical one.
  PointValues ValuesOf(const Assignments& assignments) const {
    PointValues values = sweep_.trainers.ValuesOf(spec_);
    values.of_field = KnownAlone([&assignments, canonical = std::move(values.of_field)](const Field& field) {
      const Assignment* assignment = Find(assignments, &field);
      return assignment != nullptr && !assignment->formula ? assignment->value : canonical(field);
    });
    return values;
  }

  // Returns the rules for the current point.
  std::vector<size_t> RulesOf(const Assignments& assignments) {
    std::vector<size_t> rules;
    for (size_t i = 0; i < sweep_.rules.size(); ++i) {
      if (!HoldAll(sweep_.rules[i].when, assignments)) continue;
      ++walked_.rule_hits[i];
      rules.push_back(i);
    }
    return rules;
  }

  // Returns what gives a field its value in the point: the written assignment, or the model that defines its shape;
  // nullptr for a default.
  const Assignment* Written(const Field* field, const Assignments& assignments) const {
    if (const Assignment* assignment = Effective(assignments, field)) return assignment;
    return field->Has(Field::kOfShape) ? base_.model_from : nullptr;
  }

  // Returns where to report a problem: at the faulty field, else at a related one. Also returns whether all of the
  // fields were written.
  std::pair<yaml::Place, bool> PlaceOf(const Problem& problem, const Assignments& assignments) const {
    std::vector<std::string_view> names = {problem.field};
    names.insert(names.end(), problem.with.begin(), problem.with.end());
    const Assignment* at = nullptr;
    bool all = true;
    for (const std::string_view name : names) {
      const Field* field = sweep_.trainers.FieldOf(name);
      const Assignment* written = Written(field, assignments);
      all = all && written != nullptr;
      // For a shape, a changed field tells more than the model does.
      if (at == nullptr || (at == base_.model_from && Effective(assignments, field) != nullptr)) at = written;
    }
    if (at == nullptr) at = base_.model_from != nullptr ? base_.model_from : base_.family_from;
    return {at != nullptr ? at->place : sweep_.defaults_place, all};
  }

  static std::string PointText(const Assignments& assignments) {
    std::vector<std::string> parts;
    for (const Assignment* assignment : assignments) parts.push_back(assignment->Text());
    return parts.empty() ? "" : " (in the point " + Join(parts, ", ") + ")";
  }

  // A field whose formula has no value on the current point.
  struct Uncomputed {
    const Assignment* assignment = nullptr;
    std::string why;
  };

  struct Base {
    bool ready = false;
    const Assignment* family_from = nullptr;
    const Assignment* model_from = nullptr;
    RunSpec spec;
  };

  const Field* const kFamily = FindField("family");
  const Field* const kModel = FindField("model");
  const Field* const kBatchSize = FindField("batch_size");
  const Sweep& sweep_;
  const bool is_ours_ = IsOurTrainer(sweep_.launch.trainer);  // whether it keeps our contract
  const VisitSpec& visit_;
  Budget budget_;
  std::vector<const Axis*> additions_;
  std::vector<Match> excludes_;
  std::vector<Match> includes_;
  std::vector<int64_t> include_hits_;
  Base base_;     // shared by points of one family and model
  RunSpec spec_;  // the current point
  bool has_formulas_ = false;
  std::vector<Uncomputed> uncomputed_;
  std::set<std::tuple<int, int, std::string>> seen_;
  Walked walked_;
};

}  // namespace

Walked Walk(const Sweep& sweep, const VisitSpec& visit) { return Walker(sweep, visit).Go(); }

}  // namespace ridgeline::sweep
