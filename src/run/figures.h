// The one table of what a trainer measures: RunResult's figures. The encoding of a result, the store's columns and
// their views, what is checked of a result from outside, and the list in docs/store.md follow from it. How a run ended,
// and why, is no figure: that is written out beside the table, in result.cc and store/results.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

using Amounts = std::map<std::string, int64_t>;  // of named parts
using OwnFigures = std::map<std::string, OwnFigure>;

struct Figure {
  // Where it lies in a result. An optional one has a value only where it was taken, and its 0 is a measurement.
  using Member = std::variant<
      int64_t& (*)(RunResult&), double& (*)(RunResult&), bool& (*)(RunResult&), std::string& (*)(RunResult&),
      std::vector<int64_t>& (*)(RunResult&), std::vector<double>& (*)(RunResult&), Amounts& (*)(RunResult&),
      std::optional<int64_t>& (*)(RunResult&), std::optional<double>& (*)(RunResult&), OwnFigures& (*)(RunResult&)>;

  std::string_view name;  // the store's column: with its unit
  std::string_view key;   // in a result's JSON: "step_ns.median" is {"step_ns": {"median": …}}
  Member member;
  std::string_view unit;  // "" for a plain number and for text
  std::string_view help;  // one line
  double min = 0;         // smallest number allowed, of a list's elements too
  double max = 0;         // largest
  // The figure beside which this one was taken, so that its 0 is a measurement; none: 0 says it was not taken.
  std::string_view taken_with = {};

  // "integer", "number", "true or false", "text", "integers", "numbers", "amounts", "figures"
  std::string_view type() const;
  std::string_view sql_type() const;  // of its column
  bool is_series() const;             // a list: one number a step
  bool is_object() const;             // amounts or figures by their names
  // Whether a result's JSON leaves it out where it was not taken: it is an optional one, or was taken beside one.
  bool is_optional() const;
};

// All figures, in the order of the store's columns.
std::span<const Figure> Figures();

// A figure's value in a result; the variant's alternatives stand as those of Figure::Member do.
using FigureValue =
    std::variant<int64_t, double, bool, const std::string*, const std::vector<int64_t>*, const std::vector<double>*,
                 const Amounts*, std::optional<int64_t>, std::optional<double>, const OwnFigures*>;
FigureValue ValueOf(const RunResult& result, const Figure& figure);

// Whether it was taken at all: what was not has no value in the store, so that averages leave it out.
bool WasTaken(const RunResult& result, const Figure& figure);

// Empties what is long: the figures of single steps.
void DropSeries(RunResult& result);

}  // namespace ridgeline
