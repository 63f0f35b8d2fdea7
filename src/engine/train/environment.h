// Describes the machine and the build in a result.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ridgeline::engine {

// Returns cpu, cpu_flags, cores ($RIDGELINE_CORES, if `ridgeline exec` counted them), memory, threads, kernel,
// hostname, os, compiler, libraries, git_commit, version, command.
std::map<std::string, std::string> DescribeEnvironment(const std::vector<std::string>& command_line);

// Returns the device of a CPU run: "Intel(R) Xeon(R) Processor (2 cores)".
std::string CpuName();

// Returns the process's peak resident set so far, in bytes.
int64_t PeakRssBytes();

}  // namespace ridgeline::engine
