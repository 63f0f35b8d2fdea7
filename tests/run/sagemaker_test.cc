#include "run/sagemaker.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

class SageMaker : public ::testing::Test {
 protected:
  SageMaker() { std::filesystem::create_directories(Dir()); }
  ~SageMaker() override {
    ::unsetenv("SM_CURRENT_HOST");
    ::unsetenv("TRAINING_JOB_NAME");
  }
  std::filesystem::path Dir() const { return root_ / "opt/ml/checkpoints"; }
  // The dir of a spec that names `dir`.
  std::string DirOf(const std::string& dir = "", const std::string& folder = "", const std::string& device = "cpu") {
    RunSpec spec;
    spec.checkpoint_dir = dir;
    spec.device = device;
    UseSageMakerCheckpointDir(folder, spec, root_.path());
    return spec.checkpoint_dir;
  }
  TempDir root_;
};

TEST_F(SageMaker, ItsFolderIsTheDefaultThere) {
  EXPECT_EQ(DirOf(), "") << "this is not SageMaker";
  for (const char* variable : {"SM_CURRENT_HOST", "TRAINING_JOB_NAME"}) {
    ::setenv(variable, "x", 1);
    EXPECT_EQ(DirOf(), Dir());
    EXPECT_EQ(DirOf("", "0123"), Dir() / "0123");
    ::unsetenv(variable);
  }
}

TEST_F(SageMaker, WhatIsNamedIsUsed) {
  ::setenv("SM_CURRENT_HOST", "algo-1", 1);
  EXPECT_EQ(DirOf("/mine", "0123"), "/mine");
  EXPECT_EQ(DirOf("", "", "meta"), "");
  std::filesystem::remove(Dir());
  EXPECT_EQ(DirOf(), "");
}

}  // namespace
}  // namespace ridgeline
