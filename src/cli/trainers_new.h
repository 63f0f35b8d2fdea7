// `ridgeline trainers new`: proposes a definition from a log.
#pragma once

#include <functional>
#include <utility>

#include <CLI/CLI.hpp>

namespace ridgeline::cli {

// Adds the subcommand, and returns it with what it does.
std::pair<const CLI::App*, std::function<int()>> AddTrainersNew(CLI::App& trainers);

}  // namespace ridgeline::cli
