#include "base/shared_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kVariables[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME"};

// Folders of NVIDIA's libraries, each a copy of the machine's libm.
class SharedLibraries : public testing::Test {
 protected:
  SharedLibraries() {
    for (const char* variable : kVariables) ::unsetenv(variable);
  }
  ~SharedLibraries() override {
    for (const char* variable : kVariables) ::unsetenv(variable);
  }

  // Puts a library at this path under the temporary folder.
  void Put(const fs::path& path) const {
    Dl_info libm{};
    ASSERT_NE(::dladdr(::dlsym(::dlopen("libm.so.6", RTLD_NOW), "sqrt"), &libm), 0);
    fs::create_directories((folder_.path() / path).parent_path());
    fs::copy_file(libm.dli_fname, folder_.path() / path);
  }
  void Name(const char* variable, const fs::path& path) const {
    ::setenv(variable, (folder_.path() / path).c_str(), 1);
  }
  std::string Under(const fs::path& path) const { return folder_.path() / path; }

  // The loaded file, or the reason why none was.
  static std::string Loaded(BroughtBy brought_by = BroughtBy::kCudaPackage) {
    try {
      const SharedLibrary library("stand-in", {"libstand-in.so.7"}, "the package", brought_by);
      double (*root)(double) = nullptr;
      library.Find("sqrt", root);
      EXPECT_EQ(root(49), 7);
      library.Find("no_such_function", root);
    } catch (const Error& error) {
      return std::string(error.message()) + " -> " + std::string(error.hint());
    }
    return "";
  }

  const TempDir folder_;
};

TEST_F(SharedLibraries, AreFoundInTheWheelsOfAVirtualEnvironment) {
  Put("my [env]*/lib/python3.11/site-packages/nvidia/cublas/lib/libstand-in.so.7");
  Name("VIRTUAL_ENV", "my [env]*");
  EXPECT_THAT(Loaded(), HasSubstr("stand-in (" +
                                  Under("my [env]*/lib/python3.11/site-packages/nvidia/cublas/lib/libstand-in.so.7") +
                                  ") has no function no_such_function"));
}

TEST_F(SharedLibraries, AreFoundInCondasEnvironmentByPipAndByConda) {
  Put("conda/lib/libstand-in.so.7");
  Name("CONDA_PREFIX", "conda");
  EXPECT_THAT(Loaded(), HasSubstr(Under("conda/lib/libstand-in.so.7")));
  Put("conda/lib/python3.12/site-packages/nvidia/cu13/lib/libstand-in.so.7");
  EXPECT_THAT(Loaded(), HasSubstr("site-packages/nvidia/cu13/lib/libstand-in.so.7"));
}

TEST_F(SharedLibraries, AreFoundInTheToolkitOfAModule) {
  Put("cuda/lib64/libstand-in.so.7");
  Name("CUDA_HOME", "cuda");
  EXPECT_THAT(Loaded(), HasSubstr(Under("cuda/lib64/libstand-in.so.7")));
}

TEST_F(SharedLibraries, TheNextPlaceIsTakenWhereOneHasWhatCannotBeLoaded) {
  Put("cuda/lib64/libstand-in.so.7");
  fs::create_directories(Under("venv/lib/python3.11/site-packages/nvidia/cublas/lib"));
  WriteFileAtomic(Under("venv/lib/python3.11/site-packages/nvidia/cublas/lib/libstand-in.so.7"), "no library");
  Name("CUDA_HOME", "cuda");
  Name("VIRTUAL_ENV", "venv");
  EXPECT_THAT(Loaded(), HasSubstr(Under("cuda/lib64/libstand-in.so.7")));
}

TEST_F(SharedLibraries, AnErrorNamesThePlacesThatWereLookedAt) {
  Name("VIRTUAL_ENV", "venv");
  ::setenv("CUDA_HOME", "", 1);
  EXPECT_THAT(Loaded(), AllOf(HasSubstr("stand-in cannot be loaded: libstand-in.so.7: cannot open"),
                              HasSubstr("looked in LD_LIBRARY_PATH, the system's folders, " +
                                        Under("venv/lib/python3*/site-packages/nvidia/*/lib")),
                              HasSubstr("$CONDA_PREFIX/lib (not set), $CUDA_HOME/lib64 (not set)"),
                              HasSubstr("install the package, activate the environment that has it, or")));
}

// A driver's library matches its kernel module, so no environment contains it.
TEST_F(SharedLibraries, ADriversAreTheSystems) {
  Put("cuda/lib64/libstand-in.so.7");
  Name("CUDA_HOME", "cuda");
  EXPECT_THAT(Loaded(BroughtBy::kSystem),
              AllOf(HasSubstr("stand-in cannot be loaded"), Not(HasSubstr("CUDA_HOME")), Not(HasSubstr("looked in"))));
}

}  // namespace
}  // namespace ridgeline
