// What a job asks for, as its launcher reads its own settings (include/ridgeline/launcher.h, describe).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace ridgeline::plugin {

// What a launcher is asked about.
struct JobToDescribe {
  Json own = Json::object();  // the launcher's own mapping of `launch:`; empty if that is no mapping
  bool own_trainer = false;   // it runs ridgeline-train
  std::string trainer;        // else the name of the trainer's definition, if it has one
  bool has_time_limit = false;
  int64_t time_limit_s = 0;  // 0: none, or not known yet
  int64_t nodes = 1;
  std::string node;  // the node to keep the job on; empty: none
};

struct GpusAsked {
  std::string setting;     // the setting that asks, or, if none does, the one that would
  std::string asked = {};  // in words; empty: nothing asks
  std::string kind = {};   // empty: any
  int64_t count = 0;       // of a node; 0: not known, or none
};

// What a job is billed for.
struct Billed {
  int64_t nodes = 1;   // machines that are billed
  int64_t most_s = 0;  // the most seconds for which each is billed, with the time that it is kept afterwards
};

struct Description {
  bool here = false;
  bool has_srun = false;
  std::optional<GpusAsked> gpus = {};  // nothing: jobs have whatever GPUs are there
  int64_t memory_bytes = 0;            // of a node
  std::optional<Billed> billed = {};   // nothing: jobs are not billed by their time, or it has no limit
  std::string secrets = {};
  std::vector<std::string> warnings = {};
  std::optional<Json> pin = {};  // what to merge into the own mapping; nothing: it cannot keep jobs on a node
};
Json ToJson(const Description& answer);

// Describes a job without a session, and contacts nobody. Values that it cannot read count as not given: `open` and
// `render` refuse them.
using Describe = Description (*)(const JobToDescribe& job);

// Reads "8", "h100:8" or "h100" into `kind` and `count`.
void ReadGpus(std::string_view text, GpusAsked& asked);

// Reads the setting `gpus` of the launcher's own mapping, a number or "h100:8". Asks for nothing if there is none.
GpusAsked ReadGpusSetting(const Json& own, const std::string& launcher);

// Reads a setting such as `memory`: "64GB" and "64GiB", as everywhere, and "64G" and "64Gi", as Kubernetes writes them.
// Returns 0 if it is not there, or cannot be read.
int64_t BytesOfSetting(const Json& own, const char* name);

}  // namespace ridgeline::plugin
