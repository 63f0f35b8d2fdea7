#!/usr/bin/env python3
"""Stand-ins for Slurm's steps and for the programs that start containers, as far as `ridgeline exec` uses them.

They parse arguments like srun of Slurm 22.05 with the options of pyxis 0.24, and like `apptainer exec` of Apptainer 1.3.
Nobody has run the real pyxis, enroot and Apptainer with Ridgeline; the real srun has run.

  slurm_step.py             the node's slurmstepd: starts the tasks that srun requests, not as srun's child processes
  srun, enroot, apptainer   the program of that name

$STAND_IN is a folder. It has the stepd's socket; `calls`, a list of the calls; `images`, with a folder for each image; and
`containers`, with those that pyxis keeps. An image's file `env` has the variables that it sets, `large` the seconds that it
takes to unpack, and `slow` the seconds that it takes to start.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.environ["STAND_IN"]
SOCKET = os.path.join(ROOT, "stepd")


def note(*words):
    with open(os.path.join(ROOT, "calls"), "a", encoding="utf-8") as calls:
        calls.write(" ".join(words) + "\n")


def of_image(image, name):
    path = os.path.join(ROOT, "images", image.replace("/", "_"), name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def has_image(image):
    return os.path.isdir(os.path.join(ROOT, "images", image.replace("/", "_")))


def inside(image, environment):
    """Returns the environment of a process in the image. The image's variables replace the host's."""
    return environment | dict(line.split("=", 1) for line in of_image(image, "env").splitlines())


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(1)


def parse_srun(words):
    parser = Parser(prog="srun", allow_abbrev=False, add_help=False)
    for name in ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "kill-on-bad-exit", "wait"):
        parser.add_argument("--" + name, type=int)
    for name in ("mem", "cpu-bind", "input", "nodelist", "mpi"):
        parser.add_argument("--" + name)
    for name in ("overlap", "exact", "no-container-mount-home", "container-mount-home", "container-remap-root",
                 "no-container-remap-root", "container-writable", "container-readonly"):
        parser.add_argument("--" + name, action="store_true")
    for name in ("container-image", "container-mounts", "container-workdir", "container-name", "container-env"):
        parser.add_argument("--" + name)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(words)


def pyxis(options, environment, log):
    """Returns the environment of the task. Exits like slurmstepd if pyxis fails."""
    def fail(*lines):
        for line in lines:
            print("slurmstepd: error: pyxis: " + line, file=log)
        print("slurmstepd: error: Failed to invoke spank plugin stack\nsrun: error: n7: task 0: Exited with exit code 1",
              file=log, flush=True)
        sys.exit(1)
    for mount in (options.container_mounts or "").split(","):
        parts = mount.split(":")
        if len(parts) > 3 or not parts[0] or not os.path.exists(parts[0]):
            fail(f"--container-mounts: source path does not exist: {parts[0]}")
    name, _, flag = (options.container_name or "unnamed").partition(":")
    if flag not in ("", "auto", "create", "exec", "no_exec"):
        fail('--container-name: flag must be "auto", "create", "exec" or "no_exec"')
    kept = os.path.join(ROOT, "containers", "pyxis_" + name)
    if not options.container_name or not os.path.isdir(kept):
        if not has_image(options.container_image):
            fail(f"failed to import docker image: {options.container_image}", "printing enroot log file:",
                 "    [ERROR] Could not find the image manifest")
        note("import", options.container_image)
        time.sleep(float(of_image(options.container_image, "large") or 0))
        if options.container_name:
            os.makedirs(kept)
    time.sleep(float(of_image(options.container_image, "slow") or 0))
    os.chdir(options.container_workdir or "/")
    return inside(options.container_image, environment)


def srun(words):
    if ":" in words:  # srun separates the components of a heterogeneous job by this
        print("srun: fatal: No command given to execute.", file=sys.stderr)
        sys.exit(1)
    options = parse_srun(words)
    note("srun", *words)
    environment = dict(os.environ)
    if options.container_image:
        environment = pyxis(options, environment, sys.stderr)
    step = socket.socket(socket.AF_UNIX)
    step.connect(SOCKET)
    request = json.dumps({"argv": options.command, "env": environment, "cwd": os.getcwd(), "ntasks": options.ntasks or 1})
    socket.send_fds(step, [len(request.encode()).to_bytes(8, "big")], [1, 2])
    step.sendall(request.encode())

    def stop(number, _):
        print("srun: forcing job termination" if number == signal.SIGTERM else
              "srun: interrupt (one more within 1 sec to abort)", file=sys.stderr, flush=True)
        if number == signal.SIGTERM:
            step.sendall(b"K")
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    worst = step.recv(1)[0]
    if worst:
        print(f"srun: error: n7: task 0: Exited with exit code {worst}", file=sys.stderr, flush=True)
    sys.exit(worst)


def serve(step):
    size, fds, _, _ = socket.recv_fds(step, 8, 2)
    data = b""
    while len(data) < int.from_bytes(size, "big"):
        data += step.recv(65536)
    request = json.loads(data)
    tasks = [subprocess.Popen(request["argv"], env=request["env"] | {"SLURM_PROCID": str(task)}, cwd=request["cwd"],
                              stdin=subprocess.DEVNULL, stdout=fds[0], stderr=fds[1], start_new_session=True)
             for task in range(request["ntasks"])]
    for fd in fds:
        os.close(fd)

    def listen():
        while step.recv(1) == b"K":
            for task in tasks:
                task.kill()
    threading.Thread(target=listen, daemon=True).start()
    codes = [task.wait() for task in tasks]
    step.sendall(bytes([max(code if code >= 0 else 128 - code for code in codes)]))


def stepd():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell that runs the tests in the background ignores it
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def apptainer(words):
    note("apptainer", *words)
    parser = Parser(prog="FATAL:   apptainer", allow_abbrev=False)
    parser.add_argument("action", choices=["exec"])
    parser.add_argument("--bind", action="append", default=[])
    parser.add_argument("--pwd")
    parser.add_argument("--nv", action="store_true")
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    image = options.image.removeprefix("docker://")
    if not has_image(image):
        print("FATAL:   While making image from oci registry: manifest unknown", file=sys.stderr)
        sys.exit(255)
    os.chdir(options.pwd or "/")
    os.execvpe(options.command[0], options.command, inside(image, dict(os.environ)))


def enroot(words):
    note("enroot", *words)
    if words[:2] == ["remove", "--force"]:
        shutil.rmtree(os.path.join(ROOT, "containers", words[2]), ignore_errors=True)


if __name__ == "__main__":
    name = os.path.basename(sys.argv[0])
    if name == "slurm_step.py":
        stepd()
    {"srun": srun, "apptainer": apptainer, "enroot": enroot}[name](sys.argv[1:])
