// What this machine is: the facts by which two machines can be told apart or held against each other.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace ridgeline {

// cpu (its model), cpu_flags (those that decide how fast it multiplies), cores (as many as this process may keep busy),
// memory (in whole GiB). `root` is "/" but in tests.
std::map<std::string, std::string> MachineFacts(const std::filesystem::path& root = "/");

// What it is called; "?": it does not say.
std::string HostName();

// "AMD EPYC (2 cores)", of these facts: what a processor says of itself as a device.
std::string CpuName(const std::map<std::string, std::string>& facts);

}  // namespace ridgeline
