#include "run/sagemaker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
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

TEST_F(SageMaker, UsesANamedFolder) {
  ::setenv("SM_CURRENT_HOST", "algo-1", 1);
  EXPECT_EQ(DirOf("/mine", "0123"), "/mine");
  EXPECT_EQ(DirOf("", "", "meta"), "");
  std::filesystem::remove(Dir());
  EXPECT_EQ(DirOf(), "");
}

TEST(SageMakerHosts, AreInTheOrderOfTheirNumbers) {
  const auto hosts = ParseSageMakerHosts(
      R"({"current_host": "algo-10", "hosts": ["algo-1", "algo-10", "algo-2"], "network_interface_name": "eth0"})");
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts->names, (std::vector<std::string>{"algo-1", "algo-2", "algo-10"}));
  EXPECT_EQ(hosts->here, 2U);
  EXPECT_EQ(hosts->interface, "eth0");
  for (const char* text :
       {"", "[]", "{}", R"({"current_host": "x", "hosts": ["algo-1"]})", R"({"current_host": 1, "hosts": "algo-1"})"}) {
    EXPECT_FALSE(ParseSageMakerHosts(text)) << text;
  }
}

class SageMakerNode : public SageMaker {
 protected:
  SageMakerNode() {
    ::setenv("TRAINING_JOB_NAME", "x", 1);
    std::filesystem::create_directories(root_ / "opt/ml/input/config");
    std::filesystem::create_directories(root_ / "opt/ml/output");
    std::filesystem::create_directories(root_ / "tmp");
  }
  ~SageMakerNode() override {
    for (const char* name : {"RIDGELINE_NNODES", "RIDGELINE_NODE_RANK", "RIDGELINE_NODE", "RIDGELINE_SECRET_FILE",
                             "MASTER_ADDR", "MASTER_PORT", "NCCL_SOCKET_IFNAME", "FI_PROVIDER",
                             "FI_EFA_USE_DEVICE_RDMA", "SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(SageMakerNode, FindsTheOthersAndTakesASecretOfItsOwn) {
  WriteFile(root_ / "opt/ml/input/config/resourceconfig.json",
            R"({"current_host": "localhost", "hosts": ["localhost", "algo-2"], "network_interface_name": "lo"})");
  const auto secret = root_ / "opt/ml/input/secret";
  WriteFile(secret, "0123");
  ::setenv("RIDGELINE_SECRET_FILE", secret.c_str(), 1);
  UseSageMakerNodes(root_.path());
  EXPECT_STREQ(std::getenv("RIDGELINE_NNODES"), "2");
  EXPECT_STREQ(std::getenv("RIDGELINE_NODE_RANK"), "0");
  EXPECT_STREQ(std::getenv("MASTER_ADDR"), "localhost");
  const std::filesystem::path own = std::getenv("RIDGELINE_SECRET_FILE");
  EXPECT_NE(own, secret);
  EXPECT_EQ(ReadFile(own), "0123");
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms(0600));
}

TEST_F(SageMakerNode, UsesEfaOnlyWhereItIs) {
  const auto use = [&](const std::string& instance_type) {
    for (const char* name : {"RIDGELINE_NNODES", "FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA"}) ::unsetenv(name);
    WriteFile(root_ / "opt/ml/input/config/resourceconfig.json",
              R"({"current_host": "localhost", "hosts": ["localhost", "algo-2"], "network_interface_name": "lo",)"
              R"( "current_instance_type": ")" +
                  instance_type + "\"}");
    UseSageMakerNodes(root_.path());
    const char* provider = std::getenv("FI_PROVIDER");
    const char* rdma = std::getenv("FI_EFA_USE_DEVICE_RDMA");
    return std::string(provider == nullptr ? "" : provider) + " " + (rdma == nullptr ? "" : rdma);
  };
  EXPECT_EQ(use("ml.p6-b200.48xlarge"), " ") << "the container has no devices";
  std::filesystem::create_directories(root_ / "dev/infiniband");
  WriteFile(root_ / "dev/infiniband/uverbs0", "");
  EXPECT_EQ(use("ml.p6-b200.48xlarge"), "efa 1");
  EXPECT_EQ(use("ml.p5en.48xlarge"), "efa 1");
  EXPECT_EQ(use("ml.g5.48xlarge"), "efa ") << "libfabric would end the process";
  EXPECT_EQ(use(""), "efa ");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "lo");
  ::unsetenv("RIDGELINE_NNODES");
  ::setenv("FI_PROVIDER", "tcp", 1);
  UseSageMakerNodes(root_.path());
  EXPECT_STREQ(std::getenv("FI_PROVIDER"), "tcp") << "what the sweep sets stays";
}

TEST_F(SageMakerNode, TellsItsFailureInFewCharacters) {
  WriteSageMakerFailure(std::string(2000, 'x'), root_.path());
  EXPECT_EQ(ReadFile(root_ / "opt/ml/output/failure"), std::string(1024, 'x'));
}

TEST_F(SageMakerNode, RemovesOnlyTheStateThatNobodyNamed) {
  EXPECT_EQ(SageMakerCheckpointDir("p", Dir() / "p", root_.path()), Dir() / "p");
  EXPECT_EQ(SageMakerCheckpointDir("p", "/mine", root_.path()), "");
}

TEST_F(SageMakerNode, KnowsWhenItsPlanEnds) {
  EXPECT_EQ(SageMakerPlanEndUnixS(), 0);
  ::setenv("SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP", "1700000000123", 1);
  EXPECT_EQ(SageMakerPlanEndUnixS(), 1700000000);
  ::setenv("SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP", "soon", 1);
  EXPECT_EQ(SageMakerPlanEndUnixS(), 0);
}

}  // namespace
}  // namespace ridgeline
