// Creates training jobs. Each is created, or found created, exactly once whatever happens: its name is unique for
// years, and a hash of what it runs stands in its Environment.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/clock.h"
#include "sagemaker/aws.h"
#include "sagemaker/config.h"
#include "sagemaker/journal.h"
#include "sagemaker/parse.h"
#include "sagemaker/request.h"

namespace ridgeline::sagemaker {

// Asks about one job. Nothing if SageMaker has none of this name. Throws Failure if it does not say.
std::optional<JobView> Describe(Aws& aws, const std::string& name);

class Submitter {
 public:
  Submitter(Aws& aws, Journal& journal, const plugin::Clock& clock, const Options& options)
      : aws_(aws), journal_(journal), clock_(clock), options_(options) {}

  // Returns one answer for each job, in order. Begins none after `within`, except the first.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs, std::chrono::milliseconds within);

 private:
  std::string SubmitOne(const plugin::Json& job);
  void PutFiles(const TrainingJob& made);
  JobView Adopted(const TrainingJob& made);

  Aws& aws_;
  Journal& journal_;
  const plugin::Clock& clock_;
  const Options& options_;
  // The last refusal for a quota, and until when it stands for all jobs.
  std::optional<plugin::Failure> over_quota_;
  plugin::Clock::Time over_quota_until_;
};

}  // namespace ridgeline::sagemaker
