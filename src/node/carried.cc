#include "node/carried.h"

#include <link.h>

#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr const char* kLoaderName = "ld.so";

void Copy(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), ec.message()));
  }
}

// The libraries, by the names under which they are requested.
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
  std::error_code ec;
  MakeDirs(folder);
  fs::path c_library;
  for (const fs::path& library : LibrariesOfThisProgram()) {
    const std::string name = library.filename();
    const bool is_loader = name.starts_with("ld-linux") || name.starts_with("ld64");
    if (name.starts_with("libc.so")) c_library = library;
    Copy(library, folder / (is_loader ? kLoaderName : name));
  }
  Copy(ProgramFile(), folder / "ridgeline");
  // Libraries that are loaded later, such as NVML, request parts of the C library by name. The image's parts are from
  // another release, and would not match ours.
  for (const char* part : {"libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}) {
    if (fs::exists(c_library.parent_path() / part, ec)) Copy(c_library.parent_path() / part, folder / part);
  }
}

}  // namespace ridgeline::node
