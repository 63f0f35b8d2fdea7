// What ridgeline-train does with its command line.
#pragma once

namespace ridgeline {

// The exit code: TrainerExit for a run; 0 or 1 for --verify. Throws Error for a command line or file that is wrong.
int RunTrainCommand(int argc, const char* const* argv);

}  // namespace ridgeline
