// Lists the entries of a folder.
#pragma once

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace ridgeline {

// Calls `take` with each entry of a folder; with none if there is no such folder. Throws Error(kInfrastructure) if it
// cannot be read: with too many open files, for example, it must not look empty.
template <typename Take>
void ForEachEntry(const std::filesystem::path& folder, Take take) {
  std::error_code ec;
  std::filesystem::directory_iterator at(folder, ec);
  for (; !ec && at != std::filesystem::directory_iterator(); at.increment(ec)) take(*at);
  if (!ec || ec == std::errc::no_such_file_or_directory || ec == std::errc::not_a_directory) return;
  errno = ec.value();
  ThrowErrno("cannot read the folder " + folder.string());
}

}  // namespace ridgeline
