// What would be started for the points of a sweep, said before anything is (node/preview.h).
#pragma once

#include <string>

#include "node/preview.h"
#include "sweep/sweep.h"

namespace ridgeline {

struct CommandsAsked {
  std::string point;            // the beginning of an id; empty: all points
  std::string trainer;          // that the point must have; empty: any
  std::string format = "text";  // or json, jsonl
};

// Prints the commands. Throws Error(kUsage) where `point` is the beginning of no id or of several, or another
// trainer's.
void ShowCommands(const Sweep& sweep, const CommandsAsked& asked);

// A point's, as a shell takes it: comments, its files, and the command with its environment, in lines of 80 columns
// where no word is longer. `point`: what it is, in words.
std::string CommandText(const std::string& point, const Preview& preview);

}  // namespace ridgeline
