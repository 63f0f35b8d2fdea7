// Turns jobs into manifests, which a person could also `kubectl create`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "kubernetes/config.h"

namespace ridgeline::kubernetes {

inline constexpr int kMasterPort = 29500;  // where the ranks of a gang meet
inline constexpr const char* kHashAnnotation = "ridgeline.dev/spec-hash";
inline constexpr const char* kStoreLabel = "ridgeline.dev/store";

// The manifests of one job of a launcher request. On one node it is a plain Job with the job's name. On several it is
// an Indexed Job, whose pods find each other by a headless Service. Other kinds are made of that Job.
struct Manifests {
  std::string name;
  std::string file_name;  // of what a person submits, without .yaml
  std::string asks;       // the memory that it asks for, in words; empty: it asks for none
  std::string hash;       // hash of all that it runs, wherever it runs; in the Job's annotation kHashAnnotation
  plugin::Json job;       // the object of the sweep's kind
  plugin::Json pod;       // the template of its pods
  // What the job owns: the ConfigMaps that hold the job file in parts, the Service, the Secret, the sweep's `objects:`.
  std::vector<plugin::Json> others;
};

// `job` as in a launcher request, `job_file` the text of that file. `store` marks the Jobs of one state folder; empty
// if a person submits them. `secret`: for this Job alone (plugin::NewSecret), so that ranks on several nodes know each
// other. The pods share no folder, so they get it as a file of a Secret. Throws Failure if the settings and the job do
// not make a sound manifest (lint.h).
Manifests MakeManifests(const plugin::Json& job, std::string_view job_file, const Options& options,
                        const std::string& store, const std::string& secret);

// Returns the command that brings the results of such jobs, which are all of one sweep, into DIR. Empty if their
// folders are on a volume that this machine has.
std::string FetchCommand(const std::vector<Manifests>& all, const Options& options);

// Returns every object in YAML, and the list of their files as kustomize reads it: {name, content} each.
plugin::Json ManifestFiles(const std::vector<Manifests>& all);

}  // namespace ridgeline::kubernetes
