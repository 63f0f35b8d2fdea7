#include "engine/cli/hyperparameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/error.h"
#include "engine/cli/train_flags.h"

namespace ridgeline::engine {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

// Sets environment variables for as long as the object lives.
class Environment {
 public:
  explicit Environment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }

 private:
  Variables variables_;
};

RunSpec Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ridgeline-train");
  return *ParseTrainCommand(static_cast<int>(arguments.size()), arguments.data())->spec;
}

TEST(HyperParameters, AreFlags) {
  const Environment environment(Variables{{"SM_HP_MODEL", "llama-10m"},
                                          {"SM_HP_BATCH_SIZE", "4"},
                                          {"SM_HP_LEARNING-RATE", "0.001"},
                                          {"SM_HP_TIED-HEAD", "false"},
                                          {"SM_HP_CHECKPOINT_EVERY_STEPS", "7"},
                                          {"SM_HP_CHECKPOINT-KEEP", "3"},
                                          {"SM_HP_SAGEMAKER_PROGRAM", "train.sh"},
                                          {"SM_MODEL_DIR", "/opt/ml/model"}});
  const RunSpec spec = Parsed({"--batch-size", "8"});
  EXPECT_EQ(spec.model.substr(0, 5), "llama");
  EXPECT_EQ(spec.layers, 8);
  EXPECT_EQ(spec.batch_size, 8);  // the command line takes precedence
  EXPECT_EQ(spec.learning_rate, 0.001);
  EXPECT_FALSE(spec.tied_head);
  EXPECT_EQ(spec.checkpoint_every_steps, 7);
  EXPECT_EQ(spec.checkpoint_keep, 3);
}

TEST(HyperParameters, AreFsdpPysFlagsToo) {
  const Environment environment(
      Variables{{"SM_HP_NUM_LAYERS", "2"}, {"SM_HP_NUM-HEADS", "4"}, {"SM_HP_HEAD_DIM", "16"}});
  const RunSpec spec = Parsed({"--seq-length", "64"});
  EXPECT_EQ(spec.family, ModelFamily::kStack);
  EXPECT_EQ(spec.layers, 2);
  EXPECT_EQ(spec.hidden, 64);
}

TEST(HyperParameters, AnUnknownOneIsRefusedByName) {
  const Environment environment(Variables{{"SM_HP_MODEL", "llama-10m"}, {"SM_HP_BATCH_SISE", "4"}});
  try {
    Parsed({});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("'BATCH_SISE'"));
    EXPECT_THAT(e.message(), HasSubstr("did you mean 'BATCH_SIZE'?"));
  }
}

TEST(HyperParameters, AWrongValueIsRefusedAsAFlagsWouldBe) {
  const Environment environment(Variables{{"SM_HP_MODEL", "llama-10m"}, {"SM_HP_BATCH_SIZE", "many"}});
  EXPECT_THROW(Parsed({}), Error);
}

TEST(HyperParameters, ASpecFileIsTheWholeRun) {
  const Environment environment(Variables{{"SM_HP_BATCH_SISE", "4"}});
  const char* argv[] = {"ridgeline-train", "--spec", "run.json"};
  EXPECT_EQ(ParseTrainCommand(3, argv)->spec_file, "run.json");
}

}  // namespace
}  // namespace ridgeline::engine
