// The only table of a trainer's measurements: RunResult's figures. The encoding of a result, the store's columns and
// views, the checks of a result from outside, and the list in docs/store.md follow from it. A run's end and its reason
// are not figures: result.cc and store/results.cc handle them separately.
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

using Amounts = std::map<std::string, int64_t>;  // by the names of parts
using OwnFigures = std::map<std::string, OwnFigure>;

struct Figure {
  // The figure's place in a result. An optional figure has a value only if it was taken, and its 0 is a measurement.
  using Member = std::variant<
      int64_t& (*)(RunResult&), double& (*)(RunResult&), bool& (*)(RunResult&), std::string& (*)(RunResult&),
      std::vector<int64_t>& (*)(RunResult&), std::vector<double>& (*)(RunResult&), Amounts& (*)(RunResult&),
      std::optional<int64_t>& (*)(RunResult&), std::optional<double>& (*)(RunResult&), OwnFigures& (*)(RunResult&)>;

  std::string_view name;  // the store's column: with its unit
  std::string_view key;   // in a result's JSON: "step_ns.median" is {"step_ns": {"median": …}}
  Member member;
  std::string_view unit;  // "" for a plain number and for text
  std::string_view help;  // one line
  double min = 0;         // smallest number allowed, also for a list's elements
  double max = 0;         // largest
  // The figure beside which this one was taken, so that its 0 is a measurement. None: 0 means that it was not taken.
  std::string_view taken_with = {};

  // "integer", "number", "true or false", "text", "integers", "numbers", "amounts", "figures"
  std::string_view type() const;
  std::string_view sql_type() const;  // its column's type
  bool is_series() const;             // a list with one number per step
  bool is_object() const;             // amounts or figures by their names
  // Whether a result's JSON leaves out the figure if it was not taken. That holds for optional figures and for those
  // taken beside another.
  bool is_optional() const;
};

// All figures, in the order of the store's columns.
std::span<const Figure> Figures();

// A figure's value in a result. The alternatives have the order of Figure::Member.
using FigureValue =
    std::variant<int64_t, double, bool, const std::string*, const std::vector<int64_t>*, const std::vector<double>*,
                 const Amounts*, std::optional<int64_t>, std::optional<double>, const OwnFigures*>;
FigureValue ValueOf(const RunResult& result, const Figure& figure);

// Whether it was taken at all. A figure that was not taken has no value in the store, so averages leave it out.
bool WasTaken(const RunResult& result, const Figure& figure);

// Clears the long figures: those of single steps.
void DropSeries(RunResult& result);

}  // namespace ridgeline
