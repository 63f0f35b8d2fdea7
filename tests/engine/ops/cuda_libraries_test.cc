// Libraries that are loaded when they are needed: found, missing, or of another version.
#ifdef RIDGELINE_CUDA_ON_CPU
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "base/shared_library.h"
#include "engine/device/cuda/libraries.h"

namespace ridgeline::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WordsOf(const std::function<void()>& load) {
  try {
    load();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    return error.what();
  }
  return "loaded";
}

TEST(SharedLibrary, FindsFunctionsInTheFirstFileThatIsThere) {
  const SharedLibrary library("the C library", {"libnot-there.so.7", "libm.so.6"}, "libc6");
  double (*root)(double) = nullptr;
  library.Find("sqrt", root);
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root(49), 7);
}

TEST(SharedLibrary, SaysWhichFilesItLookedForAndWhatToInstall) {
  EXPECT_THAT(WordsOf([] {
                SharedLibrary("cuDNN", {"libnot-there.so.9", "libnot-there.so"}, "cuDNN 9");
              }),
              AllOf(HasSubstr("cuDNN cannot be loaded"), HasSubstr("libnot-there.so.9: cannot open"),
                    HasSubstr("libnot-there.so: cannot open"), HasSubstr("install cuDNN 9")));
}

TEST(SharedLibrary, SaysWhichFunctionItHasNot) {
  const SharedLibrary library("the C library", {"libm.so.6"}, "libc6");
  void (*function)() = nullptr;
  EXPECT_THAT(WordsOf([&] { library.Find("no_such_function", function); }),
              AllOf(HasSubstr("the C library (libm.so.6) has no function no_such_function"), HasSubstr("libc6")));
  EXPECT_EQ(function, nullptr);
}

// NVIDIA's own libraries, if installed: they load, have every function, and report that there is no GPU.
TEST(SharedLibrary, LoadsNvidiasWhereTheyAre) {
  const std::string words = WordsOf([] { LoadCublasLt(); });
  if (words != "loaded") GTEST_SKIP() << words;
  const CublasLt& library = LoadCublasLt();
  EXPECT_EQ(&LoadCublasLt(), &library);
  EXPECT_EQ(library.cublasLtGetVersion() / 10000, size_t{CUBLAS_VER_MAJOR});
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = library.cublasLtCreate(&handle);
  if (status == CUBLAS_STATUS_SUCCESS) {
    EXPECT_EQ(library.cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    return;
  }
  EXPECT_THAT(WordsOf([&] { CheckCublasLt(status, "cublasLtCreate"); }),
              HasSubstr("cuBLASLt: cublasLtCreate failed: not initialized"));
}

}  // namespace
}  // namespace ridgeline::engine
#endif
