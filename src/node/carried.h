// Makes this program self-contained, for a container of any image.
#pragma once

#include <filesystem>

namespace ridgeline::node {

// Copies this program into `folder`, with every library that it is linked with, including the C library and its loader.
// Then `FOLDER/ld.so --library-path FOLDER FOLDER/ridgeline` runs on any kernel of this machine's kind. Throws
// Error(kInfrastructure).
void CarryTo(const std::filesystem::path& folder);

}  // namespace ridgeline::node
