"""Training jobs: the checks of CreateTrainingJob, a job's states, and its containers, which are real processes."""
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import urllib.parse

from logs import Trouble
from objects import S3Error

ENDED = ('Completed', 'Failed', 'Stopped')
GRACE_S = 120
# What a job's role needs for a VPC, and for a key. AWS has confirmed neither.
NETWORK_RIGHTS = ('ec2:CreateNetworkInterface', 'ec2:CreateNetworkInterfacePermission', 'ec2:DescribeNetworkInterfaces',
                  'ec2:DescribeVpcs', 'ec2:DescribeSubnets', 'ec2:DescribeSecurityGroups', 'ec2:DescribeDhcpOptions')
KEY_RIGHTS = ('kms:CreateGrant', 'kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey')
# The container ends with the double, however that ends.
BOUND = ['setpriv', '--pdeathsig', 'KILL']
# The container's main process is process 1 of its own namespaces, with its own /opt/ml, /etc/hosts and host name.
ENTER = ['unshare', '--mount', '--uts', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL', 'sh', '-c',
         'mount --bind "$1" /opt/ml && mount --bind "$2" /etc/hosts && hostname "$3" && shift 3 && exec "$@"', 'sh']


def invalid(message):
    return Trouble('ValidationException', message)


def place(uri):
    """Splits s3://bucket/some/prefix into bucket and some/prefix."""
    parts = urllib.parse.urlsplit(uri)
    return parts.netloc, parts.path.lstrip('/')


