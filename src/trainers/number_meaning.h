// What a number of a log may be, by the words beside it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainers/log_numbers.h"

namespace ridgeline::trainers {

struct NumberMeaning {
  std::string figure = {};  // as definitions name it
  std::string unit = {};    // as definitions write it; empty: none, or not said
  int rank = 0;             // of several that claim one figure, the highest
  bool is_mean = false;
  // What the words leave open.
  bool lacks_unit = false;
  bool lacks_ranks = false;     // a rate: of all ranks or of one
  bool lacks_kind = false;      // memory: allocated, reserved or in use
  bool lacks_thousand = false;  // GB: powers of 1000 or of 1024
  bool is_doubtful = false;     // the words may mean something else
};

// Whether the number counts steps of the training, or of an evaluation.
bool CountsEvaluation(const LogNumber& number);
bool CountsSteps(std::string_view line, const LogNumber& number);

// Nothing if the words name no figure.
std::optional<NumberMeaning> MeaningOf(std::string_view line, const LogNumber& number);

}  // namespace ridgeline::trainers
