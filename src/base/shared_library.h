// A library that is loaded where it is first needed, so that the trainer starts on machines without it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace ridgeline {

// Who brings a library, and so where it may lie.
enum class BroughtBy {
  kSystem,       // its driver: where the loader looks, LD_LIBRARY_PATH and ldconfig's folders
  kCudaPackage,  // after that PyTorch's wheels of an active environment, conda's packages, and the toolkit at CUDA_HOME
};

class SharedLibrary {
 public:
  // Loads the first of `files` that is found, for as long as the process lives: NVIDIA's libraries leave
  // threads and contexts behind. `name` is what people call it, `package` what brings it. Throws Error(kInfrastructure)
  // with the loader's word on each file, the places that were looked at, and what to install.
  SharedLibrary(std::string_view name, std::initializer_list<const char*> files, std::string_view package,
                BroughtBy brought_by = BroughtBy::kSystem);

  // Sets `function` to the one of this name. Throws Error(kInfrastructure) where the library has none: it is too old.
  template <typename Function>
  void Find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(Address(symbol));
  }
  // The same, and nullptr where it has none.
  template <typename Function>
  void FindIfThere(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(AddressIfThere(symbol));
  }

 private:
  // False where there is none that can be loaded; adds why to `refusals`.
  bool Load(const std::string& file, std::string& refusals);
  void* Address(const char* symbol) const;
  void* AddressIfThere(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_, file_, package_;
};

}  // namespace ridgeline
