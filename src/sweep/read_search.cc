#include "sweep/read_search.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "sweep/entries.h"
#include "yaml/common_mistakes.h"
#include "yaml/entries.h"

namespace ridgeline::sweep {
namespace {

using Objective = SweepSearch::Objective;

constexpr std::array<std::pair<std::string_view, Objective>, 3> kObjectives = {
    {{"tokens_per_s", Objective::kTokensPerS}, {"cost", Objective::kCost}, {"fit", Objective::kFit}}};
constexpr int64_t kMostRuns = 500;  // for more runs, use a sweep

class SearchReader {
 public:
  SearchReader(Sweep& sweep, std::vector<yaml::Fault>& faults)
      : sweep_(sweep), faults_(faults), axes_are_sound_(faults.empty()) {}

  void Read(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"maximize", "over", "budget"};
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      return Add(node.place, yaml::NotAMapping("search is a mapping of maximize, over and budget", node));
    }
    search_.place = node.place;
    for (const Field* field : VaryingFields(sweep_)) axes_.emplace_back(field->name);
    bool has_objective = false;
    bool has_budget = false;
    bool has_axes = false;
    for (const auto& [key, value] : yaml::Entries(node, "key of search", kKnown, faults_)) {
      if (key == "maximize") {
        has_objective = true;
        ReadObjective(*value);
      } else if (key == "over") {
        has_axes = true;
        ReadAxes(*value);
      } else {
        has_budget = true;
        ReadWhole(*value, "budget", 1, kMostRuns, search_.budget, faults_);
      }
    }
    if (!has_objective) Add(node.place, "search needs maximize: tokens_per_s, cost or fit");
    if (!has_budget) Add(node.place, "search needs a budget: the most runs, such as budget: 12");
    if (!has_axes) search_.over = VaryingFields(sweep_);
    if (axes_are_sound_ && axes_.empty()) {
      Add(node.place, "there is nothing to search: the sweep has no axis (matrix, zip)");
    }
    sweep_.search = std::move(search_);
  }

 private:
  void Add(const yaml::Place& place, std::string message) { faults_.push_back({place, std::move(message)}); }

  void ReadObjective(const yaml::YamlNode& node) {
    const std::string name = node.scalar.is_string() ? node.scalar.get<std::string>() : "";
    const auto* known = std::ranges::find(kObjectives, name, &std::pair<std::string_view, Objective>::first);
    if (known != kObjectives.end()) {
      search_.maximize = known->second;
    } else {
      static const yaml::Names kNames = {"tokens_per_s", "cost", "fit"};
      Add(node.place, fmt::format("search maximizes tokens_per_s, cost or fit, not {}{}", yaml::Describe(node),
                                  DidYouMean(name, kNames)));
    }
  }

  void ReadAxes(const yaml::YamlNode& node) {
    std::vector<yaml::YamlNode> alone;
    if (node.kind == yaml::YamlNode::Kind::kScalar) alone.push_back(node);
    const std::vector<yaml::YamlNode>& items = node.kind == yaml::YamlNode::Kind::kList ? node.items : alone;
    if (items.empty()) Add(node.place, "over is a list of axes, such as [batch_size, checkpointing]");
    for (const yaml::YamlNode& item : items) ReadAxis(item);
  }

  void ReadAxis(const yaml::YamlNode& item) {
    const std::string name = item.scalar.is_string() ? item.scalar.get<std::string>() : "";
    const Field* field = sweep_.trainers.FieldOf(name);
    if (name.empty() || field == nullptr) {
      return Add(item.place, fmt::format("over names axes of the sweep, but {} is not a field{}", yaml::Describe(item),
                                         DidYouMean(name, sweep_.trainers.field_names())));
    }
    if (std::find(axes_.begin(), axes_.end(), name) == axes_.end()) {
      if (!axes_are_sound_ || axes_.empty()) return;  // reported already
      return Add(item.place,
                 fmt::format("{} is not an axis of this sweep, whose axes are {}: give it values in matrix or zip",
                             name, Join(axes_, ", ")));
    }
    if (Contains(field)) return Add(item.place, fmt::format("over has {} twice, or a field that moves with it", name));
    search_.over.push_back(field);
    // Axes that move with it are searched, too.
    for (const AxisGroup& group : sweep_.groups) {
      const auto has = [&](const Axis& axis) { return axis.front().field == field; };
      if (std::none_of(group.begin(), group.end(), has)) continue;
      for (const Axis& axis : group) {
        if (!Contains(axis.front().field)) search_.over.push_back(axis.front().field);
      }
    }
  }

  bool Contains(const Field* field) const {
    return std::find(search_.over.begin(), search_.over.end(), field) != search_.over.end();
  }

  Sweep& sweep_;
  std::vector<yaml::Fault>& faults_;
  const bool axes_are_sound_;
  yaml::Names axes_;
  SweepSearch search_;
};

}  // namespace

void ReadSearch(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults) {
  SearchReader(sweep, faults).Read(node);
}

}  // namespace ridgeline::sweep
