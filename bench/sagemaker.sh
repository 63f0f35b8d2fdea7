#!/usr/bin/env bash
# Turns what docs/sagemaker.md assumes of AWS into facts, where that is cheap: four small points on ml.m5.large, on demand
# and on two nodes, one that fails, and one without the log. About ten minutes and a dollar at most. Prints what was seen
# beside what is assumed. It creates training jobs, objects below OUTPUT and log lines, and deletes nothing.
#   bench/sagemaker.sh BUILD_DIR ROLE_ARN IMAGE s3://BUCKET/PREFIX [INSTANCE_TYPE]
# IMAGE is the target `sagemaker` of plugins/kubernetes/deploy/Containerfile, in ECR. Credentials and the region are those
# of the AWS command line.
set -euo pipefail
[ $# -ge 4 ] || {
  sed -n '2,8s/^# //p' "$0" >&2
  exit 2
}
build=$(cd "$1" && pwd)
role=$2 image=$3 output=$4 type=${5:-ml.m5.large}
work=$(mktemp -d)
echo "everything is in $work; remove it when you have read it"
cd "$work"

# sweep NAME MATRIX MORE_OF_LAUNCH MORE_OF_SAGEMAKER
sweep() {
  cat >"$1.yaml" <<YAML
name: $1-$(date +%s)
defaults: {family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: 32}
matrix: {$2}
measure: {warmup_steps: 0, steps: 3}
launch:
  launcher: sagemaker
  cpus: 1
  time_limit: 5m
  retry: {start: 0, node: 0}
  $3
  sagemaker: {role: "$role", image: "$image", instance_type: $type, output: "$output"$4}
YAML
  echo
  echo "== $1"
  "$build/bin/ridgeline" run "$1.yaml" --db "$1.db" || echo "exit code $?"
  "$build/bin/ridgeline" query --db "$1.db" "SELECT status, reason, message FROM results" || true
  "$build/bin/ridgeline" query --db "$1.db" "SELECT evidence FROM jobs" || true
}

sweep one "seed: [1]" "" ""
echo "assumed: ok, by the log; transitions Starting, Downloading, Training, Uploading, Completed"
sweep nodes "ranks: [2]" "" ", nodes: 2"
echo "assumed: ok; hosts are algo-1 and algo-2"
sweep failed "seed: [1]" "trainer: [/nonexistent]" ""
echo "assumed: infrastructure (start), FailureReason AlgorithmError with exit code 4 or a result of exec"
sweep spot "seed: [1, 2]" "bundle: 2" ", spot: true"
echo "assumed: ok; spot_savings_percent is there"
name=$(aws sagemaker list-training-jobs --name-contains "one-" --max-results 1 \
  --query 'TrainingJobSummaries[0].TrainingJobName' --output text)
echo
echo "== files of $name (assumed: job/job.json, checkpoints/lines.node0.log, output/output.tar.gz)"
aws s3 ls --recursive "$output/$name/"
echo "== an unknown job (assumed: ValidationException, Requested resource not found)"
aws sagemaker describe-training-job --training-job-name ridgeline-unknown 2>&1 || true
