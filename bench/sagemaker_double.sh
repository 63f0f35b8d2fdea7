#!/usr/bin/env bash
# Runs jobs that do nothing on the double of SageMaker, with the rates that it assumes of AWS. Prints the time, the calls
# a job, the most calls of an operation in any one second, the seconds from a job's end to its stored result, the driver's
# processor time, and whether each point has exactly one result. Then as many jobs run for three minutes, and it prints
# the driver's processor time in one minute of them. Needs root and python3-botocore.
#   bench/sagemaker_double.sh BUILD_DIR [JOBS [POLL_PAUSE]]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
jobs=${2:-200} pause=${3:-10s}
double=$here/../tests/cluster/sagemaker/sagemaker-double
role=arn:aws:iam::123456789012:role/SageMaker
image=123456789012.dkr.ecr.us-west-2.amazonaws.com/worker@sha256:aa

[ "$(id -u)" -eq 0 ] || {
  echo "skipped: the double's containers need root" >&2
  exit 0
}
work=$(mktemp -d)
service=
finish() {
  [ -z "$service" ] || kill "$service" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
cat >"$work/images.json" <<JSON
{"$image": {"entrypoint": ["ridgeline"], "environment": {"PATH": "$build/bin:/usr/bin:/bin"}}}
JSON
"$double" --root "$work/root" --images "$work/images.json" --port-file "$work/port" --role $role --with-parent &
service=$!
until [ -e "$work/port" ]; do sleep 0.1; done
"$double" --tell "$(cat "$work/port")" '{"buckets": ["bench"]}' >/dev/null
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$work/port")
export AWS_ENDPOINT_URL AWS_REGION=us-west-2
export AWS_ACCESS_KEY_ID=AKIDOUBLE AWS_SECRET_ACCESS_KEY=secret
# sweep NAME TRAINER
sweep() {
  cat <<YAML
name: $1
defaults: {model: gpt-10m, seq_length: 64}
matrix: {seed: 1..$jobs+1}
launch:
  launcher: sagemaker
  cpus: 1
  time_limit: 5m
  max_parallel: $jobs
  trainer: $2
  sagemaker: {role: "$role", image: "$image", instance_type: ml.m5.large, output: "s3://bench/sweeps", poll_pause: $pause}
YAML
}
trainer=$build/tests/fakes/fake_trainer
sweep many "[\"$trainer\", ok]" >"$work/many.yaml"
# shellcheck disable=SC2016 # the jobs' shells expand it
sweep running "[/bin/sh, -c, 'sleep 180; exec \"\$@\"', run, \"$trainer\", ok]" >"$work/running.yaml"
cd "$work"
export TIMEFORMAT='%R s from start to the last result, of which the driver computed %U s, and %S s in the kernel'
time "$build/bin/ridgeline" run many.yaml >said 2>&1
tail -n 1 said
"$build/bin/ridgeline" query -o csv "SELECT ended_unix_ns / 1e9 - (evidence ->> '$.ended_unix_s') AS s FROM jobs" >late.csv
python3 - "$jobs" root/requests.jsonl late.csv <<'PYTHON'
import collections
import csv
import json
import statistics
import sys

calls = [json.loads(line) for line in open(sys.argv[2], encoding='utf-8')]
count = collections.Counter(call['op'] for call in calls)
print(f'{len(calls) / int(sys.argv[1]):.2f} calls a job: ' + ', '.join(f'{op} {n}' for op, n in count.most_common()))
print('refused for their rate:', sum(call['status'] in (400, 503) for call in calls))
created = [call['at'] for call in calls if call['op'] == 'sagemaker:CreateTrainingJob' and call['status'] == 200]
print(f'created within {created[-1] - created[0]:.1f} s')
in_second = collections.Counter((call['op'], int(call['at'])) for call in calls)
rates = {'sagemaker:ListTrainingJobs': '2, as AWS has it', 'sagemaker:CreateTrainingJob': '5, assumed',
         'sagemaker:DescribeTrainingJob': '10, assumed', 'logs:FilterLogEvents': '10, assumed'}
print('most calls in any one second, with those that were refused:')
for op in count:
    most = max(n for (name, _), n in in_second.items() if name == op)
    print(f'  {op} {most}' + (f' (the rate is {rates[op]})' if op in rates else ''))
with open(sys.argv[3], encoding='utf-8') as file:
    late = [float(row['s']) for row in csv.DictReader(file)]
# SageMaker's times are whole seconds here, so each of these is up to 1 s too long.
print(f'from a job\'s end to its stored result: {statistics.median(late):.1f} s (median), {max(late):.1f} s (worst), '
      f'of {len(late)} jobs')
PYTHON
"$build/bin/ridgeline" query "SELECT count(*) AS results, count(DISTINCT point_id) AS points FROM results WHERE status = 'ok'"

# processor_ms PID: the processor time that a process has taken, in ms.
processor_ms() {
  local fields
  read -ra fields <"/proc/$1/stat"
  echo $(((fields[13] + fields[14]) * 1000 / $(getconf CLK_TCK)))
}
"$build/bin/ridgeline" run running.yaml >said 2>&1 &
driver=$!
running=0
until [ "$running" -eq "$jobs" ]; do
  sleep 1
  running=$(pgrep -c -f '^sleep 180$' || true)
  kill -0 "$driver" # it must not end before all run
done
before=$(processor_ms $driver)
sleep 60
after=$(processor_ms $driver)
[ "$(pgrep -c -f '^sleep 180$')" -eq "$jobs" ] || echo "not all jobs ran in this minute"
awk -v ms=$((after - before)) -v jobs="$jobs" \
  'BEGIN { printf "while %d jobs run, the driver takes %.2f %% of a core\n", jobs, ms / 600 }'
wait $driver
tail -n 1 said
