// A library that is loaded when it is first needed, so that the trainer starts on machines without it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace ridgeline {

// What installs a library, and so where it may lie.
enum class BroughtBy {
  kSystem,       // the driver: where the loader searches, LD_LIBRARY_PATH and ldconfig's folders
  kCudaPackage,  // then PyTorch's wheels of an active environment, conda's packages, and the toolkit at CUDA_HOME
};

class SharedLibrary {
 public:
  // Loads the first of `files` that is found, for the life of the process, because NVIDIA's libraries leave threads and
  // contexts behind. `name`: its usual name. `package`: what installs it. Throws Error(kInfrastructure) with the
  // loader's message for each file, the places that were searched, and what to install.
  SharedLibrary(std::string_view name, std::initializer_list<const char*> files, std::string_view package,
                BroughtBy brought_by = BroughtBy::kSystem);

  // Sets `function` to the one of this name. Throws Error(kInfrastructure) if the library lacks it, because it is too
  // old.
  template <typename Function>
  void Find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(Address(symbol));
  }
  // The same, but nullptr if the library lacks it.
  template <typename Function>
  void FindIfThere(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(AddressIfThere(symbol));
  }

 private:
  // Returns false if none can be loaded; adds the reason to `refusals`.
  bool Load(const std::string& file, std::string& refusals);
  void* Address(const char* symbol) const;
  void* AddressIfThere(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_, file_, package_;
};

}  // namespace ridgeline
