#include "search/show.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/presets.h"

namespace ridgeline::search {
namespace {

using Objective = sweep::SweepSearch::Objective;

constexpr double kWide = 10;  // a wider interval (high / low) says nothing

std::string Named(const SearchSpace& space) {
  return space.label.empty() ? "search" : fmt::format("search of {}", space.label);
}

std::string_view ObjectiveWords(Objective objective) {
  switch (objective) {
    case Objective::kTokensPerS:
      return "the most tokens/s";
    case Objective::kCost:
      return "the cheapest tokens";
    case Objective::kFit:
      return "the largest step that fits";
  }
  return "";
}

// What a point is expected to give, with its interval if that says anything.
std::string ExpectedWords(const SearchSpace& space, const sweep::SweepSearch& search, const Expected& expected) {
  std::string value = ValueWords(space, search, expected.point, expected.value);
  if (search.maximize == Objective::kFit) return value;
  if (expected.high > kWide * expected.low) return value + " predicted, which tells points apart and no more";
  const bool is_cost = search.maximize == Objective::kCost;
  return fmt::format("{} predicted ({} … {})", value,
                     ValueWords(space, search, expected.point, is_cost ? expected.high : expected.low),
                     ValueWords(space, search, expected.point, is_cost ? expected.low : expected.high));
}

std::string LeftWords(const SearchSpace& space, const sweep::SweepSearch& search, const SearchDecision& decision) {
  std::vector<std::string> parts;
  if (decision.too_large > 0) parts.push_back(fmt::format("{} predicted not to fit", decision.too_large));
  if (decision.as_large > 0) {
    parts.push_back(fmt::format("{} that would need as much as one that ran out of memory", decision.as_large));
  }
  const auto left = std::ssize(decision.left);
  const int64_t worse = left - decision.promising;
  if (worse > 0) {
    parts.push_back(search.maximize == Objective::kFit ? fmt::format("{} smaller", worse)
                                                       : fmt::format("{} that can hardly be 2 % better", worse));
  }
  if (decision.promising > 0) {
    parts.push_back(fmt::format("{} that could be better, first {}: {}", decision.promising,
                                space.points[decision.left.front().point].label,
                                ExpectedWords(space, search, decision.left.front())));
  }
  const int64_t all = left + decision.too_large + decision.as_large;
  return all == 0 ? "no point was left out" : fmt::format("{} not tried: {}", CountOf(all, "point"), Join(parts, ", "));
}

std::string EndWords(const SearchSpace& space, const sweep::SweepSearch& search, const SearchDecision& decision) {
  if (decision.finals.next_turn > 0) {
    return "those near the best are still to be measured again: the next `ridgeline run` goes on";
  }
  switch (decision.end) {
    case SearchDecision::End::kBudget:
      return fmt::format("it ended as its budget of {} {}", CountOf(search.budget, "run"),
                         decision.paid < search.budget ? "leaves none to look at another point by" : "is spent");
    case SearchDecision::End::kNothingBetter:
      return search.maximize == Objective::kFit
                 ? std::string("it ended as nothing larger is left that could fit")
                 : fmt::format("it ended as no point is left that could well be 2 % better; the best of them: {}, {}",
                               space.points[decision.left.front().point].label,
                               ExpectedWords(space, search, decision.left.front()));
    case SearchDecision::End::kNothingLeft:
      return "it ended as no point is left";
    case SearchDecision::End::kNone:
      return "it has not ended: the next `ridgeline run` goes on";
  }
  return "";
}

// What the points near the best gave when they were measured again.
std::string FinalsWords(const SearchSpace& space, const sweep::SweepSearch& search, const SearchDecision& decision) {
  std::vector<std::string> each;
  int64_t open = -1;  // without the first
  for (const Finalist& finalist : decision.finals.finalists) {
    open += finalist.could_be_best ? 1 : 0;
    each.push_back(fmt::format("{}: {}{}", space.points[finalist.point].label,
                               ValueWords(space, search, finalist.point, finalist.value),
                               finalist.could_be_best && !each.empty() ? " (could well be 2 % better)" : ""));
  }
  return fmt::format("{} near the best, measured {} more in turns: {}; {}", CountOf(std::ssize(each), "point"),
                     CountOf(decision.finals.turns, "time"), Join(each, ", "),
                     open == 0 ? "none of the others is likely to be 2 % better than the first"
                               : "which of them is best these runs do not say for sure");
}

}  // namespace

std::string ValueWords(const SearchSpace& space, const sweep::SweepSearch& search, size_t point, double value) {
  switch (search.maximize) {
    case Objective::kTokensPerS:
      return FormatCount(value) + " tokens/s";
    case Objective::kCost:
      return fmt::format("{:.2f} USD a billion tokens", 1e9 / value);
    case Objective::kFit: {
      const RunSpec& spec = space.points[point].point.spec;
      const auto tokens = static_cast<double>(spec.batch_size) * static_cast<double>(spec.seq_length);
      const auto parameters = static_cast<double>(CountParameters(spec));
      if (parameters == 0) return FormatCount(tokens) + " tokens";
      return fmt::format("{} parameters x {} tokens", FormatCount(parameters), FormatCount(tokens));
    }
  }
  return "";
}

std::string SearchWords(const sweep::Sweep& sweep, const std::vector<SearchSpace>& spaces) {
  const sweep::SweepSearch& search = *sweep.search;
  std::vector<std::string> over;
  for (const Field* field : search.over) over.emplace_back(field->name);
  size_t points = 0;
  for (const SearchSpace& space : spaces) points += space.points.size();
  std::string text = fmt::format("search: {} over {}; {}", ObjectiveWords(search.maximize), Join(over, ", "),
                                 CountOf(static_cast<int64_t>(points), "point"));
  text += spaces.size() == 1
              ? fmt::format(", at most {}", CountOf(search.budget, "run"))
              : fmt::format(" in {} searches, at most {} each", spaces.size(), CountOf(search.budget, "run"));
  if (search.maximize == Objective::kFit) return text + "; memory is planned";
  return text + "; times are predicted by " + spaces.front().basis;
}

std::string ChoiceWords(const SearchSpace& space, const sweep::SweepSearch& search, const SearchDecision& decision,
                        const Expected& chosen, int64_t run) {
  std::string text =
      fmt::format("{}: run {} of at most {}: {}: ", Named(space), run, search.budget, space.points[chosen.point].label);
  if (decision.finals.next_turn > 0) {
    return text + fmt::format("measured again in turn {} with the others near the best; so far {}",
                              decision.finals.next_turn, ValueWords(space, search, chosen.point, chosen.value));
  }
  text += ExpectedWords(space, search, chosen);
  if (decision.best) {
    text += fmt::format("; the best so far is {}, {}", space.points[*decision.best].label,
                        ValueWords(space, search, *decision.best, decision.best_value));
  }
  return text;
}

std::vector<std::string> AnswerLines(const SearchSpace& space, const sweep::SweepSearch& search,
                                     const SearchDecision& decision) {
  std::vector<std::string> lines;
  const std::string tried =
      fmt::format("{} tried, {} by this search", CountOf(decision.tried, "point"), CountOf(decision.paid, "run"));
  if (decision.best) {
    std::string value = ValueWords(space, search, *decision.best, decision.best_value);
    if (const double factor = decision.best_interval; factor > 1) {
      value += fmt::format(" ({} … {})", ValueWords(space, search, *decision.best, decision.best_value / factor),
                           ValueWords(space, search, *decision.best, decision.best_value * factor));
    }
    lines.push_back(fmt::format("{}: the best measured is {}: {}; {}", Named(space), space.points[*decision.best].label,
                                value, tried));
  } else {
    lines.push_back(fmt::format("{}: nothing was measured; {}", Named(space), tried));
  }
  if (decision.finals.turns > 0) lines.push_back("  " + FinalsWords(space, search, decision));
  if (decision.failed_again > 0) {
    lines.push_back(fmt::format("  {} failed when measured again, and so cannot be the best",
                                CountOf(decision.failed_again, "point")));
  }
  lines.push_back("  " + EndWords(space, search, decision));
  lines.push_back("  " + LeftWords(space, search, decision));
  return lines;
}

std::vector<std::string> FirstLines(const SearchSpace& space, const sweep::SweepSearch& search,
                                    const SearchDecision& decision, size_t most) {
  std::vector<std::string> lines;
  if (decision.run.empty()) return AnswerLines(space, search, decision);
  lines.push_back(fmt::format("{}: {} of {} points may be tried{}; first", Named(space), decision.left.size(),
                              space.points.size(),
                              decision.too_large > 0 ? fmt::format(" ({} do not fit)", decision.too_large) : ""));
  for (size_t i = 0; i < std::min(most, decision.run.size()); ++i) {
    const std::string& label = space.points[decision.run[i].point].label;
    const bool says_how_much = space.knows_level || decision.best;
    lines.push_back(says_how_much ? fmt::format("  {}: {}", label, ExpectedWords(space, search, decision.run[i]))
                                  : "  " + label);
  }
  return lines;
}

}  // namespace ridgeline::search
