#include "sagemaker/journal.h"

namespace ridgeline::sagemaker {

plugin::Json Encode(const Record& record) {
  return {{"key", record.key},
          {"name", record.name},
          {"prefix", record.prefix},
          {"hash", record.hash},
          {"lines_uri", record.lines_uri},
          {"output_uri", record.output_uri},
          {"arn", record.arn},
          {"job_dir", record.job_dir},
          {"points", record.points},
          {"time_limit_s", record.time_limit_s},
          {"created_unix_s", record.created_unix_s},
          {"cancelled", record.cancelled},
          {"ended", record.ended},
          {"evidence", record.evidence},
          {"started_unix_s", record.started_unix_s}};
}

Record Decode(const plugin::Json& document) {
  Record record;
  document.at("key").get_to(record.key);
  document.at("name").get_to(record.name);
  document.at("prefix").get_to(record.prefix);
  document.at("hash").get_to(record.hash);
  document.at("lines_uri").get_to(record.lines_uri);
  document.at("output_uri").get_to(record.output_uri);
  document.at("arn").get_to(record.arn);
  document.at("job_dir").get_to(record.job_dir);
  document.at("points").get_to(record.points);
  document.at("time_limit_s").get_to(record.time_limit_s);
  document.at("created_unix_s").get_to(record.created_unix_s);
  document.at("cancelled").get_to(record.cancelled);
  document.at("ended").get_to(record.ended);
  document.at("evidence").get_to(record.evidence);
  document.at("started_unix_s").get_to(record.started_unix_s);
  return record;
}

Journal::Journal(const std::filesystem::path& state_dir)
    : JobRecords(state_dir / "jobs", "it is of a training job: stop that in SageMaker, then remove the file") {}

}  // namespace ridgeline::sagemaker
