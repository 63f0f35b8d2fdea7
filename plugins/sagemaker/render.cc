#include "sagemaker/render.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"
#include "common/keys.h"
#include "common/remote_job.h"
#include "common/shell.h"
#include "sagemaker/aws.h"
#include "sagemaker/request.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;
using plugin::ShellQuote;

struct Rendered {
  TrainingJob made;
  std::string stem;  // of the names of its files
};

// The options of `aws` that say where and as whom.
std::string AwsOptions(const Options& options) {
  // Older releases of `aws` do not read this variable.
  std::string text = " ${AWS_ENDPOINT_URL:+--endpoint-url} ${AWS_ENDPOINT_URL:+\"$AWS_ENDPOINT_URL\"}";
  if (!options.region.empty()) text += " --region " + options.region;
  if (!options.aws_profile.empty()) text += " --profile " + ShellQuote(options.aws_profile);
  return text;
}

std::string SubmitScript(const std::vector<Rendered>& jobs, const Options& options) {
  std::string text =
      "#!/bin/sh\n"
      "# Puts each job's file into S3 and creates its training job. Prints each command. You may run it again: a job\n"
      "# that exists is left as it is.\n"
      "set -u\n"
      "cd \"$(dirname \"$0\")\"\n"
      "failed=0\n"
      "create() {\n"
      "  said=$(aws" +
      AwsOptions(options) +
      " sagemaker create-training-job --cli-input-json \"file://$1\" 2>&1) && "
      "{ echo \"$said\"; return; }\n"
      "  echo \"$said\" >&2\n"
      "  case $said in *ResourceInUse*) ;; *) failed=1 ;; esac\n"
      "}\n"
      "set -x\n";
  for (const auto& [made, stem] : jobs) {
    const std::string s3 = fmt::format("aws{} s3 cp", AwsOptions(options));
    text += fmt::format("{} {} {}\n", s3, ShellQuote(stem + ".job.json"), made.job_file_uri);
    if (!made.secret_uri.empty()) {
      text += fmt::format("aws{} s3 ls {} || head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' | {} - {}\n",
                          AwsOptions(options), made.secret_uri, s3, made.secret_uri);
    }
    text += fmt::format("create {}\n", ShellQuote(stem + ".request.json"));
  }
  return text + "exit $failed\n";
}

std::string FetchScript(const std::vector<Rendered>& jobs, const Options& options) {
  const std::string prefix = jobs.empty() ? "" : jobs.front().made.prefix;
  return "#!/bin/sh\n"
         "# Fetches what the nodes of all jobs of the sweep have reported so far, whoever submitted them. `ridgeline\n"
         "# collect` reads it from this folder.\n"
         "set -eu\n"
         "cd \"$(dirname \"$0\")\"\n"
         "set -x\n"
         "aws" +
         AwsOptions(options) +
         fmt::format(" s3 cp --recursive --exclude '*' --include '{}*/checkpoints/lines.*' {} fetched\n", prefix,
                     options.output) +
         "set +x\n"
         "for file in fetched/*/checkpoints/lines.*; do\n"
         "  [ -e \"$file\" ] || continue\n"
         "  job=${file#fetched/}\n"
         "  cp \"$file\" \"${job%%/*}.${file##*/}\"\n"
         "done\n";
}

