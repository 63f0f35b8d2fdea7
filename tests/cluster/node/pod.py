"""The kubelet's part of a pod's life on its node."""

import os
import queue
import shutil
import signal
import subprocess
import threading
import time

import api
import spec
from containers import Container, Refused, now
from volumes import Volumes

RETRY_SECONDS = 0.5
FAULT_SECONDS = 0.5  # after the containers run
RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: " \
       "unable to start container process: {}: unknown"
FAULT = "ridgeline.test/fault"
LOW = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 812Mi. Container {} was " \
      "using 2Gi, request is 0, has larger consumption of ephemeral-storage. "


def condition(kind, status, reason=None, message=None):
    made = {"type": kind, "status": status, "lastTransitionTime": now(), "reason": reason, "message": message}
    return {key: value for key, value in made.items() if value}


class Pod:
    """A pod has one thread, which makes all its calls: those that other threads leave (_inbox) and timed ones (_alarms).

    The thread ends with the last container. The pod's folder exists as long as the pod. If the node restarts, the folder
    says that the pod's containers have been started.
    """

    def __init__(self, node, manifest):
        self._node, self.manifest = node, manifest
        metadata = manifest["metadata"]
        self.uid, self.namespace, self.name = metadata["uid"], metadata["namespace"], metadata["name"]
        self._path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.folder = os.path.join(node.folder, "pods", self.uid)
        self.fault, *self._fault_arguments = (metadata.get("annotations") or {}).get(FAULT, "").split() or [""]
        self.containers = {container["name"]: Container(manifest, container, self.folder)
                           for container in manifest["spec"]["containers"]}
        self._volumes = None
        self._inbox, self._alarms = queue.SimpleQueue(), []
        self._lock, self._over = threading.Lock(), False
        self._phase, self._started = "Pending", now()
        self._verdict = {}  # the status's reason and message, if the containers do not decide the pod's end
        self._conditions = []  # additional conditions
        self._told = set()
        self._published = self._ending = self._deleted = False

    # --- From other threads

    def begin(self):
        """Starts the pod if it is new on this node."""
        phase = (self.manifest.get("status") or {}).get("phase", "Pending")
        if phase in ("Succeeded", "Failed"):
            self._over = True
        elif phase == "Running" or os.path.exists(self.folder):
            self._inbox.put(self._lose)
        else:
            os.makedirs(self.folder)
            self._inbox.put(self._prepare)
        if not self._over:
            threading.Thread(target=self._live, daemon=True).start()
        if "deletionTimestamp" in self.manifest["metadata"]:
            self.changed(self.manifest)

    def changed(self, manifest):
        """The pod has changed in the API. Only a deletion matters here."""
        metadata = manifest["metadata"]
        if "deletionTimestamp" not in metadata:
            return
        seconds = metadata.get("deletionGracePeriodSeconds", 30)
        with self._lock:
            if not self._over:
                self._inbox.put(lambda: self._delete(seconds))
                return
        threading.Thread(target=self._remove, daemon=True).start()

    def removed(self):
        """The API no longer has the pod."""
        with self._lock:
            if not self._over:
                self._inbox.put(lambda: self._delete(0))
                return
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- Its thread

    def _live(self):
        while not self._over:
            timeout = min((due for due, _ in self._alarms), default=None)
            try:
                call = self._inbox.get(timeout=None if timeout is None else max(0, timeout - time.monotonic()))
            except queue.Empty:
                alarm = min(self._alarms, key=lambda alarm: alarm[0])
                self._alarms.remove(alarm)
                call = alarm[1]
            try:
                call()
                if self._ending and not any(container.runs() for container in self.containers.values()):
                    self._finish()
            except Exception as error:  # a kubelet reports an error, and goes on
                api.say(f"{self.namespace}/{self.name}:", repr(error))

    def _after(self, seconds, call):
        self._alarms.append((time.monotonic() + seconds, call))

    def _finish(self):
        if self._phase != "Pending" or self._verdict:
            codes = [container.state.get("terminated", {}).get("exitCode") for container in self.containers.values()]
            good = not self._verdict and all(code == 0 for code in codes)
            self._phase = "Succeeded" if good else "Failed"
            self._publish()
        with self._lock:
            # From here on, nothing is put into the inbox. A deletion may be in it already.
            self._over = True
        while not self._inbox.empty():
            self._inbox.get()()
        if self._deleted:
            self._remove()

    def _publish(self):
        self._published = True
        done, running = self._phase in ("Succeeded", "Failed"), self._phase == "Running"
        status = {
            "phase": self._phase,
            "startTime": self._started,
            "hostIP": "127.0.0.1",
            "conditions": [condition("Initialized", "True"), *self._conditions],
            "containerStatuses": [container.status() for container in self.containers.values()],
            **self._verdict,
        }
        if self._phase != "Pending":
            status |= {"podIP": spec.address(self.manifest), "podIPs": [{"ip": spec.address(self.manifest)}]}
        for kind in ("Ready", "ContainersReady"):
            if running:
                status["conditions"].append(condition(kind, "True"))
            elif done and self._phase == "Succeeded":
                status["conditions"].append(condition(kind, "False", "PodCompleted"))
            else:
                names = " ".join(self.containers)
                status["conditions"].append(condition(kind, "False", "ContainersNotReady",
                                                      f"containers with unready status: [{names}]"))
        self._node.api.persist("PATCH", self._path + "/status", {"metadata": {"uid": self.uid}, "status": status},
                               api.STRATEGIC)

    # --- Its start

    def _prepare(self):
        if self.manifest["spec"].get("initContainers"):
            self._verdict = {"reason": "Unsupported", "message": "this double of a kubelet runs no initContainers"}
            self._ending = True
            return
        deadline = self.manifest["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            self._after(deadline, self._exceed_deadline)
        if self.fault == "imagepull":
            self._fail_to_pull()
        elif self.fault == "registry-away":
            self._fail_to_pull()
            self._after(float(self._fault_arguments[0]), self._start)
        elif self.fault == "refuse":
            self._verdict = {"reason": "OutOfcpu", "message": "Pod Node didn't have enough resource: cpu"}
            self._phase, self._ending = "Failed", True
        elif self.fault == "slow-start":
            self._publish()
            self._after(float(self._fault_arguments[0]), self._start)
        else:
            self._start()

    def _fail_to_pull(self):
        for container in self.containers.values():
            image = container.manifest["image"]
            container.wait("ErrImagePull", f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
                           f'failed to resolve reference "{image}": {image}: not found')
        self._publish()

        def back_off():
            for container in self.containers.values():
                if "waiting" not in container.state:
                    return
                container.wait("ImagePullBackOff", f'Back-off pulling image "{container.manifest["image"]}"')
            self._publish()
        self._after(FAULT_SECONDS, back_off)

    def _start(self):
        """Starts the containers that have not been started, and tries again later if some cannot start yet."""
        if self._ending:
            return
        before = [container.state for container in self.containers.values()]
        waits = False
        for container in self.containers.values():
            if "waiting" not in container.state:
                continue
            try:
                if self._volumes is None:
                    self._volumes = Volumes(self.manifest, self.folder, self._node.objects)
                self._start_one(container)
            except spec.Waiting as why:
                waits = True
                # While a container is being created, the status has no reason for the delay. An event has it.
                if why.reason == "ContainerCreating":
                    self._tell("FailedMount", str(why))
                container.wait(why.reason, None if why.reason == "ContainerCreating" else why.message)
            except (api.Refused, *api.UNREACHABLE) as error:
                api.say(f"{self.namespace}/{self.name}:", repr(error))
                waits = True
        if waits:
            self._after(RETRY_SECONDS, self._start)
        if any(container.runs() for container in self.containers.values()):
            self._phase = "Running"
        elif not waits:
            self._phase, self._ending = "Running", True  # no container started
            return
        if not self._published or before != [container.state for container in self.containers.values()]:
            self._publish()
        if not waits and self.fault:
            self._after(FAULT_SECONDS, self._strike)

    def _tell(self, reason, message):
        """Creates an event, once for each message."""
        if message in self._told:
            return
        self._told.add(message)
        self._node.api.persist("POST", f"/api/v1/namespaces/{self.namespace}/events", {
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message, "count": 1,
            "metadata": {"name": f"{self.name}.{len(self._told)}.{self.uid[:8]}", "namespace": self.namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": self.name, "namespace": self.namespace,
                               "uid": self.uid},
            "firstTimestamp": now(), "lastTimestamp": now(), "source": {"component": "kubelet"}})

    def _start_one(self, container):
        manifest = container.manifest
        environment = spec.Environment(self.manifest, manifest, self._node.objects, self._node.image_path).values
        identity = spec.identity(self.manifest, manifest)
        argv = [spec.expand(word, environment)
                for word in [*(manifest.get("command") or []), *(manifest.get("args") or [])]]
        if not argv:
            raise spec.Waiting("CreateContainerError", "failed to generate container spec: no command specified")
        with open(container.message_file, "wb"):
            os.chmod(container.message_file, 0o666)
        hosts = self._node.names.hosts_file(self)
        mounts = self._volumes.mounts(manifest, environment)
        mounts.append([container.message_file, manifest.get("terminationMessagePath", "/dev/termination-log"), False])
        mounts.append([hosts, "/etc/hosts", False])
        # A device plugin makes this file. No test reads the device behind it.
        if any(name.endswith("/gpu") for name in (manifest.get("resources") or {}).get("limits") or {}):
            mounts.append(["/dev/null", "/dev/nvidia0", False])
        request = {
            "argv": argv,
            # The cluster's script finds its processes by these variables.
            "env": environment | {name: os.environ[name] for name in ("RIDGELINE_TEST_CLUSTER", "RIDGELINE_TEST_DAEMON")
                                  if name in os.environ},
            "cwd": manifest.get("workingDir") or "/",
            "hostname": (self.manifest["spec"].get("hostname") or self.name)[:63],
            "log": container.log,
            "image": self._node.image,
            "mounts": mounts,
            **identity,
        }
        try:
            ended = self._inbox
            pid = self._node.runtime.start(container.id, request,
                                           lambda code: ended.put(lambda: self._ended(container, code)))
            container.begin(pid)
        except Refused as why:
            container.end(128, "StartError", RUNC.format(why))

    def _lose(self):
        """An earlier process of this node started the pod, and the pod ended with it."""
        for container in self.containers.values():
            container.end(137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated")
        self._phase, self._ending = "Running", True

    # --- Its end

    def _ended(self, container, code):
        oom = self.fault == "oom" and code == 137 and not self._deleted and not self._verdict
        container.end(code, "OOMKilled" if oom else None)
        waiting = any("waiting" in other.state for other in self.containers.values())
        if any(other.runs() for other in self.containers.values()) or (waiting and not self._ending):
            self._publish()
        else:
            self._ending = True

    def _end(self, grace_seconds):
        """Ends the running containers."""
        self._ending = True
        for container in self.containers.values():
            if container.runs():
                threading.Thread(target=self._ask_to_end, args=(container, grace_seconds), daemon=True).start()

        def kill():
            for container in self.containers.values():
                if container.runs():
                    self._node.runtime.signal(container.id, signal.SIGKILL)
        self._after(grace_seconds, kill)

    def _ask_to_end(self, container, grace_seconds):
        if grace_seconds == 0:
            return
        hook = ((container.manifest.get("lifecycle") or {}).get("preStop") or {}).get("exec")
        if hook:
            identity = spec.identity(self.manifest, container.manifest)
            environment = spec.Environment(self.manifest, container.manifest, self._node.objects, self._node.image_path)
            try:
                subprocess.run(["nsenter", f"--target={container.pid}", "--mount", "--uts", "--ipc", "--pid", "--root",
                                "--wd", f"--setuid={identity['uid']}", f"--setgid={identity['gid']}", *hook["command"]],
                               env=environment.values, timeout=grace_seconds, check=False, stdin=subprocess.DEVNULL)
            except (OSError, subprocess.TimeoutExpired) as error:
                api.say(f"{self.namespace}/{self.name}: preStop:", repr(error))
        self._node.runtime.signal(container.id, signal.SIGTERM)

    def _delete(self, grace_seconds):
        shorter = not self._deleted or grace_seconds == 0
        self._deleted = True
        if shorter:
            self._end(grace_seconds)

    def _remove(self):
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        self._node.api.persist("DELETE", self._path, body)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _exceed_deadline(self):
        if self._ending:
            return
        self._verdict = {"reason": "DeadlineExceeded",
                         "message": "Pod was active on the node longer than the specified deadline"}
        self._end(self.manifest["spec"].get("terminationGracePeriodSeconds", 30))

    # --- Faults

    def _strike(self):
        if self._ending:
            return
        if self.fault == "oom":
            for container in self.containers.values():
                self._node.runtime.signal(container.id, signal.SIGKILL)
        elif self.fault == "evict":
            message = LOW.format(next(iter(self.containers)))
            self._verdict = {"reason": "Evicted", "message": message}
            self._conditions.append(condition("DisruptionTarget", "True", "TerminationByKubelet", message))
            self._end(1)
        elif self.fault == "preempt":
            # The scheduler preempts a pod. Its end is that of any deletion.
            self._conditions.append(condition("DisruptionTarget", "True", "PreemptionByScheduler", "default-scheduler: "
                                              "preempting to accommodate a higher priority pod"))
            self._publish()
            self._node.api.persist("DELETE", self._path)
