// The kinds of object that a job becomes. All have the same pods. A kind's controller makes them from the template, and
// reports the end in conditions. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace ridgeline::kubernetes {

inline constexpr const char* kContainer = "ridgeline";  // ours, as settings and patches call it
inline constexpr const char* kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

// An event that says why no pod can be made.
struct RefusalEvent {
  const char* kind = nullptr;    // of the object that it is about; null: there is no such event
  const char* reason = nullptr;  // of the event
};

struct Kind {
  const char* setting;      // `kind:` in a sweep
  const char* name;         // as in manifests and messages
  const char* api_version;  // "batch/v1"
  const char* plural;       // as in paths and rights
  // Our container as its pods have it. Settings and patches call it kContainer for every kind.
  const char* container;
  // What stands between the job's name and a pod's index in the pod's name.
  const char* infix;
  // The pod's field that has its index: an annotation, or a label.
  const char* index;
  bool index_is_label;
  bool makes_service;  // its controller makes the headless Service of the job's name
  bool has_hostnames;  // a gang's pods have host names of their own: the job's, the infix, the index
  // JSON pointers into the object; null: it has no such field.
  const char* suspend;
  const char* deadline;
  const char* pods;
  const char* ttl;
  const char* complete;         // the condition of a good end; that of a bad end is "Failed"
  const char* deadline_reason;  // the reason of a bad end by the deadline; null: conditions do not show it
  std::array<RefusalEvent, 3> refusals;
  plugin::Json (*wrap)(plugin::Json job, const std::string& runtime);  // see Make

  // Makes the object of a batch/v1 Job. `runtime` is that of a TrainJob: NAME, or TrainingRuntime/NAME in the
  // namespace. Throws Failure if the kind cannot say what the Job says.
  plugin::Json Make(plugin::Json job, const std::string& runtime) const;

  std::string group() const;  // "batch"
  // The path of its objects in a namespace.
  std::string Path(const std::string& name_space) const;
  // The address of rank 0, which the pods of a gang look up.
  std::string RankZero(const std::string& job) const;
};

// A runtime of Kubeflow Trainer, which is a JobSet's template.
struct Runtime {
  std::string kind, name;
  // Returns its path in the API.
  std::string Path(const std::string& name_space) const;
};
// Parses the setting `runtime:`.
Runtime ParseRuntime(const std::string& text);
// Returns why a runtime cannot be used: it would start failed pods again. Empty if it can.
std::string WhyNot(const plugin::Json& runtime);

// The kinds, beginning with the default, Kubernetes' own Job.
const std::array<Kind, 4>& Kinds();
// Returns the default.
const Kind& JobKind();
// Returns nullptr if there is no such kind.
const Kind* FindKind(std::string_view setting);

}  // namespace ridgeline::kubernetes