class Node:
    """One container: a folder that is its /opt/ml, a process, and its lines in the log."""

    def __init__(self, job, number, folder, address):
        self.job, self.host, self.ml, self.address = job, f'algo-{number}', os.path.join(folder, 'ml'), address
        self.hosts_file, self.process, self.synced = os.path.join(folder, 'hosts'), None, {}
        for name in ('input/config', 'input/data', 'model', 'output/data') + (('checkpoints',) if job.checkpoints() else ()):
            os.makedirs(os.path.join(self.ml, name))

    def start(self, argv, environment, workdir, stream):
        os.makedirs('/opt/ml', exist_ok=True)   # the mount needs the folder
        entered = BOUND + ENTER + [self.ml, self.hosts_file, self.host] + argv
        self.process = subprocess.Popen(entered, env=environment, cwd=workdir, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.reader.start()

    def _read(self, stream):
        for line in iter(self.process.stdout.readline, b''):
            if not self.job.lacks('logs:CreateLogStream', 'logs:PutLogEvents'):
                self.job.service.logs.say(stream, line.decode('utf-8', 'replace').rstrip('\r\n'))

    def send(self, number):
        """Sends a signal to the container's process 1 only, as `docker stop` does. SIGKILL ends the whole container."""
        try:
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as file:
                    os.kill(int(file.read().split()[0]), number)
        except (ProcessLookupError, FileNotFoundError, IndexError):
            pass

    def code(self):
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code


class Job:
    def __init__(self, service, request, serial):
        self.service, self.request, self.serial = service, request, serial
        self.name, self.arn = request['TrainingJobName'], f'{service.arn}:training-job/{request["TrainingJobName"]}'
        self.resources, self.stopping = request['ResourceConfig'], request.get('StoppingCondition', {})
        self.type, self.count = self.resources.get('InstanceType'), self.resources.get('InstanceCount', 1)
        self.plan, self.spot = self.resources.get('TrainingPlanArn'), request.get('EnableManagedSpotTraining', False)
        self.status, self.secondary, self.reason = 'InProgress', None, None
        self.created = self.modified = time.time()
        self.started = self.ended = None
        self.transitions, self.billed, self.trained = [], 0.0, 0.0
        self.wanted = None       # the reason to end it: Stopped, MaxRuntimeExceeded, MaxWaitTimeExceeded
        self.interrupt = None    # the settings of a spot interruption that is under way
        self.broken = None       # an InternalServerError that is under way
        self.lacking = False     # it has waited long enough for capacity
        self.nodes, self.attempt, self.warm, self.holds = [], 0, None, False
        self.turn('Starting', 'Starting the training job')

    def turn(self, secondary, message):
        now = time.time()
        if self.transitions:
            self.transitions[-1]['EndTime'] = now
        self.transitions.append({'Status': secondary, 'StartTime': now, 'StatusMessage': message})
        self.secondary, self.modified = secondary, now

    def run(self):
        try:
            while True:
                end = self._attempt()
                if end != 'interrupted':
                    break
                self.nodes = []
                self.turn('Interrupted', 'Spot instances were interrupted')
                time.sleep(self.service.restart_s)
                self.turn('Starting', 'Launching requested ML instances')
            self._finish(*end)
        except (Trouble, S3Error, OSError) as trouble:
            self._finish('Failed', f'InternalServerError: {trouble}')

    def _attempt(self):
        if not self._instances():
            return ('Failed', 'CapacityError: unable to provision the requested instances') if self.lacking else ('Stopped', self.wanted)
        begun = time.time()
        self.started = self.started or begun
        try:
            return self._train()
        finally:
            for node in self.nodes:
                if node.process:
                    node.send(signal.SIGKILL)
                    node.process.wait()
                    node.reader.join(5)
            self.holds = False
            self.billed += time.time() - begun

    def _instances(self):
        told = False
        while not self.service.acquire(self):
            if self._overdue() or self.wanted:
                self.turn('Stopping', 'Stopping the training job')
                return False
            if self.service.patience_s is not None and time.time() - self.created > self.service.patience_s:
                self.lacking = True
                return False
            if not told:
                told, modified = True, self.modified
                self.turn('Pending' if self.plan else 'Starting', 'Waiting for capacity' if self.plan else
                          'Insufficient capacity, retrying')
                self.modified = modified  # a try for capacity is assumed to change nothing that a list has
            time.sleep(0.02)
        if not self.service.take_warm(self):
            time.sleep(self.service.start_s)
        return not self.wanted

    def _overdue(self):
        wait = self.stopping.get('MaxWaitTimeInSeconds')
        if self.spot and wait and time.time() - self.created > wait / self.service.speed:
            self.wanted = self.wanted or 'MaxWaitTimeExceeded'
        return self.wanted == 'MaxWaitTimeExceeded'

    def lacks(self, *rights):
        """Returns the first of these rights that the job's role does not have."""
        return next((right for right in rights if right in self.service.role_denied), None)

    def _train(self):
        lacks = self.lacks('ecr:GetAuthorizationToken', 'ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer')
        if lacks:
            return 'Failed', f'ClientError: the role may not {lacks}, so the image cannot be pulled'
        lacks = self.lacks(*NETWORK_RIGHTS) if 'VpcConfig' in self.request else None
        if lacks is None and 'KmsKeyId' in self.request['OutputDataConfig']:
            lacks = self.lacks(*KEY_RIGHTS)
        if lacks:
            return 'Failed', f'ClientError: the role may not {lacks}'
        self.attempt += 1
        folder = os.path.join(self.service.root, 'jobs', self.name, str(self.attempt))
        self.nodes = [Node(self, i + 1, os.path.join(folder, f'algo-{i + 1}'), f'127.{10 + self.serial % 200}.{self.attempt}.{i + 1}')
                      for i in range(self.count)]
        image = self.service.images[self.request['AlgorithmSpecification']['TrainingImage']]
        if self.request.get('InputDataConfig'):
            self.turn('Downloading', 'Downloading input data')
            lacks = self.lacks('s3:ListBucket', 's3:GetObject')
            if lacks:
                return 'Failed', f'ClientError: data download failed: the role may not {lacks}'
            for channel in self.request['InputDataConfig']:
                missing = self._download(channel)
                if missing:
                    return 'Failed', f'ClientError: no S3 objects under {missing}'
        self._restore()
        self._configure()
        self.turn('Training', 'Training image download completed. Training in progress.')
        epoch, spec = int(time.time() * 1000), self.request['AlgorithmSpecification']
        argv = spec.get('ContainerEntrypoint', image['entrypoint']) + spec.get(
            'ContainerArguments', [] if 'ContainerEntrypoint' in spec else ['train'])
        for node in self.nodes:
            stream = f'{self.name}/{node.host}-{epoch}'
            self.service.logs.create(stream)
            environment = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root', 'LANG': 'C.UTF-8',
                           **image.get('environment', {}), **self.request.get('Environment', {}), 'AWS_REGION': self.service.region,
                           'TRAINING_JOB_NAME': self.name, 'TRAINING_JOB_ARN': self.arn}
            if self.plan:
                environment['SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP'] = str(int(self.service.plan_end * 1000))
            try:
                node.start(argv, environment, image.get('workdir', '/'), stream)
            except OSError as error:
                return 'Failed', f'AlgorithmError: cannot start the container: {error.strerror}, exit code: 127'
        return self._watch()

    def _watch(self):
        begun, sent, synced = time.time(), 0.0, 0.0
        limit = self.stopping.get('MaxRuntimeInSeconds', 86400) / self.service.speed
        while True:
            now = time.time()
            codes = [node.code() for node in self.nodes]
            if self.trained + now - begun > limit:
                self.wanted = self.wanted or 'MaxRuntimeExceeded'
            self._overdue()
            ending = self.wanted or self.interrupt or self.broken
            if ending and not sent:
                if self.wanted:
                    self.status = 'Stopping'
                    self.turn('Stopping', 'Stopping the training job')
                self._signal(signal.SIGKILL if self.broken or (self.interrupt or {}).get('kill') else signal.SIGTERM)
                sent = now
            over = all(code is not None for code in codes) or any(code not in (None, 0) for code in codes)
            if over or sent and now - sent > GRACE_S / self.service.speed:
                self._signal(signal.SIGKILL)
                for node in self.nodes:
                    node.process.wait()
                break
            if now - synced > self.service.sync_s:
                self._sync()
                synced = now
            time.sleep(0.02)
        self.trained += time.time() - begun
        if not (self.interrupt or {}).get('lose_last_sync'):
            self._sync()
        if self.broken:
            return 'Failed', f'InternalServerError: {self.broken}'
        if self.interrupt and not self.wanted:
            self.interrupt = None
            return 'interrupted'
        if self.wanted:
            return 'Stopped', self.wanted
        bad = [(node, node.code()) for node in self.nodes if node.code()]
        return ('Failed', self._failure(*bad[0])) if bad else ('Completed', None)

    def _signal(self, number):
        for node in self.nodes:
            node.send(number)

    @staticmethod
    def _failure(node, code):
        try:
            with open(os.path.join(node.ml, 'output/failure'), encoding='utf-8', errors='replace') as file:
                said = file.read(1024)
        except FileNotFoundError:
            said = ''
        return f'AlgorithmError: {said[:980]}, exit code: {code}'

    def _finish(self, status, reason):
        if self.nodes and status != 'Failed' or reason and reason.startswith('AlgorithmError'):
            self.turn('Uploading', 'Uploading generated training model')
            lacks = self.lacks('s3:PutObject')
            if lacks and not (reason or '').startswith('AlgorithmError'):
                status, reason = 'Failed', f'ClientError: artifact upload failed: the role may not {lacks}'
            elif not lacks:
                self._upload()
        self.reason = reason[:1024] if status == 'Failed' else None
        self.turn({'Stopped': reason}.get(status, status), {'Failed': 'Training job failed'}.get(status, 'Training job ended'))
        self.ended, self.transitions[-1]['EndTime'] = time.time(), time.time()
        self.status = status
        if self.resources.get('KeepAlivePeriodInSeconds') and self.started and not (self.reason or '').startswith('Internal'):
            self.warm = {'Status': 'Available', 'until': time.time() + self.resources['KeepAlivePeriodInSeconds'] / self.service.speed}

    # --- Copies between S3 and the containers
    def _download(self, channel):
        source = channel['DataSource'].get('S3DataSource', {})
        bucket, prefix = place(source.get('S3Uri', ''))
        base = prefix[:prefix.rfind('/') + 1]
        keys = self.service.objects.keys(bucket, prefix)
        for key in keys:
            for node in self.nodes:
                self._write(os.path.join(node.ml, 'input/data', channel['ChannelName'], key[len(base):]), bucket, key)
        return None if keys else source.get('S3Uri')

    def _write(self, path, bucket, key):
        if not path.endswith('/'):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as file:
                file.write(self.service.objects.get(bucket, key))

    def checkpoints(self):
        """Returns the checkpoints' bucket and prefix in S3, or None."""
        if 'CheckpointConfig' not in self.request:
            return None
        bucket, prefix = place(self.request['CheckpointConfig']['S3Uri'])
        return bucket, prefix.rstrip('/') + '/' if prefix else ''

    def _restore(self):
        for bucket, prefix in filter(None, [self.checkpoints()]):
            for key in self.service.objects.keys(bucket, prefix):
                for node in self.nodes:
                    self._write(os.path.join(node.ml, 'checkpoints', key[len(prefix):]), bucket, key)
        for node in self.nodes:
            node.synced = dict(self._files(os.path.join(node.ml, 'checkpoints')))

    @staticmethod
    def _files(folder):
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                try:
                    stat = os.stat(path)
                except FileNotFoundError:
                    continue
                yield os.path.relpath(path, folder), (stat.st_mtime_ns, stat.st_size)

    def _sync(self):
        """Copies checkpoints as SageMaker does: files as they are now, all nodes into one prefix, and deletions, too."""
        if self.lacks('s3:PutObject'):
            return
        for bucket, prefix in filter(None, [self.checkpoints()]):
            for node in self.nodes:
                folder = os.path.join(node.ml, 'checkpoints')
                now = dict(self._files(folder))
                for name, state in now.items():
                    if node.synced.get(name) != state:
                        try:
                            with open(os.path.join(folder, name), 'rb') as file:
                                self.service.objects.put(bucket, prefix + name, file.read())
                        except FileNotFoundError:
                            continue
                for name in set(node.synced) - set(now):
                    self.service.objects.delete(bucket, prefix + name)
                node.synced = now

    def _configure(self):
        hosts, names = ''.join(f'{node.address} {node.host}\n' for node in self.nodes), [node.host for node in self.nodes]
        for node in self.nodes:
            files = {
                'hyperparameters': self.request.get('HyperParameters', {}),
                'resourceconfig': {
                    'current_host': node.host, 'current_instance_type': self.type, 'current_group_name': 'homogeneousCluster',
                    'hosts': names, 'network_interface_name': 'lo', 'instance_groups': [
                        {'instance_group_name': 'homogeneousCluster', 'instance_type': self.type, 'hosts': names}]},
                'inputdataconfig': {channel['ChannelName']: {
                    'TrainingInputMode': channel.get('InputMode', 'File'), 'S3DistributionType': 'FullyReplicated',
                    'RecordWrapperType': 'None'} for channel in self.request.get('InputDataConfig', [])}}
            for name, value in files.items():
                with open(os.path.join(node.ml, 'input/config', name + '.json'), 'w', encoding='utf-8') as file:
                    json.dump(value, file)
            with open(node.hosts_file, 'w', encoding='utf-8') as file:
                file.write('127.0.0.1 localhost\n' + ('' if self.service.resolve_after_s else hosts))
            if self.service.resolve_after_s:
                def later(path=node.hosts_file):
                    with open(path, 'a', encoding='utf-8') as file:
                        file.write(hosts)
                threading.Timer(self.service.resolve_after_s, later).start()

    def _upload(self):
        config = self.request['OutputDataConfig']
        bucket, prefix = place(config['S3OutputPath'])
        base = f'{prefix.rstrip("/")}/{self.name}/output'.lstrip('/')
        for folder, name in (('model', 'model'), ('output/data', 'output')):
            files = {one: os.path.join(node.ml, folder, one) for node in self.nodes for one, _ in self._files(os.path.join(node.ml, folder))}
            if config.get('CompressionType') == 'NONE':
                for one, path in files.items():
                    with open(path, 'rb') as file:
                        self.service.objects.put(bucket, f'{base}/{name}/{one}', file.read())
            elif files:
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode='w:gz') as archive:
                    for one, path in sorted(files.items()):
                        archive.add(path, one)
                self.service.objects.put(bucket, f'{base}/{name}.tar.gz', packed.getvalue())

    def description(self):
        speed = self.service.speed
        kept = {key: self.request[key] for key in self.request if key not in ('Tags', 'SessionChainingConfig')}
        out = self.request['OutputDataConfig']['S3OutputPath'].rstrip('/')
        reply = {**kept, 'TrainingJobArn': self.arn, 'TrainingJobStatus': self.status, 'SecondaryStatus': self.secondary,
                 'CreationTime': self.created, 'LastModifiedTime': self.modified, 'FailureReason': self.reason,
                 'TrainingStartTime': self.started, 'TrainingEndTime': self.ended, 'StoppingCondition': self.stopping,
                 'ModelArtifacts': {'S3ModelArtifacts': f'{out}/{self.name}/output/model.tar.gz'}, 'SecondaryStatusTransitions': self.transitions}
        if self.ended and self.started:
            reply.update(TrainingTimeInSeconds=max(1, round((self.ended - self.started) * speed)),
                         BillableTimeInSeconds=max(1, round(self.billed * speed)))
        if self.warm:
            reply['WarmPoolStatus'] = self.pool()
        return reply

    def pool(self):
        """Returns the state of the instances that the job has left, as descriptions have it."""
        begun = self.warm['until'] - self.resources['KeepAlivePeriodInSeconds'] / self.service.speed
        kept = self.warm['Status'] == 'Available' and time.time() < self.warm['until']
        status = 'Terminated' if self.warm['Status'] == 'Available' and not kept else self.warm['Status']
        end = time.time() if kept else self.warm.get('reused', self.warm['until'])
        return {'Status': status, 'ResourceRetainedBillableTimeInSeconds': max(0, round((end - begun) * self.service.speed))}


