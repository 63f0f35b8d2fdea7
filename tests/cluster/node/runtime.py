"""Runs containers as processes. It does for the node what containerd and runc do for a kubelet.

It is a program of its own with one thread, because a program with several threads must not fork. A container's first
process is PID 1 of its own PID namespace. So only SIGKILL ends it, or a signal that it handles, and its end ends all
processes of the container. The container's folders are in a mount namespace, so the host's stay as they are.

Reads requests on stdin and answers on stdout, a JSON object a line:
  {"id": …, "start": {…}}    starts a container, see Container. The answer is {"id": …, "started": pid} or
                             {"id": …, "refused": why}. After "started", {"id": …, "ended": exit code} follows at its end
  {"id": …, "signal": 15}    sends a signal to its first process
When stdin ends, it kills every container.
"""

import ctypes
import dataclasses
import datetime
import json
import os
import selectors
import signal
import socket
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
LAST_CAPABILITY = 40
LOG_PART_BYTES = 16384  # containerd's limit: it logs a longer line in parts
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind=None, flags=0, options=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    check(libc.mount(*encoded, ctypes.c_ulong(flags), None if options is None else options.encode()),
          f"mount {source or kind} on {target}")


def bind(source, target, read_only):
    mount(source, target, None, MS_BIND)
    if read_only:
        mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def unshare(flags):
    check(libc.unshare(flags), "unshare")


class Refusal(Exception):
    """A container's program does not start. The text is the reason in runc's words."""


@dataclasses.dataclass
class Container:
    """The content of a request to start a container."""

    argv: list
    env: dict
    cwd: str
    hostname: str
    log: str  # the path of its log, in the format that kubelets read
    uid: int
    gid: int
    groups: list
    capabilities: list  # the numbers of all that its processes may ever have
    may_gain_privileges: bool
    read_only_root: bool
    image: list  # [host's path, path inside], read-only, in addition to the host's programs and libraries
    mounts: list  # [host's path, path inside, read-only]

    def build_root(self, root):
        """Mounts a tmpfs over `root`, with the host's programs, the image's folders and the volumes in it."""
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount("tmpfs", root, "tmpfs", 0, "mode=755")
        for folder, mode in (("proc", 0o555), ("sys", 0o555), ("dev", 0o755), ("dev/shm", 0o755), ("tmp", 0o1777),
                             ("run", 0o755), ("var", 0o755), ("var/tmp", 0o1777), ("root", 0o700)):
            os.mkdir(f"{root}/{folder}")
            os.chmod(f"{root}/{folder}", mode)
        mount("proc", root + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        bind("/sys", root + "/sys", True)
        self._make_devices(root + "/dev")
        for name in ("usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if os.path.islink(f"/{name}"):
                os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
            elif os.path.isdir(f"/{name}"):
                self._mount(root, f"/{name}", f"/{name}", True)
        for source, target in self.image:
            self._mount(root, source, target, True)
        for source, target, read_only in sorted(self.mounts, key=lambda mount: mount[1]):
            self._mount(root, source, target, read_only)
        if not os.path.isdir(root + self.cwd):
            os.makedirs(root + self.cwd)
        if self.read_only_root:
            mount(None, root, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
        os.chroot(root)

    @staticmethod
    def _make_devices(folder):
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            if not os.path.exists(f"/dev/{name}"):
                continue
            with open(f"{folder}/{name}", "wb"):
                pass
            bind(f"/dev/{name}", f"{folder}/{name}", False)
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                             ("stderr", "/proc/self/fd/2")):
            os.symlink(target, f"{folder}/{name}")
        mount("shm", f"{folder}/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=64m")

    @staticmethod
    def _mount(root, source, target, read_only):
        point = root + os.path.normpath("/" + target)
        if os.path.isdir(source):
            os.makedirs(point, exist_ok=True)
        elif not os.path.exists(point):
            os.makedirs(os.path.dirname(point), exist_ok=True)
            with open(point, "wb"):
                pass
        bind(source, point, read_only)

    def become_its_user(self):
        for number in range(LAST_CAPABILITY + 1):
            if number not in self.capabilities:
                libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "pdeathsig")
        if not self.may_gain_privileges:
            check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")

    def program(self):
        name = self.argv[0]
        if "/" in name:
            if not os.path.exists(name):
                raise Refusal(f'exec: "{name}": stat {name}: no such file or directory')
            candidates = [name]
        else:
            folders = self.env.get("PATH", "").split(":")
            candidates = [path for path in (f"{folder}/{name}" for folder in folders) if os.path.isfile(path)]
            if not candidates:
                raise Refusal(f'exec: "{name}": executable file not found in $PATH')
        for path in candidates:
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        raise Refusal(f'exec: "{name}": permission denied')

    def enter(self, root, output):
        """Turns this process into the container. Raises if it cannot. `output` is the file descriptor for its output."""
        os.setsid()
        unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC)
        socket.sethostname(self.hostname)
        self.build_root(root)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.fchown(output, self.uid, self.gid)  # otherwise it could not open /dev/stdout
        os.dup2(output, 1)
        os.dup2(output, 2)
        self.become_its_user()
        os.chdir(self.cwd)
        path = self.program()
        os.umask(0o022)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
            signal.signal(ignored, signal.SIG_DFL)
        try:
            os.execve(path, self.argv, self.env)
        except OSError as error:
            raise Refusal(f'exec: "{self.argv[0]}": {os.strerror(error.errno).lower()}') from error


