// The conformance suite for the SageMaker launcher on a double of the service.
#include "tests/plugins/conformance.h"

#include "tests/cluster/sagemaker/service.h"

namespace ridgeline::testing {
namespace {

Candidate OnADouble() {
  Candidate candidate;
  candidate.label = "SageMaker";
  candidate.launcher = "sagemaker";
  candidate.plugin_dir = RIDGELINE_PLUGIN_DIR;
  // The suite's jobs are shell scripts that write into a folder of this machine.
  candidate.config = {{"sagemaker", SageMakerSettings({{"program", "/bin/sh"}})}};
  candidate.bad_exec = {};
  candidate.skip = WhyNoSageMaker();
  candidate.world = []() -> std::shared_ptr<void> {
    // A shell as process 1 ignores SIGTERM, and has 120 s by the service's clock.
    auto service = std::make_shared<SageMaker>(std::vector<std::string>{"--speed", "60"});
    // Each poll of the suite is a new driver, without a pause.
    service->Tell({{"rates", {{"sagemaker:ListTrainingJobs", 0}, {"sagemaker:DescribeTrainingJob", 0}}}});
    return service;
  };
  return candidate;
}

INSTANTIATE_TEST_SUITE_P(SageMaker, Conformance, ::testing::Values(OnADouble()), Label);

}  // namespace
}  // namespace ridgeline::testing
