// The section `setup` of a sweep: commands that run once on this machine, before the first point.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "sweep/sweep.h"

namespace ridgeline::session {

// Runs the sweep's setup, unless the same commands have succeeded before with this output folder. Waits while another
// process runs them. `note` gets a line for each command. Returns before they have ended if it is interrupted
// (interrupts.h). Throws Error(kInfrastructure) with the output of a command that fails.
void RunSetup(const sweep::Sweep& sweep, const std::filesystem::path& output_dir,
              const std::function<void(const std::string&)>& note);

// The commands as a shell script, which ends at the first that fails; empty without a setup.
std::string SetupScript(const sweep::Sweep& sweep);

}  // namespace ridgeline::session
