// Logs of runs that ended, made for the tests of ends.
#pragma once

#include <optional>
#include <string>

#include "trainers/ends.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {

inline const Trainer& Stepping() {
  static const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: loss, regex: 'step (?P<step>\\d+) loss (?P<value>\\S+)', take: series}\n",
      "mine.yaml");
  return trainer;
}

inline std::optional<LogEnd> EndOfText(const std::string& log, std::optional<int> exit_code) {
  ReadingOptions options;
  options.exit_code = exit_code;
  return ReadLog(
             Stepping(), [&](const auto& feed) { feed(log); }, options)
      .end;
}

inline const std::string kSteps = "step 1 loss 2.5\nstep 2 loss 2.25\nstep 3 loss 2.0\n";

// A Python traceback, each line preceded by `who`.
inline std::string Raised(const std::string& message, const std::string& who = "") {
  std::string log;
  for (const std::string& line :
       {std::string("Traceback (most recent call last):"), std::string("  File \"/w/train.py\", line 640, in <module>"),
        std::string("    trainer.train()  # torch.OutOfMemoryError may come from here"),
        std::string("    ^^^^^^^^^^^^^^^")}) {
    log += who + line + "\n";
  }
  return log + who + message + "\n";
}

inline constexpr const char* kWatchdog =
    "[rank0]:[E1103 09:24:52.1 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1277, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n";

}  // namespace ridgeline::trainers
