#include "base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline {

SharedLibrary::SharedLibrary(std::string_view name, std::initializer_list<const char*> files, std::string_view package)
    : name_(name), package_(package) {
  std::string refusals;
  for (const char* file : files) {
    handle_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      file_ = file;
      return;
    }
    refusals += fmt::format("{}{}", refusals.empty() ? "" : "; ", ::dlerror());
  }
  throw Error(ErrorKind::kInfrastructure, fmt::format("{} cannot be loaded: {}", name_, refusals),
              fmt::format("install {}, or name its folder in LD_LIBRARY_PATH", package_));
}

void* SharedLibrary::AddressIfThere(const char* symbol) const { return ::dlsym(handle_, symbol); }

void* SharedLibrary::Address(const char* symbol) const {
  void* address = AddressIfThere(symbol);
  if (address != nullptr) return address;
  throw Error(ErrorKind::kInfrastructure, fmt::format("{} ({}) has no function {}", name_, file_, symbol),
              fmt::format("it is another version than this trainer was made for: install {}", package_));
}

}  // namespace ridgeline
