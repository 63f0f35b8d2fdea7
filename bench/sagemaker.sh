#!/usr/bin/env bash
# Turns what docs/sagemaker.md assumes of AWS into facts, where that is cheap: four small sweeps on ml.m5.large. One point
# waits two minutes, so that you see when its files are copied; one is on two nodes; one fails; and two are on a spot
# instance. About ten minutes and a dollar at most. Prints what was seen beside what is assumed. It creates training jobs,
# objects below OUTPUT and log lines, and deletes nothing. Nobody has run it yet.
#   bench/sagemaker.sh BUILD_DIR ROLE_ARN IMAGE s3://BUCKET/PREFIX [INSTANCE_TYPE]
# IMAGE is the target `sagemaker` of plugins/kubernetes/deploy/Containerfile, in ECR. Credentials and the region are those
# of the AWS command line.
set -euo pipefail
[ $# -ge 4 ] || {
  sed -n '2,9s/^# //p' "$0" >&2
  exit 2
}
build=$(cd "$1" && pwd)
role=$2 image=$3 output=$4 type=${5:-ml.m5.large}
work=$(mktemp -d)
echo "everything is in $work; remove it when you have read it"
stamp=$(date +%s) # of the names of the sweeps
cd "$work"

# sweep NAME MATRIX MORE_OF_LAUNCH MORE_OF_SAGEMAKER
sweep() {
  cat >"$1.yaml" <<YAML
name: $1-$stamp
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

# jobs_of NAME: the sweep's training jobs, the newest first
jobs_of() {
  aws sagemaker list-training-jobs --name-contains "$1-$stamp-rl-" --sort-by CreationTime --sort-order Descending \
    --query 'TrainingJobSummaries[].TrainingJobName' --output text
}

slow="for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo waits \$i; sleep 10; done; exec \"\$@\""
sweep one "seed: [1]" "trainer: [/bin/sh, -c, '$slow', run, ridgeline-train]" "" &
driver=$!
while kill -0 $driver 2>/dev/null; do
  sleep 20
  for name in $(jobs_of one); do
    echo "-- $(date +%T): files of $name"
    aws s3 ls --recursive "$output/$name/" || true
  done
done
wait $driver
echo "assumed: below checkpoints/, files appear while the job trains, and log.txt grows every 10 s"
echo "assumed: ok, by the log; transitions Starting, Downloading, Training, Uploading, Completed"
sweep nodes "ranks: [2]" "" ", nodes: 2"
echo "assumed: ok; hosts are algo-1 and algo-2"
sweep failed "seed: [1]" "trainer: [/nonexistent]" ""
echo "assumed: infrastructure (start), FailureReason AlgorithmError with exit code 4 or a result of exec"
sweep spot "seed: [1, 2]" "bundle: 2" ", spot: true"
echo "assumed: ok; spot_savings_percent is there"
name=$(jobs_of one)
echo
echo "== files of $name (assumed: job/job.json, checkpoints/lines.node0.log, output/output.tar.gz)"
aws s3 ls --recursive "$output/$name/"
echo "== its states (assumed: those above, each with a message)"
aws sagemaker describe-training-job --training-job-name "$name" --output text \
  --query 'SecondaryStatusTransitions[].[StartTime,Status,StatusMessage]'
echo "== its lines (assumed: the quoted pattern finds lines that begin with ridgeline:)"
aws logs filter-log-events --log-group-name /aws/sagemaker/TrainingJobs --log-stream-name-prefix "$name/" \
  --filter-pattern '"ridgeline:"' --query 'events[:5].message' --output text | cut -c 1-200 || true
echo "== the job that failed (assumed: AlgorithmError, exit code: N; output.tar.gz is there)"
name=$(jobs_of failed)
aws sagemaker describe-training-job --training-job-name "$name" --query FailureReason --output text || true
aws s3 ls --recursive "$output/$name/" || true
echo "== an unknown job (assumed: ValidationException, Requested resource not found)"
aws sagemaker describe-training-job --training-job-name ridgeline-unknown 2>&1 || true
