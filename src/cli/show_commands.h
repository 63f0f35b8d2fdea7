// Shows the commands that would be started for the points of a sweep, before anything runs (node/preview.h).
#pragma once

#include <string>

#include "node/preview.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {

struct CommandsAsked {
  std::string point;            // the beginning of an id; empty: all points
  std::string trainer;          // the trainer that the point must have; empty: any
  std::string format = "text";  // or json, jsonl
};

// Prints the commands. Throws Error(kUsage) if `point` is the beginning of no id or of several, or if the point has
// another trainer.
void ShowCommands(const sweep::Sweep& sweep, const CommandsAsked& asked);

// A point's command as shell text: comments, its files, and the command with its environment, in lines of 80 columns
// unless a word is longer. `point`: describes the point.
std::string CommandText(const std::string& point, const node::Preview& preview);

}  // namespace ridgeline::cli
