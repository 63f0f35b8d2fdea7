// A job as in a launcher's request.
#pragma once

#include <string>

#include "common/failure.h"

namespace ridgeline::slurm {

inline plugin::Json Job(const std::string& key, const plugin::Json& more = plugin::Json::object()) {
  plugin::Json job = {
      {"key", key}, {"sweep", "a sweep"}, {"exec", {"/bin/true", "exec", "/jobs/" + key + "/job.json"}}};
  job.update(more);
  return job;
}

}  // namespace ridgeline::slurm
