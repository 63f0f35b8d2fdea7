#include "sagemaker/submit.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "common/remote_job.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr int64_t kPreconditionFailed = 412;

}  // namespace

std::optional<JobView> Describe(Aws& aws, const std::string& name) {
  JobView job;
  const Answer answer = aws.Call("sagemaker:DescribeTrainingJob", {{"TrainingJobName", name}},
                                 [&](const Json& document) { job = ParseJob(document); });
  if (answer.ok()) return job;
  // The service answers so for a job that it does not have, although its documentation names ResourceNotFound.
  const bool unknown = answer.code == "ResourceNotFound" ||
                       (answer.code == "ValidationException" && answer.message.find("not found") != std::string::npos);
  if (unknown) return std::nullopt;
  throw Aws::ToFailure(answer, "look at training job " + name);
}

// SageMaker refuses a channel without objects, so the job file comes first.
void Submitter::PutFiles(const TrainingJob& made) {
  std::map<std::string, std::string> headers;
  if (!options_.kms_key.empty()) {
    headers = {{"x-amz-server-side-encryption", "aws:kms"},
               {"x-amz-server-side-encryption-aws-kms-key-id", options_.kms_key}};
  }
  if (!made.secret_uri.empty()) {
    std::map<std::string, std::string> once = headers;
    once["if-none-match"] = "*";  // nodes of a job that was created already have read it
    const Answer answer = aws_.Put(PlaceOf(made.secret_uri), plugin::NewSecret() + '\n', once);
    if (!answer.ok() && answer.http_code != kPreconditionFailed) {
      throw Aws::ToFailure(answer, "write " + made.secret_uri);
    }
  }
  const Answer answer = aws_.Put(PlaceOf(made.job_file_uri), made.job_file, headers);
  if (!answer.ok()) throw Aws::ToFailure(answer, "write " + made.job_file_uri);
}

// The name is in use: the job is ours if it runs what we want.
JobView Submitter::Adopted(const TrainingJob& made) {
  std::optional<JobView> job = Describe(aws_, made.name);
  if (job && job->hash == made.hash) return *std::move(job);
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("SageMaker has a training job {} already, which {}", made.name,
                            job && !job->hash.empty() ? "runs something else: the sweep's settings have changed since"
                                                      : "Ridgeline did not make"),
                "give the sweep another name or campaign; a name stays taken until somebody deletes the job");
}

std::string Submitter::SubmitOne(const Json& job) {
  const auto key = job.at("key").get<std::string>();
  if (const Record* known = journal_.Find(key); known != nullptr && !known->arn.empty()) return known->arn;
  if (over_quota_ && clock_.Now() < over_quota_until_) throw Failure(*over_quota_);
  const std::string text = plugin::ReadsJobFile(job)
                               ? ReadForeignFile(job.at("job_file").get<std::string>(), kMaxJobFileBytes).value_or("")
                               : "";
  const TrainingJob made = MakeTrainingJob(job, text, OptionsOf(job, options_));
  Record record;
  record.key = key;
  record.name = made.name;
  record.prefix = made.prefix;
  record.hash = made.hash;
  record.lines_uri = made.lines_uri;
  record.output_uri = made.output_uri;
  record.job_dir = job.at("job_dir").get<std::string>();
  record.points = plugin::PointsOf(text);
  record.time_limit_s = job.value("time_limit_s", int64_t{0});
  record.created_unix_s = aws_.UnixS();
  journal_.Write(record);
  PutFiles(made);
  const Answer answer = aws_.Call("sagemaker:CreateTrainingJob", made.request,
                                  [&](const Json& document) { document.at("TrainingJobArn").get_to(record.arn); });
  if (answer.code == "ResourceInUse") {
    const JobView adopted = Adopted(made);
    record.arn = adopted.arn;
    record.created_unix_s = adopted.created_unix_s;
  } else if (!answer.ok()) {
    Failure failure = Aws::ToFailure(answer, "create training job " + made.name);
    if (answer.code == "ResourceLimitExceeded") {
      over_quota_ = failure;
      over_quota_until_ = clock_.Now() + std::chrono::seconds(options_.poll_pause_s);
    }
    throw failure;
  }
  return journal_.Write(std::move(record)).arn;
}

std::vector<plugin::Submission> Submitter::Submit(const Json& jobs, std::chrono::milliseconds within) {
  const plugin::Clock::Time until = clock_.Now() + within;
  std::vector<plugin::Submission> answers;
  bool begun = false;
  for (const Json& job : jobs) {
    plugin::Submission& answer = answers.emplace_back();
    const Record* known = journal_.Find(job.at("key").get<std::string>());
    const bool is_done = known != nullptr && !known->arn.empty();
    if (!is_done && std::exchange(begun, true) && clock_.Now() >= until) {
      answer.later = true;
      continue;
    }
    try {
      answer.native_id = SubmitOne(job);
    } catch (const Error& e) {
      answer.error = Failure::Of(e);
    }
  }
  return answers;
}

}  // namespace ridgeline::sagemaker
