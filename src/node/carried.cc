#include "node/carried.h"

#include <link.h>

#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

void Copy(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), ec.message()));
  }
}

// By the names under which they are asked for.
std::vector<fs::path> LibrariesOfThisProgram() {
  std::vector<fs::path> libraries;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (info->dlpi_name[0] == '/') static_cast<std::vector<fs::path>*>(found)->emplace_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  return libraries;
}

}  // namespace

void CarryTo(const fs::path& folder) {
  MakeDirs(folder);
  Copy("/proc/self/exe", folder / "ridgeline");
  for (const fs::path& library : LibrariesOfThisProgram()) {
    const std::string name = library.filename();
    Copy(library, folder / (name.starts_with("ld-linux") || name.starts_with("ld64") ? "ld.so" : name));
  }
}

}  // namespace ridgeline
