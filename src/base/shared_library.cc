#include "base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace ridgeline {
namespace {

// Where NVIDIA's libraries lie that no loader finds, relative to the folder that a variable names.
struct CudaPlace {
  const char* variable;
  const char* folders;
};

constexpr CudaPlace kCudaPlaces[] = {
    {"VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/*/lib"},   // PyTorch's wheels
    {"CONDA_PREFIX", "lib/python3*/site-packages/nvidia/*/lib"},  // the same, installed by pip in conda's environment
    {"CONDA_PREFIX", "lib"},                                      // conda's own packages
    {"CUDA_HOME", "lib64"},                                       // a toolkit from an environment module
};

const char* ValueOf(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::vector<std::string> FilesIn(const CudaPlace& place, std::string_view file) {
  const char* const root = ValueOf(place.variable);
  if (root == nullptr) return {};
  std::string pattern;
  for (const char* at = root; *at != '\0'; ++at) {
    if (std::string_view(R"(*?[\)").find(*at) != std::string_view::npos) pattern += '\\';
    pattern += *at;
  }
  pattern += fmt::format("/{}/{}", place.folders, file);
  std::vector<std::string> files;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

std::string CudaPlacesInWords() {
  std::string words;
  for (const CudaPlace& place : kCudaPlaces) {
    const char* const root = ValueOf(place.variable);
    words += root == nullptr ? fmt::format(", ${}/{} (not set)", place.variable, place.folders)
                             : fmt::format(", {}/{}", root, place.folders);
  }
  return words;
}

}  // namespace

SharedLibrary::SharedLibrary(std::string_view name, std::initializer_list<const char*> files, std::string_view package,
                             BroughtBy brought_by)
    : name_(name), package_(package) {
  std::string refusals;
  for (const char* file : files) {
    if (Load(file, refusals)) return;
  }
  std::string places;
  if (brought_by == BroughtBy::kCudaPackage) {
    for (const char* file : files) {
      for (const CudaPlace& place : kCudaPlaces) {
        for (const std::string& path : FilesIn(place, file)) {
          if (Load(path, refusals)) return;
        }
      }
    }
    places = fmt::format("; looked in LD_LIBRARY_PATH, the system's folders{}", CudaPlacesInWords());
  }
  throw Error(
      ErrorKind::kInfrastructure, fmt::format("{} cannot be loaded: {}{}", name_, refusals, places),
      brought_by == BroughtBy::kCudaPackage
          ? fmt::format("install {}, activate the environment that has it, or name its folder in LD_LIBRARY_PATH",
                        package_)
          : fmt::format("install {}, or name its folder in LD_LIBRARY_PATH", package_));
}

bool SharedLibrary::Load(const std::string& file, std::string& refusals) {
  handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    refusals += fmt::format("{}{}", refusals.empty() ? "" : "; ", ::dlerror());
    return false;
  }
  file_ = file;
  return true;
}

void* SharedLibrary::AddressIfThere(const char* symbol) const { return ::dlsym(handle_, symbol); }

void* SharedLibrary::Address(const char* symbol) const {
  void* address = AddressIfThere(symbol);
  if (address != nullptr) return address;
  throw Error(ErrorKind::kInfrastructure, fmt::format("{} ({}) has no function {}", name_, file_, symbol),
              fmt::format("it is another version than this trainer was made for: install {}", package_));
}

}  // namespace ridgeline
