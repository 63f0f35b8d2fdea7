#include "run/job.h"

#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/amount.h"
#include "ridgeline/json_fault.h"
#include "ridgeline/limits.h"
#include "ridgeline/sealed_json.h"
#include "run/measurement.h"
#include "run/spec.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

// Small enough that products do not overflow. The launcher and the node check what they have.
constexpr int64_t kLargestCount = 1'000'000'000;

int64_t WholeOf(const Json& from, const char* name, int64_t least, int64_t most, const std::string& source) {
  const Json& value = from.at(name);
  if (!value.is_number_integer() || value < least || value > most) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: not a job file: {} is {}, and must be an integer from {} to {}", source, name,
                            DumpJson(value), least, most));
  }
  return value.get<int64_t>();
}

}  // namespace

fs::path JobFile(const Job& job) { return JobFile(job.job_dir); }

bool IsOurTrainer(const std::vector<std::string>& trainer) {
  return trainer.empty() || fs::path(trainer.front()).filename() == "ridgeline-train";
}

int64_t MeetLimitS(const Job& job, const JobPoint& point) {
  if (!HasSeveralProcesses(point.spec)) return 0;
  if (job.meet_limit_s > 0) return job.meet_limit_s;
  return IsOurTrainer(job) ? kUsualMeetLimitS : 0;
}

bool AskForTheSame(const Job& a, const Job& b) {
  const auto asked = [](const Job& job) {
    return std::tie(job.sweep, job.trainer, job.definition, job.nodes, job.cpus, job.gpus, job.memory_limit_bytes,
                    job.meet_limit_s, job.save_time_s, job.keep_logs, job.environment, job.config);
  };
  return asked(a) == asked(b);
}

RunSpec SpecOfRun(const JobPoint& point) {
  RunSpec spec = point.spec;
  if (point.repeat > 0) spec.repeats = 1;
  if (point.repeat > 1 && !spec.checkpoint_dir.empty()) {
    spec.checkpoint_dir = fs::path(spec.checkpoint_dir) / fmt::format("repeat-{}", point.repeat);
  }
  return spec;
}

void MoveJob(Job& job, const fs::path& job_dir) {
  // The folder of a sweep. Its jobs/KEY are the jobs' folders.
  const fs::path from = job.job_dir.parent_path().parent_path();
  const fs::path to = job_dir.parent_path().parent_path();
  for (JobPoint& point : job.points) {
    fs::path dir = point.spec.checkpoint_dir;
    if (dir.is_relative()) continue;  // inside the job's folder, or none
    const fs::path inside = dir.lexically_relative(from);
    if (!inside.empty() && *inside.begin() != "..") point.spec.checkpoint_dir = to / inside;
  }
  job.job_dir = job_dir;
}

Json EncodeJob(const Job& job) {
  Json points = Json::array();
  for (const JobPoint& point : job.points) {
    points.push_back({{"id", point.id},
                      {"spec", ParseJson(EncodeSpec(point.spec), "the spec of point " + point.id)},
                      {"time_limit_s", point.time_limit_s},
                      {"repeat", point.repeat}});
  }
  Json document = {{"version", kJobVersion},
                   {"key", job.key},
                   {"sweep", job.sweep},
                   {"campaign", job.campaign},
                   {"launcher", job.launcher},
                   {"created_unix_ns", job.created_unix_ns},
                   {"setup", job.setup},
                   {"job_dir", job.job_dir.string()},
                   {"trainer", job.trainer},
                   {"nodes", job.nodes},
                   {"cpus", job.cpus},
                   {"gpus", job.gpus},
                   {"memory_limit_bytes", job.memory_limit_bytes},
                   {"meet_limit_s", job.meet_limit_s},
                   {"save_time_s", job.save_time_s},
                   {"keep_logs", job.keep_logs},
                   {"environment", job.environment},
                   {"config", job.config},
                   {"points", points}};
  if (!job.definition.empty()) document["definition"] = job.definition;
  return document;
}

std::string JobText(const Job& job) { return SealedText(EncodeJob(job)); }

Job DecodeJob(const Json& document, const std::string& source) {
  if (!document.is_object() || document.value("version", Json()) != kJobVersion) {
    throw Error(ErrorKind::kInvalidInput, source + ": not a job file of version " + std::to_string(kJobVersion));
  }
  if (!IsWhole(document)) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} {}", source, kNotWhole),
                fmt::format("if you change it, remove `{}`", kChecksumKey));
  }
  try {
    Job job;
    document.at("key").get_to(job.key);
    document.at("sweep").get_to(job.sweep);
    document.at("campaign").get_to(job.campaign);
    document.at("launcher").get_to(job.launcher);
    document.at("created_unix_ns").get_to(job.created_unix_ns);
    document.at("setup").get_to(job.setup);
    job.definition = document.value("definition", "");
    if (!ParseJson(job.setup, source + ": setup").is_object()) {
      throw Error(ErrorKind::kInvalidInput, source + ": setup is not a setup");
    }
    job.job_dir = document.at("job_dir").get<std::string>();
    document.at("trainer").get_to(job.trainer);
    job.nodes = WholeOf(document, "nodes", 1, kLargestCount, source);
    job.cpus = WholeOf(document, "cpus", 0, kLargestCount, source);
    job.gpus = WholeOf(document, "gpus", 0, kLargestCount, source);
    job.memory_limit_bytes = WholeOf(document, "memory_limit_bytes", 0, kMostBytes, source);
    job.meet_limit_s = WholeOf(document, "meet_limit_s", 0, kMostSeconds, source);
    job.save_time_s = WholeOf(document, "save_time_s", 0, kMostSeconds, source);
    document.at("keep_logs").get_to(job.keep_logs);
    document.at("environment").get_to(job.environment);
    job.config = document.value("config", Json());  // a launcher leaves it out for a node that does not need it
    for (const Json& entry : document.at("points")) {
      JobPoint point;
      entry.at("id").get_to(point.id);
      point.spec = DecodeSpec(entry.at("spec"), source + ": point " + point.id);
      point.time_limit_s = WholeOf(entry, "time_limit_s", 0, kMostSeconds, source);
      point.repeat = WholeOf(entry, "repeat", 0, kLargestCount, source);
      job.points.push_back(std::move(point));
    }
    return job;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not a job file: " + JsonFault(e));
  }
}

std::optional<Job> ReadJobFile(const fs::path& job_dir) {
  const fs::path file = JobFile(job_dir);
  const std::optional<std::string> text = ReadForeignFile(file, kMaxJobFileBytes);
  if (!text) return std::nullopt;
  return DecodeJob(ParseJson(*text, file.string()), file.string());
}

}  // namespace ridgeline
