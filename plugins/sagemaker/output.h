// What jobs leave in S3: the lines in which their nodes report, copied while they run, and packed at their end.
#pragma once

#include <string>
#include <string_view>

#include "common/remote_job.h"
#include "sagemaker/aws.h"
#include "sagemaker/journal.h"

namespace ridgeline::sagemaker {

// Hands over the lines of a text, without their ends. Lines that are too long are skipped.
void TakeLines(std::string_view text, plugin::JobOutput& to);

// The lines files (lines.node0.log, …) of an output.tar.gz, one after another. Throws Failure if it is damaged, or
// holds more than any job's output.
std::string LinesOfArchive(std::string_view archive);

// Takes what the job has copied into its checkpoints' prefix. Throws Failure if S3 does not let us, or does not answer.
void TakeCopies(const Record& record, Aws& aws, plugin::JobOutput& to);

// Takes what was uploaded at the job's end, if anything was. Throws Failure as TakeCopies does.
void TakeArchive(const Record& record, Aws& aws, plugin::JobOutput& to);

}  // namespace ridgeline::sagemaker
