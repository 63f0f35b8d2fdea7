"""The node's side of its runtime, and the state of each container."""

import json
import os
import queue
import subprocess
import sys
import threading
import time


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


EPOCH = "1970-01-01T00:00:00Z"  # a kubelet's start time for a container that never started


class Refused(Exception):
    """A program does not start. The text is the reason in runc's words."""


class Runtime:
    """The process of runtime.py. It is safe to use from several threads."""

    def __init__(self, folder):
        self._root = os.path.join(folder, "root")
        os.makedirs(self._root, exist_ok=True)
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime.py")
        self._process = subprocess.Popen([sys.executable, "-S", program, self._root],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        self._replies, self._ends = {}, {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, container_id, request, ended):
        """Starts a container, and returns its process's id. Raises Refused. Calls `ended(code)` once, in another thread."""
        reply = queue.SimpleQueue()
        self._replies[container_id], self._ends[container_id] = reply, ended
        self._send({"id": container_id, "start": request})
        answer = reply.get()
        del self._replies[container_id]
        if "refused" in answer:
            del self._ends[container_id]
            raise Refused(answer["refused"])
        return answer["started"]

    def signal(self, container_id, number):
        """Sends a signal to a container. Does nothing if it has ended."""
        self._send({"id": container_id, "signal": int(number)})

    def _send(self, request):
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _listen(self):
        for line in self._process.stdout:
            answer = json.loads(line)
            if "ended" in answer:
                self._ends.pop(answer["id"])(answer["ended"])
            else:
                self._replies[answer["id"]].put(answer)
        os._exit(1)  # a node cannot work without its runtime


class Container:
    """A container of a pod. `state` has a kubelet's form: {"waiting": …}, {"running": …} or {"terminated": …}."""

    def __init__(self, pod, manifest, folder):
        self.manifest, self.name = manifest, manifest["name"]
        self.id = f"{pod['metadata']['uid']}/{self.name}"
        self.log = os.path.join(folder, self.name + ".log")
        self.message_file = os.path.join(folder, self.name + ".message")
        self.state = {"waiting": {"reason": "ContainerCreating"}}
        self.pid = None

    def status(self):
        running = "running" in self.state
        status = {"name": self.name, "image": self.manifest.get("image", ""), "imageID": "", "ready": running,
                  "started": running, "restartCount": 0, "state": self.state}
        if "waiting" not in self.state:
            status["imageID"] = self.manifest.get("image", "")
            status["containerID"] = f"containerd://{self.id}"
        return status

    def runs(self):
        return "running" in self.state

    def begin(self, pid):
        self.pid = pid
        self.state = {"running": {"startedAt": now()}}

    def wait(self, reason, message=None):
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def end(self, code, reason=None, message=None):
        terminated = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "startedAt": self.state.get("running", {}).get("startedAt", EPOCH),
            "finishedAt": now(),
            "containerID": f"containerd://{self.id}",
        }
        message = message or self._message(code)
        if message:
            terminated["message"] = message
        self.state = {"terminated": terminated}

    def _message(self, code):
        """Returns its termination message, as a kubelet reads it."""
        if not os.path.exists(self.message_file):
            return ""
        with open(self.message_file, "rb") as file:
            message = file.read(4096).decode(errors="replace")
        if not message and code != 0 and self.manifest.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            with open(self.log, "rb") as file:
                last = [text for _, text in lines(file)][-80:]
            message = b"".join(last)[-2048:].decode(errors="replace")
        return message


def lines(file):
    """Yields (time, text) of every complete line from the file's position on. The file is a log of the runtime.

    REQUIRES: it is open in binary mode.
    """
    first, text = None, b""
    while True:
        at = file.tell()
        entry = file.readline()
        if not entry.endswith(b"\n"):
            file.seek(at)
            return
        stamp, _, tag, part = entry[:-1].split(b" ", 3)
        first, text = first or stamp, text + part
        if tag == b"F":
            yield first, text + b"\n"
            first, text = None, b""