// The same with boto3, which also waits.
std::string PythonScript(const std::vector<Rendered>& jobs, const Options& options) {
  std::string list;
  for (const auto& [made, stem] : jobs) {
    list +=
        fmt::format("    ({}, {}, {}, {}),\n", Json(stem).dump(), Json(made.job_file_uri).dump(),
                    Json(made.secret_uri).dump(), Json(made.lines_uri.substr(0, made.lines_uri.rfind('/') + 1)).dump());
  }
  const auto or_none = [](const std::string& text) { return text.empty() ? std::string("None") : Json(text).dump(); };
  return fmt::format(
      R"(#!/usr/bin/env python3
"""Submits these training jobs, waits for their ends, and fetches what their nodes reported. You may run it again."""
import json
import os
import secrets
import time

import boto3

JOBS = [  # the name of its files, its job file, its ranks' secret, and where it reports
{}]
HERE = os.path.dirname(os.path.abspath(__file__))
session = boto3.Session(region_name={} or os.environ.get('AWS_REGION'), profile_name={})
endpoint = os.environ.get('AWS_ENDPOINT_URL')  # older releases do not read it
sagemaker, s3 = session.client('sagemaker', endpoint_url=endpoint), session.client('s3', endpoint_url=endpoint)


def place(uri):
    bucket, _, key = uri[len('s3://'):].partition('/')
    return bucket, key


def put(uri, body):
    bucket, key = place(uri)
    print('put', uri, flush=True)
    s3.put_object(Bucket=bucket, Key=key, Body=body)


def has(uri):
    bucket, key = place(uri)
    return any(one['Key'] == key for one in s3.list_objects_v2(Bucket=bucket, Prefix=key).get('Contents', []))


def submit(stem, job_file, secret):
    with open(os.path.join(HERE, stem + '.job.json'), 'rb') as file:
        put(job_file, file.read())
    if secret and not has(secret):
        put(secret, secrets.token_hex(32).encode())
    with open(os.path.join(HERE, stem + '.request.json'), encoding='utf-8') as file:
        request = json.load(file)
    name = request['TrainingJobName']
    try:
        sagemaker.create_training_job(**request)
        print('created', name, flush=True)
    except sagemaker.exceptions.ResourceInUse:
        print(name, 'exists already', flush=True)
    return name


def wait(name):
    said = None
    while True:
        job = sagemaker.describe_training_job(TrainingJobName=name)
        state = (job['TrainingJobStatus'], job['SecondaryStatus'], job.get('FailureReason', ''))
        if state != said:
            print(name, *state, flush=True)
            said = state
        if job['TrainingJobStatus'] in ('Completed', 'Failed', 'Stopped'):
            print(name, 'training seconds:', job.get('TrainingTimeInSeconds'), 'billable seconds:',
                  job.get('BillableTimeInSeconds'), flush=True)
            return
        time.sleep(float(os.environ.get('POLL_PAUSE_S', '30')))


def fetch(stem, lines):
    bucket, prefix = place(lines)
    for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix + 'lines.').get('Contents', []):
        to = os.path.join(HERE, stem + '.' + os.path.basename(one['Key']))
        s3.download_file(bucket, one['Key'], to)
        print('fetched', to, flush=True)


names = [submit(stem, job_file, secret) for stem, job_file, secret, _ in JOBS]
for name in names:
    wait(name)
for stem, _, _, lines in JOBS:
    fetch(stem, lines)
)",
      list, or_none(options.region), or_none(options.aws_profile));
}

}  // namespace

plugin::Rendering RenderJobs(const Json& jobs, const Options& options) {
  std::vector<Rendered> all;
  plugin::Rendering rendering{{}, "sh DIR/submit.sh", "sh DIR/fetch.sh"};
  for (const Json& job : jobs) {
    const Options own = OptionsOf(job, options);
    const std::string text = plugin::ReadsJobFile(job)
                                 ? ReadForeignFile(job.at("job_file").get<std::string>(), kMaxJobFileBytes).value_or("")
                                 : "";
    Rendered& made = all.emplace_back(Rendered{MakeTrainingJob(job, text, own), plugin::FileNameOf(job, own.nodes)});
    rendering.files.push_back({made.stem + ".request.json", made.made.request.dump(2) + '\n'});
    rendering.files.push_back({made.stem + ".job.json", made.made.job_file});
  }
  rendering.files.push_back({"submit.sh", SubmitScript(all, options)});
  rendering.files.push_back({"fetch.sh", FetchScript(all, options)});
  rendering.files.push_back({"sweep.py", PythonScript(all, options)});
  return rendering;
}

}  // namespace ridgeline::sagemaker
