#include "sweep/walk.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "run/presets.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/values.h"

namespace ridgeline {
namespace {

using Settings = std::vector<const Setting*>;  // each field at most once

void Apply(const Setting& setting, RunSpec& spec) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(spec.*member)>;
        spec.*member = std::get<Value>(setting.value);
      },
      setting.field->member);
}

FieldValue ValueOf(const RunSpec& spec, const Field& field) {
  return std::visit([&](auto member) { return FieldValue(spec.*member); }, field.member);
}

const Setting* Find(const Settings& settings, const Field* field) {
  const auto it = std::find_if(settings.begin(), settings.end(), [&](const Setting* s) { return s->field == field; });
  return it == settings.end() ? nullptr : *it;
}

void Set(const Setting& setting, Settings& settings) {
  for (const Setting*& s : settings) {
    if (s->field == setting.field) {
      s = &setting;
      return;
    }
  }
  settings.push_back(&setting);
}

// The conditions of an exclude or include entry, those on axes worked out beforehand for each position in a group.
class Match {
 public:
  Match(const std::vector<Condition>& conditions, const std::vector<AxisGroup>& groups) : holds_(groups.size()) {
    for (const Condition& condition : conditions) {
      if (!AddToAxis(condition, groups)) others_.push_back(&condition);
    }
  }

  bool OnAxes(const std::vector<size_t>& position) const {
    for (size_t g = 0; g < holds_.size(); ++g) {
      if (!holds_[g].empty() && !holds_[g][position[g]]) return false;
    }
    return true;
  }

  bool OnOthers(const RunSpec& spec) const {
    return std::all_of(others_.begin(), others_.end(),
                       [&](const Condition* c) { return c->Holds(ValueOf(spec, *c->field)); });
  }

  bool only_axes() const { return others_.empty(); }

 private:
  bool AddToAxis(const Condition& condition, const std::vector<AxisGroup>& groups) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Axis& axis : groups[g]) {
        if (axis.front().field != condition.field) continue;
        if (holds_[g].empty()) holds_[g].assign(axis.size(), true);
        for (size_t i = 0; i < axis.size(); ++i) holds_[g][i] = holds_[g][i] && condition.Holds(axis[i].value);
        return true;
      }
    }
    return false;
  }

  std::vector<std::vector<bool>> holds_;  // [group][position]; empty: no condition on this group
  std::vector<const Condition*> others_;
};

class Walker {
 public:
  Walker(const Sweep& sweep, const VisitSpec& visit) : sweep_(sweep), visit_(visit) {
    for (const Exclude& exclude : sweep.exclude) excludes_.emplace_back(exclude.conditions, sweep.groups);
    for (const Include& include : sweep.include) includes_.emplace_back(include.conditions, sweep.groups);
    walked_.exclude_hits.assign(sweep.exclude.size(), 0);
    walked_.rule_hits.assign(sweep.rules.size(), 0);
    include_hits_.assign(sweep.include.size(), 0);
    CheckSize();
  }

  Walked Go() {
    // Without axes there is no grid for `include` to add to: its entries are the points.
    if (!sweep_.groups.empty() || sweep_.include.empty()) WalkGrid();
    for (size_t i = 0; i < sweep_.include.size(); ++i) {
      if (include_hits_[i] == 0) AddPoints(sweep_.include[i]);
    }
    return std::move(walked_);
  }

 private:
  void CheckSize() const {
    int64_t size = 1;
    for (const AxisGroup& group : sweep_.groups) {
      const auto count = static_cast<int64_t>(group.front().size());
      if (size > kMaxCombinations / count) {
        throw Fault{group.front().front().place,
                    fmt::format("with this axis the grid has more than {} combinations", kMaxCombinations)};
      }
      size *= count;
    }
  }

  void WalkGrid() {
    const auto& groups = sweep_.groups;
    std::vector<size_t> position(groups.size(), 0);
    Settings settings;
    bool more = true;
    while (more) {
      settings.clear();
      for (size_t g = 0; g < groups.size(); ++g) {
        for (const Axis& axis : groups[g]) settings.push_back(&axis[position[g]]);
      }
      Combination(position, settings);
      more = false;
      for (size_t g = groups.size(); g > 0 && !more; --g) {  // as an odometer, the last group fastest
        more = ++position[g - 1] < groups[g - 1].front().size();
        if (!more) position[g - 1] = 0;
      }
    }
  }

  void Combination(const std::vector<size_t>& position, const Settings& settings) {
    bool excluded = false;
    bool built = false;
    for (size_t i = 0; i < excludes_.size(); ++i) {
      if (!excludes_[i].OnAxes(position)) continue;
      if (!excludes_[i].only_axes()) {
        if (!built) Build(settings);
        built = true;
        if (!excludes_[i].OnOthers(spec_)) continue;
      }
      ++walked_.exclude_hits[i];
      excluded = true;
    }
    if (excluded) {
      ++walked_.excluded;
      return;
    }
    bool included = false;
    std::vector<Settings> variants;
    for (size_t i = 0; i < includes_.size(); ++i) {
      if (!includes_[i].OnAxes(position)) continue;
      ++include_hits_[i];
      if (!included) variants = {settings};
      included = true;
      variants = WithAdditions(variants, sweep_.include[i].additions);
    }
    if (!included) {
      if (!built) Build(settings);
      Emit(settings);
      return;
    }
    for (const Settings& variant : variants) {
      Build(variant);
      Emit(variant);
    }
  }

  static std::vector<Settings> WithAdditions(std::vector<Settings> variants, const std::vector<Axis>& additions) {
    for (const Axis& axis : additions) {
      std::vector<Settings> product;
      for (const Settings& variant : variants) {
        for (const Setting& setting : axis) {
          product.push_back(variant);
          Set(setting, product.back());
        }
      }
      variants = std::move(product);
    }
    return variants;
  }

