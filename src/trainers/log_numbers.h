// The numbers in a line of a log, each with the words that say what it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::trainers {

struct LogNumber {
  size_t begin = 0;         // in the line: where its digits begin
  size_t end = 0;           // and where they end
  size_t context = 0;       // where the text begins that identifies it: a delimiter and its label
  std::string_view label;   // the words before it: "elapsed time per iteration (ms)"; may be empty
  std::string_view suffix;  // the unit behind it: "ms", "K", "tok/s"; may be empty
  std::string_view after;   // the two words behind it, the suffix among them
  bool of_more = false;     // a slash and another number follow: 3/20
};

// The numbers of a line, in order. Leaves out dates, times of day, versions, and digits within words.
std::vector<LogNumber> NumbersOf(std::string_view line);

// The lower-case words of a label, in order. Splits at punctuation and within camelCase: MaxMem is max and mem.
std::vector<std::string> WordsOf(std::string_view label);

}  // namespace ridgeline::trainers
