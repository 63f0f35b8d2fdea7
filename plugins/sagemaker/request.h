// Turns jobs into CreateTrainingJob requests and the objects that they read. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/failure.h"
#include "sagemaker/config.h"

namespace ridgeline::sagemaker {

// The variable of a job's Environment that holds the hash of all that it runs.
inline constexpr const char* kHashVariable = "RIDGELINE_JOB_HASH";

struct TrainingJob {
  std::string name;
  std::string prefix;        // begins the names of all jobs of the sweep
  std::string hash;          // of the request and the job file
  plugin::Json request;      // of CreateTrainingJob
  std::string job_file;      // the content of job.json
  std::string job_file_uri;  // "s3://…/job.json"
  std::string secret_uri;    // of the ranks' secret; empty: one node needs none
  std::string lines_uri;     // the prefix of the files in which nodes report (ridgeline exec --lines)
  std::string output_uri;    // of what is uploaded at the end, output.tar.gz
};

// Names of the sweep's jobs begin so: "sweep-rl-". `key` may shorten it, since a name has at most 63 characters.
std::string PrefixOf(const std::string& sweep, const std::string& key);

// `job`: from a launcher's request. `options`: OptionsOf the job. Throws Failure if the service would refuse it.
TrainingJob MakeTrainingJob(const plugin::Json& job, std::string_view job_file, const Options& options);

// The seconds after which SageMaker ends a job.
int64_t MaxRunS(const plugin::Json& job, const Options& options);

}  // namespace ridgeline::sagemaker