class Log:
    """Writes a container's output to a file, with the time of each line."""

    def __init__(self, source, path):
        self.source = source
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._rest = b""

    def take(self):
        """Writes what there is to read. Returns False at the end of the output."""
        data = os.read(self.source, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            lines, self._rest = [self._rest], b""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
        os.write(self._file, b"".join(self._entries(now, line) for line in lines))
        return bool(data)

    @staticmethod
    def _entries(now, line):
        parts = [line[at:at + LOG_PART_BYTES] for at in range(0, len(line), LOG_PART_BYTES)] or [b""]
        tags = [b"P"] * (len(parts) - 1) + [b"F"]
        return b"".join(b"%s stdout %s %s\n" % (now, tag, part) for tag, part in zip(tags, parts))

    def close(self):
        os.close(self.source)
        os.close(self._file)


class Runtime:
    def __init__(self, root):
        """`root` is an empty folder, over which each container mounts its own root."""
        self._root = root
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._running = {}  # pid -> (id, Log)
        self._selector = selectors.DefaultSelector()
        self._requests = b""

    def run(self):
        ended, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._reap(ended))
        self._selector.register(0, selectors.EVENT_READ, self._take_requests)
        while True:
            for key, _ in self._selector.select():
                # An earlier call of this round may have closed the log, and another file may have its number now.
                if self._selector.get_map().get(key.fd) == key:
                    key.data()

    @staticmethod
    def _answer(container_id, **what):
        sys.stdout.write(json.dumps({"id": container_id, **what}) + "\n")
        sys.stdout.flush()

    def _take_requests(self):
        data = os.read(0, 1 << 16)
        if not data:
            for pid in self._running:
                os.kill(pid, signal.SIGKILL)
            sys.exit()
        *lines, self._requests = (self._requests + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "start" in request:
                self._start(request["id"], Container(**request["start"]))
            else:
                for pid, (container_id, _) in self._running.items():
                    if container_id == request["id"]:
                        os.kill(pid, request["signal"])

    def _start(self, container_id, container):
        printed, output = os.pipe()
        refusal, refuse = os.pipe()  # exec closes these
        unshare(CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            try:
                container.enter(self._root, output)
            except BaseException as error:  # the child must not return
                os.write(refuse, (str(error) or repr(error)).encode())
            os._exit(128)
        check(libc.setns(self._own_pids, CLONE_NEWPID), "setns")
        os.close(output)
        os.close(refuse)
        with os.fdopen(refusal, "rb") as file:
            why = file.read().decode(errors="replace")
        if why:
            os.waitpid(pid, 0)
            os.close(printed)
            self._answer(container_id, refused=why)
            return
        log = Log(printed, container.log)
        self._running[pid] = (container_id, log)
        self._selector.register(printed, selectors.EVENT_READ, lambda: self._take_log(log))
        self._answer(container_id, started=pid)

    def _take_log(self, log):
        if not log.take():
            self._selector.unregister(log.source)

    def _reap(self, ended):
        os.read(ended, 4096)
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            container_id, log = self._running.pop(pid)
            if log.source in self._selector.get_map():
                self._selector.unregister(log.source)
                while log.take():  # no process is left that could print
                    pass
            log.close()
            code = os.waitstatus_to_exitcode(status)
            self._answer(container_id, ended=code if code >= 0 else 128 - code)


if __name__ == "__main__":
    Runtime(sys.argv[1]).run()