  // An include entry that no combination took.
  void AddPoints(const Include& include) {
    std::vector<Setting> own;
    for (const Condition& condition : include.conditions) {
      if (condition.op != Condition::Op::kOneOf) {
        walked_.impossible.push_back(
            {{condition.place, fmt::format("no combination has such a {}, and a comparison makes no new point",
                                           condition.field->name)}});
        return;
      }
      own.push_back({condition.field, condition.values.front(), condition.place});
    }
    Settings settings;
    for (const Setting& setting : own) settings.push_back(&setting);
    for (const Settings& variant : WithAdditions({settings}, include.additions)) {
      Build(variant);
      Emit(variant);
    }
  }

  // spec_: the family's defaults, the model's shape, the sweep's defaults, then `settings`; canonical.
  // The same order as BuildSpec's.
  void Build(const Settings& settings) {
    const Setting* family = Effective(settings, kFamily);
    const Setting* model = Effective(settings, kModel);
    if (base_.family_from != family || base_.model_from != model || !base_.ready) {
      base_ = {true, family, model, {}};
      const Preset* preset = model != nullptr ? FindPreset(std::get<std::string>(model->value)) : nullptr;
      base_.spec = FamilyDefaults(preset != nullptr   ? preset->family
                                  : family != nullptr ? std::string_view(std::get<std::string>(family->value))
                                                      : std::string_view(RunSpec().family));
      if (preset != nullptr) ApplyPreset(*preset, base_.spec);
      for (const Setting& setting : sweep_.defaults) {
        if (setting.field != kFamily && setting.field != kModel) Apply(setting, base_.spec);
      }
    }
    spec_ = base_.spec;
    for (const Setting* setting : settings) {
      if (setting->field != kFamily && setting->field != kModel) Apply(*setting, spec_);
    }
    Canonicalize(spec_);
  }

  const Setting* Effective(const Settings& settings, const Field* field) const {
    if (const Setting* setting = Find(settings, field)) return setting;
    const auto it = std::find_if(sweep_.defaults.begin(), sweep_.defaults.end(),
                                 [&](const Setting& s) { return s.field == field; });
    return it == sweep_.defaults.end() ? nullptr : &*it;
  }

  void Emit(const Settings& settings) {
    std::vector<Problem> problems = CheckSpec(spec_);
    if (base_.family_from != nullptr && std::get<std::string>(base_.family_from->value) != spec_.family) {
      problems.push_back(
          {"family", fmt::format("family is {}, but the model {} is a {}", Text(base_.family_from->value),
                                 Text(base_.model_from->value), spec_.family)});
    }
    if (problems.empty()) {
      visit_(spec_, RulesOf(settings));
      return;
    }
    ++walked_.impossible_points;
    for (const Problem& problem : problems) {
      const auto [place, attributed] = PlaceOf(problem, settings);
      if (!seen_.emplace(place.line, place.column, problem.message).second) continue;
      walked_.impossible.push_back({{place, problem.message + PointText(settings)}, attributed});
    }
  }

  // Of the point in hand. As for `exclude`, what was written for it goes before what it became.
  std::vector<size_t> RulesOf(const Settings& settings) {
    std::vector<size_t> rules;
    const auto holds = [&](const Condition& condition) {
      const Setting* setting = Find(settings, condition.field);
      return condition.Holds(setting != nullptr ? setting->value : ValueOf(spec_, *condition.field));
    };
    for (size_t i = 0; i < sweep_.rules.size(); ++i) {
      const std::vector<Condition>& when = sweep_.rules[i].when;
      if (!std::all_of(when.begin(), when.end(), holds)) continue;
      ++walked_.rule_hits[i];
      rules.push_back(i);
    }
    return rules;
  }

  // Where to point: the field at fault; else, under a model, a setting that the message speaks of, then the model.
  std::pair<Place, bool> PlaceOf(const Problem& problem, const Settings& settings) const {
    if (const Setting* setting = Effective(settings, FindField(problem.field))) return {setting->place, true};
    if (base_.model_from != nullptr) {
      for (const Setting* setting : settings) {
        if (problem.message.find(setting->field->name) != std::string::npos) return {setting->place, true};
      }
      for (const Setting& setting : sweep_.defaults) {
        if (problem.message.find(setting.field->name) != std::string::npos) return {setting.place, true};
      }
      return {base_.model_from->place, true};
    }
    if (base_.family_from != nullptr) return {base_.family_from->place, false};
    return {sweep_.defaults_place, false};
  }

  static std::string PointText(const Settings& settings) {
    std::vector<std::string> parts;
    for (const Setting* setting : settings)
      parts.push_back(fmt::format("{}: {}", setting->field->name, Text(setting->value)));
    return parts.empty() ? "" : " (in the point " + Join(parts, ", ") + ")";
  }

  struct Base {
    bool ready = false;
    const Setting* family_from = nullptr;
    const Setting* model_from = nullptr;
    RunSpec spec;
  };

  const Field* const kFamily = FindField("family");
  const Field* const kModel = FindField("model");
  const Sweep& sweep_;
  const VisitSpec& visit_;
  std::vector<Match> excludes_;
  std::vector<Match> includes_;
  std::vector<int64_t> include_hits_;
  Base base_;     // what points of one family and model share
  RunSpec spec_;  // the point in hand
  std::set<std::tuple<int, int, std::string>> seen_;
  Walked walked_;
};

}  // namespace

Walked Walk(const Sweep& sweep, const VisitSpec& visit) { return Walker(sweep, visit).Go(); }

}  // namespace ridgeline
