// Logs as people post them, read by a shipped definition or by a few metrics.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainers/definition.h"
#include "trainers/find.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {

// A shipped trainer, by its name, or a definition with these metrics.
inline Trainer TrainerOf(const std::string& trainer) {
  if (trainer.find('{') == std::string::npos) {
    return LoadTrainer(FindTrainer(trainer, {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "trainers"}));
  }
  return ParseTrainer("name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n" + trainer,
                      "mine.yaml");
}

inline ReadingOptions OptionsOfPosted() {
  ReadingOptions options;
  options.field = [](std::string_view name) -> std::optional<double> {
    if (name == "seq_length") return 4096;
    if (name == "grad_accumulation") return 8;
    if (name == "global_batch_size") return 64;
    return std::nullopt;
  };
  return options;
}

inline Reading ReadPosted(const Trainer& trainer, const std::string& log,
                          const ReadingOptions& options = OptionsOfPosted()) {
  return ReadLog(
      trainer, [&](const auto& feed) { feed(log); }, options);
}

inline constexpr const char* kTqdm =
    "  - {name: step_time, regex: '\\| *(?P<step>\\d+)/\\d+ \\[\\S+<\\S+, +(?P<value>[\\d.]+(?:s/it|it/s))', unit: "
    "tqdm, "
    "take: series}\n";

}  // namespace ridgeline::trainers
