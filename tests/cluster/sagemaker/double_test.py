#!/usr/bin/python3
"""Tests the double of SageMaker with Debian's `aws` and with curl's signatures.

Returns 0 if all pass, 77 if it cannot run.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE, ROLE = '123456789012.dkr.ecr.us-west-2.amazonaws.com/worker@sha256:aa', 'arn:aws:iam::123456789012:role/SageMaker'
SCRIPT = r'''#!/bin/bash
say() { echo "$*"; }
say "args $*"; cat /opt/ml/input/data/job/job.json
say "host $(hostname) $(getent hosts "$(hostname)") of $(getent hosts algo-2)"
if [ -n "$DEAF" ]; then trap '' TERM; else trap 'say "told to stop"; echo saved >/opt/ml/checkpoints/saved; exit 143' TERM; fi
mkdir -p /opt/ml/checkpoints
step=$(cat /opt/ml/checkpoints/step 2>/dev/null || echo 0); say "from step $step"
while [ "$step" -lt "${STEPS:-3}" ]; do step=$((step + 1)); echo "$step" >/opt/ml/checkpoints/step; say "step $step"; sleep 0.2; done
if [ -n "$FAIL" ]; then echo "layer 3 is out of memory" >/opt/ml/output/failure; exit 7; fi
echo done >"/opt/ml/output/data/$(hostname).txt"
'''
failed = []


def expect(what, holds, seen=''):
    print(('ok    ' if holds else 'FAILED ') + what + (f': {str(seen)[:300]}' if not holds else ''), flush=True)
    if not holds:
        failed.append(what)


class Client:
    def __init__(self, port, folder, aws):
        self.url, self.folder, self.aws = f'http://127.0.0.1:{port}', folder, aws
        self.environment = {**os.environ, 'AWS_ACCESS_KEY_ID': 'AKIDOUBLE', 'AWS_SECRET_ACCESS_KEY': 'secret', 'AWS_PAGER': '',
                            'AWS_DEFAULT_REGION': 'us-west-2', 'AWS_MAX_ATTEMPTS': '1', 'AWS_CONFIG_FILE': '/dev/null'}

    def cli(self, *words):
        done = subprocess.run([self.aws, '--endpoint-url', self.url, *words], env=self.environment, cwd=self.folder,
                              capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def double(self, **wish):
        ask = urllib.request.Request(self.url + '/_double', json.dumps(wish).encode())
        return json.load(urllib.request.urlopen(ask, timeout=10))

    def curl(self, service, *words, region='us-west-2', user='AKIDOUBLE:secret'):
        done = subprocess.run(['curl', '-sS', '--max-time', '20', '--user', user, '--aws-sigv4', f'aws:amz:{region}:{service}',
                               *words], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def call(self, operation, request, **how):
        service = 'logs' if operation in ('GetLogEvents', 'FilterLogEvents', 'DescribeLogStreams') else 'sagemaker'
        target = ('Logs_20140328.' if service == 'logs' else 'SageMaker.') + operation
        text = self.curl(service, '-H', 'Content-Type: application/x-amz-json-1.1', '-H', 'X-Amz-Target: ' + target,
                         '--data-binary', json.dumps(request), self.url + '/', **how)
        try:
            return json.loads(text or '{}')
        except ValueError:
            return {'text': text}

    def create(self, name, environment=None, count=1, resources=None, stopping=None, **more):
        return self.call('CreateTrainingJob', request(name, environment, count, resources, stopping, **more))

    def describe(self, name):
        return self.call('DescribeTrainingJob', {'TrainingJobName': name})

    def until(self, name, holds, seconds=60):
        end = time.time() + seconds
        while True:
            seen = self.describe(name)
            if holds(seen) or time.time() > end:
                return seen
            time.sleep(0.1)

    def ended(self, name):
        return self.until(name, lambda seen: seen.get('TrainingJobStatus') in ('Completed', 'Failed', 'Stopped'))

    def began(self, name):
        """Waits until a job's program has reached its first step. From then on the program handles signals."""
        end = time.time() + 60
        while not any(line.startswith('from step') for _, line in self.lines(name)) and time.time() < end:
            time.sleep(0.1)

    def saved_step(self, name):
        """Returns the step of a job's checkpoint in S3, or 0 if there is none."""
        text = self.curl('s3', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', f'{self.url}/bench/checkpoints/{name}/step')
        return int(text) if text.strip().isdigit() else 0

    def lines(self, name):
        found, token = [], None
        while True:
            page = self.call('FilterLogEvents', {'logGroupName': '/aws/sagemaker/TrainingJobs', 'logStreamNamePrefix': name + '/',
                                                 **({'nextToken': token} if token else {})})
            found += [(event['logStreamName'], event['message']) for event in page.get('events', [])]
            token = page.get('nextToken')
            if not token:
                return found


def request(name, environment=None, count=1, resources=None, stopping=None, **more):
    return {'TrainingJobName': name, 'RoleArn': ROLE, 'OutputDataConfig': {'S3OutputPath': 's3://bench/out'},
            'AlgorithmSpecification': {'TrainingImage': IMAGE, 'TrainingInputMode': 'File'},
            'InputDataConfig': [{'ChannelName': 'job', 'DataSource': {'S3DataSource': {
                'S3DataType': 'S3Prefix', 'S3Uri': 's3://bench/in/'}}}],
            'ResourceConfig': {'InstanceType': 'ml.m5.xlarge', 'InstanceCount': count, 'VolumeSizeInGB': 10, **(resources or {})},
            'StoppingCondition': {'MaxRuntimeInSeconds': 3600, **(stopping or {})}, 'Environment': environment or {}, **more}


def checkpoints(name):
    return {'CheckpointConfig': {'S3Uri': f's3://bench/checkpoints/{name}'}}


def life(client):
    expect('sts says who we are', '123456789012' in client.cli('sts', 'get-caller-identity'))
    client.cli('s3', 'mb', 's3://bench')
    with open(os.path.join(client.folder, 'job.json'), 'w', encoding='utf-8') as file:
        file.write('{"points": 1}\n')
    seen = client.cli('s3', 'cp', 'job.json', 's3://bench/in/job.json')
    expect('aws s3 cp puts', 'upload' in seen, seen)
    with open(os.path.join(client.folder, 'life.json'), 'w', encoding='utf-8') as file:
        json.dump(request('rl-life', HyperParameters={'num-layers': '10'}, Tags=[{'Key': 'a', 'Value': 'b'}]), file)
    seen = client.cli('sagemaker', 'create-training-job', '--cli-input-json', 'file://life.json')
    expect('aws creates a job', 'training-job/rl-life' in seen, seen)
    seen = client.cli('sagemaker', 'create-training-job', '--cli-input-json', 'file://life.json')
    expect('a name exists once', 'ResourceInUse' in seen, seen)
    client.ended('rl-life')
    seen = json.loads(client.cli('sagemaker', 'describe-training-job', '--training-job-name', 'rl-life', '--output', 'json'))
    path = [one['Status'] for one in seen['SecondaryStatusTransitions']]
    expect('it passes through all states', path == ['Starting', 'Downloading', 'Training', 'Uploading', 'Completed'], path)
    lines = [line for _, line in client.lines('rl-life')]
    expect('its lines are in the log', {'args train', '{"points": 1}', 'step 3'} <= set(lines), lines)
    seen = client.cli('s3', 'ls', '--recursive', 's3://bench/out/')
    expect('its output is in S3', 'out/rl-life/output/output.tar.gz' in seen, seen)
    seen = client.cli('sagemaker', 'list-training-jobs', '--name-contains', 'rl-', '--output', 'json')
    expect('it is listed', 'rl-life' in seen, seen)
    expect('another name is not found', 'not found' in str(client.describe('rl-other')), client.describe('rl-other'))
    expect('a job that has ended cannot be stopped',
           'ValidationException' in str(client.call('StopTrainingJob', {'TrainingJobName': 'rl-life'})))
    client.call('DeleteTrainingJob', {'TrainingJobName': 'rl-life'})
    expect('the name of a deleted job is free', 'TrainingJobArn' in client.create('rl-life'))


def ends(client):
    client.create('rl-stop', {'STEPS': '500'}, **checkpoints('rl-stop'))
    client.began('rl-stop')
    client.cli('sagemaker', 'stop-training-job', '--training-job-name', 'rl-stop')
    seen = client.ended('rl-stop')
    expect('a stopped job got SIGTERM',
           (seen['TrainingJobStatus'], seen['SecondaryStatus']) == ('Stopped', 'Stopped') and any(
        'told to stop' in line for _, line in client.lines('rl-stop')), seen)
    expect('and its checkpoint is there', 'saved' in client.cli('s3', 'ls', '--recursive', 's3://bench/checkpoints/rl-stop/'))
    client.create('rl-deaf', {'STEPS': '500', 'DEAF': '1'})
    client.began('rl-deaf')
    client.call('StopTrainingJob', {'TrainingJobName': 'rl-deaf'})
    began = time.time()
    expect('a job that ignores SIGTERM is killed after the grace',
           client.ended('rl-deaf')['TrainingJobStatus'] == 'Stopped' and time.time() - began > 1)
    client.create('rl-long', {'STEPS': '500'}, stopping={'MaxRuntimeInSeconds': 60})
    expect('a job that takes too long is MaxRuntimeExceeded',
           client.ended('rl-long')['SecondaryStatus'] == 'MaxRuntimeExceeded')
    client.create('rl-fail', {'FAIL': '1'})
    seen = client.ended('rl-fail')
    expect('a failed job says why',
           seen['FailureReason'] == 'AlgorithmError: layer 3 is out of memory\n, exit code: 7', seen)
    def takes(prefix):
        return {'InputDataConfig': [{'ChannelName': 'job', 'DataSource': {'S3DataSource': {'S3DataType': 'S3Prefix', 'S3Uri': prefix}}}]}
    expect('missing input is refused at once',
           'no S3 objects' in str(client.create('rl-none', **takes('s3://bench/nothing/'))))
    client.double(capacity={'ml.m5.large': 0})
    client.cli('s3', 'cp', 'job.json', 's3://bench/gone/job.json')
    client.create('rl-gone', resources={'InstanceType': 'ml.m5.large'}, **takes('s3://bench/gone/'))
    client.cli('s3', 'rm', 's3://bench/gone/job.json')
    client.double(capacity={'ml.m5.large': 1})
    expect('input that disappears is the client\'s error',
           client.ended('rl-gone').get('FailureReason', '').startswith('ClientError'))
    client.create('rl-broken', {'STEPS': '500'})
    client.until('rl-broken', lambda seen: seen.get('SecondaryStatus') == 'Training')
    client.double(**{'break': {'job': 'rl-broken'}})
    expect('a fault of the platform is InternalServerError',
           client.ended('rl-broken')['FailureReason'].startswith('InternalServerError'))


def spot(client):
    spot = {'EnableManagedSpotTraining': True, 'stopping': {'MaxWaitTimeInSeconds': 7200}}
    client.create('rl-spot', {'STEPS': '60'}, **spot, **checkpoints('rl-spot'))
    def starts():
        return [int(line.split()[-1]) for _, line in client.lines('rl-spot') if line.startswith('from step')]

    for turn in range(2):
        end = time.time() + 60
        while len(starts()) <= turn and time.time() < end:
            time.sleep(0.1)
        # Each attempt saves more than it began with, and only then is interrupted.
        while client.saved_step('rl-spot') <= starts()[turn] and time.time() < end:
            time.sleep(0.1)
        client.double(interrupt={'job': 'rl-spot', 'kill': turn == 1, 'lose_last_sync': turn == 1})
        client.until('rl-spot', lambda seen: [one['Status'] for one in seen['SecondaryStatusTransitions']].count('Interrupted') == turn + 1)
    seen = client.ended('rl-spot')
    lines = client.lines('rl-spot')
    begun = starts()
    expect('after two interruptions it continued', seen['TrainingJobStatus'] == 'Completed' and len(begun) == 3
           and 0 < begun[1] < begun[2], (begun, seen))
    expect('each start has a stream', len({stream for stream, _ in lines}) == 3)
    expect('it was billed less than it took', seen['BillableTimeInSeconds'] < seen['TrainingTimeInSeconds'], seen)
    client.double(capacity={'ml.p5.48xlarge': 0})
    client.create('rl-wait', resources={'InstanceType': 'ml.p5.48xlarge'}, EnableManagedSpotTraining=True,
                  stopping={'MaxRuntimeInSeconds': 30, 'MaxWaitTimeInSeconds': 60})
    seen = client.ended('rl-wait')
    expect('without capacity it is MaxWaitTimeExceeded', seen['SecondaryStatus'] == 'MaxWaitTimeExceeded', seen)
    expect('and is not billed', 'BillableTimeInSeconds' not in seen, seen)


def capacity(client):
    client.create('rl-late', resources={'InstanceType': 'ml.p5.48xlarge'})
    seen = client.until('rl-late', lambda seen: 'nsufficient' in str(seen))
    expect('short of capacity it is Starting', seen['SecondaryStatus'] == 'Starting', seen)
    client.double(capacity={'ml.p5.48xlarge': 1})
    expect('and runs when there is some', client.ended('rl-late')['TrainingJobStatus'] == 'Completed')
    client.double(quota={'ml.p5.48xlarge': 0})
    seen = client.create('rl-quota', resources={'InstanceType': 'ml.p5.48xlarge'})
    expect('a job beyond the quota is refused at once', seen.get('__type') == 'ResourceLimitExceeded', seen)
    client.double(plans={'blackwell': {'status': 'Scheduled', 'type': 'ml.p6-b200.48xlarge', 'instances': 1}})
    plan = {'InstanceType': 'ml.p6-b200.48xlarge', 'TrainingPlanArn': 'arn:aws:sagemaker:us-west-2:123456789012:training-plan/blackwell'}
    client.create('rl-plan-1', resources=plan)
    client.create('rl-plan-2', resources=plan)
    seen = client.until('rl-plan-1', lambda seen: seen['SecondaryStatus'] == 'Pending')
    expect('a job waits for a scheduled plan', seen['SecondaryStatus'] == 'Pending', seen)
    client.double(plans={'blackwell': {'status': 'Active', 'type': 'ml.p6-b200.48xlarge', 'instances': 1}})
    one, two = client.ended('rl-plan-1'), client.ended('rl-plan-2')
    expect('the jobs of a plan run one after another',
           one['TrainingJobStatus'] == two['TrainingJobStatus'] == 'Completed' and (
        max(one['TrainingStartTime'], two['TrainingStartTime']) >= min(one['TrainingEndTime'], two['TrainingEndTime'])), (one, two))


def nodes(client):
    client.create('rl-two', count=2)
    seen, lines = client.ended('rl-two'), [line for _, line in client.lines('rl-two')]
    hosts = [re.findall(r'127\.\S+', line) for line in lines if line.startswith('host')]
    expect('two nodes know each other', seen['TrainingJobStatus'] == 'Completed' and len(hosts) == 2 and hosts[0] != hosts[1], lines)
    client.cli('s3', 'cp', 's3://bench/out/rl-two/output/output.tar.gz', 'two.tar.gz')
    seen = subprocess.run(['tar', 'tzf', os.path.join(client.folder, 'two.tar.gz')], capture_output=True, text=True, check=False).stdout
    expect('their output is in one archive', seen.split() == ['algo-1.txt', 'algo-2.txt'], seen)


def trouble(client):
    def fault(operation, **what):
        client.double(faults=[{'op': operation, **what}])
    fault('sagemaker:CreateTrainingJob', do='drop_after')
    seen = client.create('rl-lost')
    expect('an answer is lost', 'text' in seen, seen)
    expect('the job exists all the same', client.create('rl-lost').get('__type') == 'ResourceInUse')
    fault('sagemaker:CreateTrainingJob', do='drop_before')
    client.create('rl-never')
    expect('a request is lost', 'not found' in str(client.describe('rl-never')))
    fault('sagemaker:DescribeTrainingJob', do='garbage')
    expect('an answer is not the service\'s', '<html>' in str(client.describe('rl-lost')))
    client.double(rates={'sagemaker:ListTrainingJobs': 1})
    seen = [client.call('ListTrainingJobs', {}).get('__type') for _ in range(6)]
    expect('too many requests are throttled', seen[0] is None and 'ThrottlingException' in seen, seen)
    client.double(clock_skew_s=1200)
    expect('a wrong clock is refused',
           'InvalidSignature' in str(client.describe('rl-lost')) and 'RequestTimeTooSkewed' in client.curl(
        's3', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', client.url + '/bench/in/job.json'))
    client.double(clock_skew_s=0, expire='AKIDOUBLE')
    expect('expired credentials are refused', client.describe('rl-lost').get('__type') == 'ExpiredTokenException')
    client.double(renew='AKIDOUBLE', deny=['sagemaker:StopTrainingJob'])
    expect('a missing right is refused',
           'AccessDenied' in str(client.call('StopTrainingJob', {'TrainingJobName': 'rl-lost'})))
    client.double(deny=[])
    ask = {'TrainingJobName': 'rl-lost'}
    expect('another region is refused', 'scoped' in str(client.call('DescribeTrainingJob', ask, region='eu-west-1')))
    expect('a wrong secret is refused',
           'does not hold' in str(client.call('DescribeTrainingJob', ask, user='AKIDOUBLE:other')))
    seen = client.create('rl-bad-', {'A-B': 'x' * 600}, Colour='blue')
    expect('all faults of a request are reported', '4 validation errors' in str(seen), seen)
    expect('a role that does not exist is refused', 'assume role' in str(client.create('rl-role', RoleArn=ROLE + '2')))


def logs_and_objects(client):
    client.double(page_events=2, empty_pages=True, delay_s=5.0)
    client.create('rl-log')
    client.ended('rl-log')
    early, late, end = client.lines('rl-log'), [], time.time() + 60
    while len(late) < 7 and time.time() < end:
        late = client.lines('rl-log')
    expect('lines come after the job\'s end', len(early) < len(late) == 7, (early, late))
    client.double(page_events=10000, empty_pages=False, delay_s=0)
    with open(os.path.join(client.folder, 'large'), 'wb') as file:
        file.write(os.urandom(20 << 20))
    client.cli('s3', 'cp', 'large', 's3://bench/large key/ü+=')
    client.cli('s3', 'cp', 's3://bench/large key/ü+=', 'again')
    expect('20 MB go there and back', subprocess.run(['cmp', 'large', 'again'], cwd=client.folder, check=False).returncode == 0)
    once = ['-X', 'PUT', '-d', 'mine', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', '-H', 'If-None-Match: *', client.url + '/bench/marker']
    client.curl('s3', *once)
    expect('a marker is written once', 'PreconditionFailed' in client.curl('s3', *once))


def processes_with(text):
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', encoding='utf-8', errors='replace') as file:
                if text in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--aws', default='/usr/bin/aws')
    parser.add_argument('--python', default=sys.executable)
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists(options.aws) or not shutil.which('curl'):
        print(f'skipped: it needs root, curl and {options.aws}')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        script, images, port = (os.path.join(folder, name) for name in ('train', 'images.json', 'port'))
        with open(script, 'w', encoding='utf-8') as file:
            file.write(SCRIPT)
        os.chmod(script, 0o755)
        with open(images, 'w', encoding='utf-8') as file:
            json.dump({IMAGE: {'entrypoint': [script]}}, file)
        server = subprocess.Popen([options.python, os.path.join(HERE, 'sagemaker-double'), '--root', os.path.join(folder, 'double'), '--images',
                                   images, '--port-file', port, '--role', ROLE, '--speed', '60', '--with-parent'])
        try:
            while not os.path.exists(port):
                time.sleep(0.05)
                if server.poll() is not None:
                    return 1
            with open(port, encoding='ascii') as file:
                client = Client(int(file.read()), folder, options.aws)
            for part in (life, ends, spot, capacity, nodes, trouble, logs_and_objects):
                client.double(faults=[], rates={name: 0 for name in ('sagemaker:ListTrainingJobs', 'sagemaker:CreateTrainingJob',
                                                                     'sagemaker:DescribeTrainingJob', 'logs:FilterLogEvents')})
                part(client)
        finally:
            server.terminate()
            server.wait()
    left = processes_with(script)
    expect('nothing is left', not left, left)
    print(f'{len(failed)} failed' if failed else 'all tests passed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