class Training:
    def __init__(self, root, region, account, images, roles, logs, objects):
        self.root, self.region, self.arn = root, region, f'arn:aws:sagemaker:{region}:{account}'
        self.images, self.roles, self.logs, self.objects = images, roles, logs, objects
        self.lock, self.jobs, self.serial = threading.RLock(), {}, 0
        self.speed = 1.0
        self.start_s, self.restart_s, self.sync_s, self.resolve_after_s = 0.2, 0.2, 0.2, 0.0
        self.quota = {}      # instance type -> instances that the account may have
        self.capacity = {}   # instance type -> instances that there are; without one, any number
        self.plans = {}      # name -> {status, type, instances}
        self.plan_end = time.time() + 86400
        self.role_denied = []    # rights that the jobs' role lacks
        self.patience_s = None   # a job that waits for capacity fails after this time

    def live(self):
        return [job for job in self.jobs.values() if job.status not in ENDED]

    def _plan(self, job):
        return self.plans[job.plan.rpartition('/')[2]]

    def acquire(self, job):
        with self.lock:
            holds = [one for one in self.live() if one.holds]
            if job.plan:
                plan = self._plan(job)
                free = plan['instances'] - sum(one.count for one in holds if one.plan == job.plan) if plan['status'] == 'Active' else 0
            else:
                free = self.capacity.get(job.type, 1 << 30) - sum(one.count for one in holds if one.type == job.type and not one.plan)
            job.holds = free >= job.count
            return job.holds

    def take_warm(self, job):
        same = ('RoleArn', 'VpcConfig', 'EnableInterContainerTrafficEncryption', 'EnableNetworkIsolation')
        with self.lock:
            for one in self.jobs.values():
                if (one.warm and one.warm['Status'] == 'Available' and time.time() < one.warm['until'] and one.type == job.type
                        and one.count == job.count and all(one.request.get(key) == job.request.get(key) for key in same)):
                    one.warm.update(Status='Reused', reused=time.time())
                    return True
        return False

    def _find(self, name):
        if name not in self.jobs:
            raise Trouble('ValidationException', 'requested resource not found')
        return self.jobs[name]

    def CreateTrainingJob(self, request):
        for need in ('AlgorithmSpecification', 'ResourceConfig', 'StoppingCondition'):
            if need not in request:
                raise invalid(f'{need} is missing')
        spec, resources, stopping = request['AlgorithmSpecification'], request['ResourceConfig'], request['StoppingCondition']
        if ('TrainingImage' in spec) == ('AlgorithmName' in spec):
            raise invalid('exactly one of TrainingImage and AlgorithmName')
        if 'InstanceType' not in resources or resources.get('InstanceCount', 0) < 1:
            raise invalid('InstanceType and InstanceCount are wanted; this double knows no instance groups')
        spot, run, wait = request.get('EnableManagedSpotTraining'), stopping.get('MaxRuntimeInSeconds', 86400), stopping.get('MaxWaitTimeInSeconds')
        if spot and (wait is None or wait < run) or not spot and wait is not None:
            raise invalid('MaxWaitTimeInSeconds goes with managed spot training, and is no less than MaxRuntimeInSeconds')
        if request['RoleArn'] not in self.roles:
            raise invalid(f'could not assume role {request["RoleArn"]}')
        if spec.get('TrainingImage') not in self.images:
            raise invalid(f'requested image {spec.get("TrainingImage")} not found')
        for channel in request.get('InputDataConfig', []):
            uri = channel['DataSource'].get('S3DataSource', {}).get('S3Uri', '')
            if not self.objects.has(*place(uri)):
                raise invalid(f'no S3 objects under {uri}')
        plan = resources.get('TrainingPlanArn')
        if plan:
            known = self.plans.get(plan.rpartition('/')[2])
            if spot or known is None or known['status'] not in ('Active', 'Scheduled') or known['type'] != resources['InstanceType']:
                raise invalid('the training plan is not there, not usable, of another instance type, or used with spot')
        with self.lock:
            if request['TrainingJobName'] in self.jobs:
                raise Trouble('ResourceInUse', f'a training job {request["TrainingJobName"]} exists already')
            kind, most = resources['InstanceType'], self.quota.get(resources['InstanceType'])
            used = sum(job.count for job in self.live() if job.type == kind and not job.plan)
            if most is not None and not plan and used + resources['InstanceCount'] > most:
                raise Trouble('ResourceLimitExceeded', f'{kind} for training job usage is {most} instances, {used} in use')
            self.serial += 1
            job = self.jobs[request['TrainingJobName']] = Job(self, request, self.serial)
        threading.Thread(target=job.run, daemon=True).start()
        return {'TrainingJobArn': job.arn}

    def DescribeTrainingJob(self, request):
        return self._find(request['TrainingJobName']).description()

    def StopTrainingJob(self, request):
        job = self._find(request['TrainingJobName'])
        if job.status in ENDED:
            raise invalid(f'a job that is {job.status} cannot be stopped')
        job.wanted = job.wanted or 'Stopped'
        job.status = 'Stopping'
        return {}

    def DeleteTrainingJob(self, request):
        job = self._find(request['TrainingJobName'])
        if job.status not in ENDED:
            raise Trouble('ResourceInUse', 'the job has not ended')
        del self.jobs[job.name]
        shutil.rmtree(os.path.join(self.root, 'jobs', job.name), ignore_errors=True)
        return {}

    def ListTrainingJobs(self, request):
        with self.lock:
            jobs = [job for job in self.jobs.values() if request.get('NameContains', '') in job.name
                    and request.get('CreationTimeAfter', 0) <= job.created <= request.get('CreationTimeBefore', 1 << 60)
                    and request.get('LastModifiedTimeAfter', 0) <= job.modified <= request.get('LastModifiedTimeBefore', 1 << 60)
                    and request.get('TrainingPlanArnEquals', job.plan) == job.plan]
        key = {'Name': lambda job: job.name, 'Status': lambda job: job.status}.get(request.get('SortBy'), lambda job: job.created)
        jobs.sort(key=key, reverse=request.get('SortOrder', 'Descending') == 'Descending')
        first, most = int(request.get('NextToken', 'l/0')[2:]), request.get('MaxResults', 10)
        page = jobs[first:first + most]
        shown = [job for job in page if request.get('StatusEquals', job.status) == job.status]  # after the cut: documented
        reply = {'TrainingJobSummaries': [{
            'TrainingJobName': job.name, 'TrainingJobArn': job.arn, 'CreationTime': job.created, 'TrainingEndTime': job.ended,
            'LastModifiedTime': job.modified, 'TrainingJobStatus': job.status, 'SecondaryStatus': job.secondary,
            'TrainingPlanArn': job.plan, 'WarmPoolStatus': job.pool() if job.warm else None} for job in shown]}
        if first + most < len(jobs):
            reply['NextToken'] = f'l/{first + most}'
        return reply

    def ListTags(self, request):
        return {'Tags': self._find(request['ResourceArn'].rpartition('/')[2]).request.get('Tags', [])}

    def DescribeTrainingPlan(self, request):
        plan = self.plans.get(request['TrainingPlanName'])
        if plan is None:
            raise Trouble('ResourceNotFound', 'no such training plan')
        arn = f'{self.arn}:training-plan/{request["TrainingPlanName"]}'
        used = sum(job.count for job in self.live() if job.plan == arn)
        return {'TrainingPlanArn': arn, 'TrainingPlanName': request['TrainingPlanName'], 'Status': plan['status'],
                'TotalInstanceCount': plan['instances'], 'InUseInstanceCount': used, 'AvailableInstanceCount': plan['instances'] - used}
