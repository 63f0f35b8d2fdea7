// Jobs to manifests: pure, and what a person would `kubectl create` by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "kubernetes/config.h"

namespace ridgeline::kubernetes {

inline constexpr const char* kContainer = "ridgeline";
inline constexpr int kMasterPort = 29500;  // where the ranks of a gang meet
inline constexpr const char* kHashAnnotation = "ridgeline.dev/spec-hash";
inline constexpr const char* kStoreLabel = "ridgeline.dev/store";
inline constexpr const char* kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

// One job of a launcher request. A Job of the same name, plain on one node; on several an Indexed one, whose pods find
// each other by a headless Service.
struct Manifests {
  std::string name;
  std::string file_name;             // of what a person submits: without .yaml
  std::string asks;                  // its memory, in words; empty: it asks for none
  std::string hash;                  // of all that it runs, wherever; in the Job's annotation kHashAnnotation
  plugin::Json job;                  // batch/v1 Job
  std::vector<plugin::Json> others;  // the ConfigMaps that hold the job file in parts, the Service, the Secret
};

// `job` as a launcher request has it, `job_file` that file's text. `store` marks the Jobs of one state folder; empty
// for what a person submits. `secret`: by which ranks on several nodes know each other, of this Job alone (NewSecret);
// their pods share no folder, so it comes to them as a file of a Secret. Throws Failure where the settings and the job
// make no sound manifest (lint.h).
Manifests MakeManifests(const plugin::Json& job, std::string_view job_file, const Options& options,
                        const std::string& store, const std::string& secret);

// 32 random bytes in hexadecimal. Throws Failure.
std::string NewSecret();

// The command that brings the results of such jobs, which are all of one sweep, into DIR; empty where their folders are
// on a volume that this machine has.
std::string FetchCommand(const std::vector<Manifests>& all, const Options& options);

// Every object of these in YAML, and the list of their files as kustomize reads it: {name, content} each.
plugin::Json ManifestFiles(const std::vector<Manifests>& all);

}  // namespace ridgeline::kubernetes
