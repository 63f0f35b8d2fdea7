"""The names that a cluster's DNS would have for pods. They go into the /etc/hosts of this node's pods."""

import os
import threading

import spec
from api import Watch


class Names:
    """The names of all pods. A pod with a hostname and a subdomain has a name while a headless service of the subdomain's
    name selects it. The name of a headless service stands for all pods that it selects."""

    def __init__(self, api):
        self._lock = threading.Lock()
        self._pods = {}  # uid -> pod, of every node
        self._services = {}  # (namespace, name) -> headless service
        self._files = {}  # uid -> (the pod here, its hosts file)
        Watch(api, "/api/v1/services", self._services_listed, self._service_changed)

    def hosts_file(self, pod):
        """Returns the path of the pod's hosts file, which stays up to date until the pod is forgotten."""
        path = os.path.join(pod.folder, "hosts")
        with self._lock:
            self._files[pod.uid] = (pod.manifest, path)
            self._write(only=pod.uid)
        return path

    def forget(self, uid):
        with self._lock:
            self._files.pop(uid, None)

    def pods_listed(self, pods):
        with self._lock:
            self._pods = {pod["metadata"]["uid"]: pod for pod in pods}
            self._write()

    def pod_changed(self, kind, pod):
        with self._lock:
            if kind == "DELETED":
                self._pods.pop(pod["metadata"]["uid"], None)
            else:
                self._pods[pod["metadata"]["uid"]] = pod
            if any(selects(service, pod) for service in self._services.values()):
                self._write(pod["metadata"]["namespace"])

    def _services_listed(self, services):
        with self._lock:
            self._services = {}
            for service in services:
                self._keep(service)
            self._write()

    def _service_changed(self, kind, service):
        with self._lock:
            if kind == "DELETED":
                self._services.pop((service["metadata"]["namespace"], service["metadata"]["name"]), None)
            else:
                self._keep(service)
            self._write(service["metadata"]["namespace"])

    def _keep(self, service):
        if service["spec"].get("clusterIP") == "None":
            self._services[service["metadata"]["namespace"], service["metadata"]["name"]] = service

    def _names(self, pod):
        """Yields the names that DNS has for a pod."""
        conditions = (pod.get("status") or {}).get("conditions") or []
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        for service in self._services.values():
            if selects(service, pod) and (ready or service["spec"].get("publishNotReadyAddresses")):
                name = service["metadata"]["name"]
                yield name
                if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == name:
                    yield f"{pod['spec']['hostname']}.{name}"

    def _write(self, namespace=None, only=None):
        """Writes the hosts files of a namespace, of one pod, or of all pods."""
        peers = {}  # namespace -> lines
        for pod in self._pods.values():
            for name in self._names(pod):
                home = pod["metadata"]["namespace"]
                suffixes = ("", f".{home}", f".{home}.svc", f".{home}.svc.cluster.local")
                line = " ".join([spec.address(pod), *(name + suffix for suffix in suffixes)])
                peers.setdefault(home, []).append(line + "\n")
        for uid, (pod, path) in list(self._files.items()):
            home = pod["metadata"]["namespace"]
            if namespace in (None, home) and only in (None, uid):
                own = f"{spec.address(pod)} {pod['spec'].get('hostname') or pod['metadata']['name']}\n"
                try:
                    replace(path, "127.0.0.1 localhost\n" + own + "".join(sorted(peers.get(home, []))))
                except FileNotFoundError:  # a pod's folder is removed before the API reports it
                    del self._files[uid]


def selects(service, pod):
    """Returns whether a headless service selects a pod that has a node."""
    selector, labels = service["spec"].get("selector"), pod["metadata"].get("labels") or {}
    return bool(selector and pod["spec"].get("nodeName") and
                service["metadata"]["namespace"] == pod["metadata"]["namespace"] and
                all(labels.get(key) == value for key, value in selector.items()))


def replace(path, text):
    """Writes a file in place, as the file itself is mounted. Raises FileNotFoundError if its folder is gone."""
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        if file.read() == text:
            return
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, text.encode(), 0)
        os.ftruncate(file, len(text.encode()))
    finally:
        os.close(file)
