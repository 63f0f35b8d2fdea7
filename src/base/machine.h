// Facts about this machine, by which machines can be distinguished or compared.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace ridgeline {

// cpu (its model), cpu_flags (those that affect how fast it multiplies), cores (as many as this process may keep busy),
// memory (in whole GiB). `root` is "/" except in tests.
std::map<std::string, std::string> MachineFacts(const std::filesystem::path& root = "/");

// The machine's name; "?" if unknown.
std::string HostName();

// "AMD EPYC (2 cores)", from these facts: the name of a processor as a device.
std::string CpuName(const std::map<std::string, std::string>& facts);

}  // namespace ridgeline
