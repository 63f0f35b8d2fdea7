// The settings for SageMaker under a sweep's `launch:`. They are named as in SageMaker's SDK.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/failure.h"

namespace ridgeline::sagemaker {

// Empty or 0 means "not given".
struct Options {
  std::string region, aws_profile;  // empty: as the AWS command line finds them

  std::string role;  // ARN of the role that jobs run as
  std::string image;
  std::string program = "ridgeline";  // path in the image
  std::string instance_type;
  int64_t nodes = 0;  // instances of a job, instead of what the jobs ask for
  int64_t volume_gb = 0;
  std::string training_plan;  // ARN
  bool spot = false;
  int64_t max_wait_s = 0;  // with spot: from creation to the end, over all attempts
  int64_t max_run_s = 0;   // for jobs without a time limit
  int64_t keep_alive_s = 0;

  std::string output;  // "s3://bucket/prefix", without a slash at the end
  std::string kms_key;
  std::vector<std::string> subnets, security_group_ids;
  std::map<std::string, std::string> tags, env;
  bool encrypt_traffic = false, network_isolation = false;
  plugin::Json request;  // is merged into each CreateTrainingJob request (RFC 7396); null: none

  int64_t poll_pause_s = 10;
  int64_t window = 0;  // most jobs at once; 0: kDefaultWindow
};

// Quotas of new accounts are lower. A job over the quota waits in the driver.
inline constexpr int64_t kDefaultWindow = 100;

int64_t Window(const Options& options);

// `config` is the sweep's `launch:` mapping. Throws Failure that names the setting and what it must be.
Options ReadOptions(const plugin::Json& config);

// Returns the options of a job: the session's, or those of its own `config`. Throws Failure as ReadOptions does, and if
// the job would go to another region or account, or put its files elsewhere.
Options OptionsOf(const plugin::Json& job, const Options& session);

// Throws Failure if a setting that every job needs is missing.
void CheckComplete(const Options& options);

}  // namespace ridgeline::sagemaker
