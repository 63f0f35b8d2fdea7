#include "sagemaker/request.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "common/remote_job.h"
#include "ridgeline/checksum.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr size_t kMostNameBytes = 63;
constexpr size_t kMostSweepBytes = 24;
constexpr int64_t kDayS = 86'400;
constexpr int64_t kStartS = 1'800;                      // beside the points' time: the image's download, exec, its end
constexpr int64_t kMaxWaitBeyondS = int64_t{6} * 3600;  // default of max_wait, beyond the time that the job may run
constexpr int64_t kMostRunS = 28 * kDayS;
constexpr int64_t kDefaultVolumeGb = 30;
constexpr size_t kMostWords = 100;
constexpr size_t kMostWordBytes = 256;

constexpr const char* kJobChannel = "/opt/ml/input/data/job";
constexpr const char* kCheckpoints = "/opt/ml/checkpoints";
constexpr const char* kOutputData = "/opt/ml/output/data";

// Instances with disks of their own take no volume.
bool HasOwnDisks(const std::string& instance_type) {
  constexpr std::array kFamilies = {"ml.p4d.", "ml.p4de.", "ml.p5.", "ml.p5e.", "ml.p5en.", "ml.p6-"};
  return std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](const char* family) { return instance_type.starts_with(family); });
}

// The words of the container's process 1.
Json Entrypoint(const Json& job, const Options& options) {
  plugin::Elsewhere there = {{options.program},
                             fmt::format("{}/job.json", kJobChannel),
                             fmt::format("{}/job", kCheckpoints),
                             "",
                             {kCheckpoints, kOutputData}};
  const std::vector<std::string> words = plugin::ExecThere(job, there);
  if (words.empty()) throw Failure(Failure::Kind::kInvalidInput, "the job has no command");
  if (words.size() > kMostWords) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("the job's command has {} words, and SageMaker takes {}", words.size(), kMostWords));
  }
  for (const std::string& word : words) {
    if (word.size() <= kMostWordBytes) continue;
    throw Failure(
        Failure::Kind::kInvalidInput,
        fmt::format("a word of the job's command has {} bytes, and SageMaker takes {}", word.size(), kMostWordBytes));
  }
  return words;
}

Json Resources(const Options& options) {
  Json resources = {{"InstanceType", options.instance_type}, {"InstanceCount", options.nodes}};
  if (options.volume_gb > 0 || !HasOwnDisks(options.instance_type)) {
    resources["VolumeSizeInGB"] = options.volume_gb > 0 ? options.volume_gb : kDefaultVolumeGb;
    if (!options.kms_key.empty()) resources["VolumeKmsKeyId"] = options.kms_key;
  }
  if (!options.training_plan.empty()) resources["TrainingPlanArn"] = options.training_plan;
  if (options.keep_alive_s > 0) resources["KeepAlivePeriodInSeconds"] = options.keep_alive_s;
  return resources;
}

Json Stopping(const Json& job, const Options& options) {
  const int64_t run_s = MaxRunS(job, options);
  Json stopping = {{"MaxRuntimeInSeconds", run_s}};
  if (!options.spot) return stopping;
  const int64_t wait_s = options.max_wait_s > 0 ? options.max_wait_s : std::min(run_s + kMaxWaitBeyondS, kMostRunS);
  if (wait_s < run_s) {
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("launch: sagemaker: max_wait is {} s, and the job's points may take {} s", wait_s, run_s),
                  "raise max_wait, bundle fewer points, or lower time_limit");
  }
  stopping["MaxWaitTimeInSeconds"] = wait_s;
  return stopping;
}

}  // namespace

int64_t MaxRunS(const Json& job, const Options& options) {
  const auto limit_s = job.value("time_limit_s", int64_t{0});
  if (limit_s > 0) return std::min(limit_s + kStartS, kMostRunS);
  return options.max_run_s > 0 ? options.max_run_s : kDayS;
}

std::string PrefixOf(const std::string& sweep, const std::string& key) {
  std::string label;
  for (const char c : sweep) {
    const bool plain = static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) != 0;
    label += plain ? c : '-';
  }
  label.erase(0, std::min(label.find_first_not_of('-'), label.size()));
  label.resize(std::min({label.size(), kMostSweepBytes, kMostNameBytes - std::min(kMostNameBytes, key.size() + 1)}));
  while (label.ends_with('-')) label.pop_back();
  return (label.empty() ? "" : label + '-') + "rl-";
}

TrainingJob MakeTrainingJob(const Json& job, std::string_view job_file, const Options& options) {
  CheckComplete(options);
  const auto key = job.at("key").get<std::string>();
  TrainingJob made;
  made.prefix = PrefixOf(job.value("sweep", std::string()), key);
  made.name = made.prefix + key.substr(3);
  const std::string at = fmt::format("{}/{}", options.output, made.name);
  made.job_file_uri = at + "/job/job.json";
  made.lines_uri = at + "/checkpoints/lines.";
  made.output_uri = at + "/output/output.tar.gz";
  if (options.nodes > 1) made.secret_uri = at + "/job/ranks.secret";
  // A job whose command reads no job file has a channel all the same, which the service does not take empty.
  made.job_file = plugin::ReadsJobFile(job)
                      ? plugin::JobFileFor(job_file, fmt::format("{}/job", kCheckpoints), kCheckpoints)
                      : "{}\n";

  Json& request = made.request;
  request = {{"TrainingJobName", made.name},
             {"RoleArn", options.role},
             {"AlgorithmSpecification",
              {{"TrainingImage", options.image},
               {"TrainingInputMode", "File"},
               {"ContainerEntrypoint", Entrypoint(job, options)}}},
             {"InputDataConfig", Json::array({{{"ChannelName", "job"},
                                               {"DataSource",
                                                {{"S3DataSource",
                                                  {{"S3DataType", "S3Prefix"},
                                                   {"S3Uri", at + "/job/"},
                                                   {"S3DataDistributionType", "FullyReplicated"}}}}}}})},
             {"CheckpointConfig", {{"S3Uri", at + "/checkpoints"}}},
             {"OutputDataConfig", {{"S3OutputPath", options.output}}},
             {"ResourceConfig", Resources(options)},
             {"StoppingCondition", Stopping(job, options)},
             // SageMaker's profiler would run beside the trainer.
             {"ProfilerConfig", {{"DisableProfiler", true}}},
             {"Environment", options.env}};
  if (!options.kms_key.empty()) request["OutputDataConfig"]["KmsKeyId"] = options.kms_key;
  if (options.spot) request["EnableManagedSpotTraining"] = true;
  if (options.encrypt_traffic) request["EnableInterContainerTrafficEncryption"] = true;
  if (options.network_isolation) request["EnableNetworkIsolation"] = true;
  if (!options.subnets.empty()) {
    request["VpcConfig"] = {{"Subnets", options.subnets}, {"SecurityGroupIds", options.security_group_ids}};
  }
  for (const auto& [name, value] : options.tags) request["Tags"].push_back({{"Key", name}, {"Value", value}});
  if (!made.secret_uri.empty()) {
    request["Environment"]["RIDGELINE_SECRET_FILE"] = fmt::format("{}/ranks.secret", kJobChannel);
  }
  if (!options.request.is_null()) request.merge_patch(options.request);
  made.hash = Checksum(request.dump() + made.job_file);
  request["Environment"][kHashVariable] = made.hash;
  return made;
}

}  // namespace ridgeline::sagemaker
