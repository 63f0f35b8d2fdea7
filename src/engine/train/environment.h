// What a result says of the machine and the build it was measured on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ridgeline {

// cpu, cpu_flags, cores ($RIDGELINE_CORES, where `ridgeline exec` counted them), memory, threads, kernel, hostname, os,
// compiler, libraries, git_commit, version, command.
std::map<std::string, std::string> DescribeEnvironment(const std::vector<std::string>& command_line);

// "Intel(R) Xeon(R) Processor (2 cores)": the device of a CPU run.
std::string CpuName();

// The process's peak resident set so far, bytes.
int64_t PeakRssBytes();

}  // namespace ridgeline
