#include "engine/cli/train_flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {
namespace {

std::filesystem::path AlgorithmsOf(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"ridgeline-train", "--spec", "run.json"});
  return ParseTrainCommand(static_cast<int>(arguments.size()), arguments.data())->device.algorithms;
}

TEST(TrainFlags, SayWhichAlgorithmsOfProductsAreTaken) {
  ::setenv("XDG_CACHE_HOME", "/var/cache/ada", 1);
  EXPECT_EQ(AlgorithmsOf({}), "/var/cache/ada/ridgeline/cublaslt.json");
  EXPECT_EQ(AlgorithmsOf({"--algorithms", "mine.json"}), "mine.json");
  EXPECT_EQ(AlgorithmsOf({"--algorithms", "off"}), "");
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace ridgeline
