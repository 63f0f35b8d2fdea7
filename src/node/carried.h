// A program that brings all it needs along: for a container of somebody else's image.
#pragma once

#include <filesystem>

namespace ridgeline {

// Copies this program into `folder`, with every library it is linked with, the C library and its loader among them, so
// that `FOLDER/ld.so --library-path FOLDER FOLDER/ridgeline` runs wherever a kernel of this machine's kind does.
// Throws Error(kInfrastructure).
void CarryTo(const std::filesystem::path& folder);

}  // namespace ridgeline
