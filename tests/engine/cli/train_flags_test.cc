#include "engine/cli/train_flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace ridgeline::engine {
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

TEST(TrainFlags, SayHowAlgorithmsAreChosen) {
  const auto parse = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"ridgeline-train", "--spec", "run.json", "--algorithms"});
    return ParseTrainCommand(static_cast<int>(arguments.size()), arguments.data())->device;
  };
  EXPECT_EQ(parse({"mine.json"}).load_seconds, 0);
  EXPECT_FALSE(parse({"mine.json"}).all_plans);
  EXPECT_EQ(parse({"mine.json", "--choose-under-load", "5"}).load_seconds, 5);
  EXPECT_TRUE(parse({"mine.json", "--all-plans"}).all_plans);
  EXPECT_FALSE(parse({"mine.json"}).beside_products);
  EXPECT_TRUE(parse({"off", "--beside-products"}).beside_products);
  EXPECT_THROW(parse({"mine.json", "--choose-under-load", "0"}), Error);
  EXPECT_THROW(parse({"off", "--choose-under-load", "5"}), Error);
  EXPECT_THROW(parse({"off", "--all-plans"}), Error);
}

}  // namespace
}  // namespace ridgeline::engine
