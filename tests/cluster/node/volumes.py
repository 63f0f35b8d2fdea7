"""A pod's volumes as folders of the host."""

import base64
import dataclasses
import os
import stat

import spec
from api import Refused


@dataclasses.dataclass
class Volume:
    path: str
    read_only: bool = False


class Objects:
    """Looks up the objects that a pod's manifest refers to."""

    def __init__(self, api):
        self._api = api

    def get(self, path):
        """Returns the object, or None if it does not exist."""
        try:
            return self._api.get(path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def data(self, namespace, kind, name):
        """Returns the bytes of a configMap or secret by key, or None if it does not exist."""
        found = self.get(f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}")
        if found is None:
            return None
        data = {key: base64.b64decode(text) for key, text in (found.get("binaryData") or {}).items()}
        for key, text in (found.get("data") or {}).items():
            data[key] = base64.b64decode(text) if kind == "secret" else text.encode()
        return data


def not_yet(message):
    """A kubelet says this in an event. Meanwhile the pod's containers have the state ContainerCreating."""
    return spec.Waiting("ContainerCreating", message)


class Volumes:
    """The volumes of one pod. The constructor may raise spec.Waiting; then the caller tries again."""

    def __init__(self, pod, folder, objects):
        self._pod, self._folder, self._objects = pod, folder, objects
        self._namespace = pod["metadata"]["namespace"]
        self._group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
        self._volumes = {}
        for volume in pod["spec"].get("volumes") or []:
            self._volumes[volume["name"]] = self._make(volume)

    def _make(self, volume):
        path = os.path.join(self._folder, "volumes", volume["name"])
        if "emptyDir" in volume:
            return self._make_empty(path)
        if "hostPath" in volume:
            return self._host_path(volume["hostPath"])
        if "persistentVolumeClaim" in volume:
            return self._claimed(volume["persistentVolumeClaim"])
        if "projected" in volume:
            projected = volume["projected"]
            sources = [item for source in projected.get("sources") or [] for item in source.items()]
            return self._write(path, projected.get("defaultMode", 0o644), sources)
        for kind in ("configMap", "secret", "downwardAPI"):
            if kind in volume:
                source = dict(volume[kind])
                if "secretName" in source:
                    source["name"] = source.pop("secretName")
                return self._write(path, source.get("defaultMode", 0o644), [(kind, source)])
        raise not_yet(f"volume {volume['name']}: this double of a kubelet knows no such kind")

    def _make_empty(self, path):
        os.makedirs(path, exist_ok=True)
        mode = 0o777
        if self._group is not None:
            os.chown(path, 0, self._group)
            mode |= stat.S_ISGID
        os.chmod(path, mode)
        return Volume(path)

    @staticmethod
    def _host_path(source):
        path, kind = source["path"], source.get("type") or ""
        if kind == "Directory" and not os.path.isdir(path):
            raise not_yet(f"hostPath type check failed: {path} is not a directory")
        if kind == "File" and not os.path.isfile(path):
            raise not_yet(f"hostPath type check failed: {path} is not a file")
        if not os.path.exists(path):
            os.makedirs(path)
        return Volume(path)

    def _claimed(self, source):
        name = source["claimName"]
        claim = self._objects.get(f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims/{name}")
        if claim is None or claim["status"].get("phase") != "Bound":
            raise not_yet(f'persistentvolumeclaim "{name}" is not bound')
        volume = self._objects.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
        if volume is None or not (volume["spec"].get("hostPath") or volume["spec"].get("local")):
            raise not_yet(f'persistentvolumeclaim "{name}": this double of a kubelet knows hostPath and local alone')
        place = volume["spec"].get("hostPath") or volume["spec"]["local"]
        return dataclasses.replace(self._host_path(place), read_only=source.get("readOnly", False))

    def _write(self, path, mode, sources):
        """Writes the contents of the sources as files, and returns their volume."""
        os.makedirs(path, exist_ok=True)
        for kind, source in sources:
            for name, content, own_mode in self._files(kind, source):
                file = os.path.join(path, name)
                os.makedirs(os.path.dirname(file), exist_ok=True)
                with open(file, "wb") as out:
                    out.write(content)
                final = mode if own_mode is None else own_mode
                if self._group is not None:
                    os.chown(file, 0, self._group)
                    final |= 0o440
                os.chmod(file, final)
        return Volume(path, read_only=True)

    def _files(self, kind, source):
        """Returns (path, content, mode or None) of each file of a source."""
        items = source.get("items") or []
        if kind == "downwardAPI":
            return [(item["path"], spec.field(self._pod, item["fieldRef"]["fieldPath"]).encode(), item.get("mode"))
                    for item in items]
        if kind not in ("configMap", "secret"):
            raise not_yet(f"projected {kind}: this double of a kubelet knows no such source")
        data = self._objects.data(self._namespace, kind, source["name"])
        if data is None:
            if source.get("optional"):
                return []
            raise not_yet(f'{kind.lower()} "{source["name"]}" not found')
        if not items:
            return [(key, content, None) for key, content in data.items()]
        missing = [item["key"] for item in items if item["key"] not in data]
        if missing and not source.get("optional"):
            raise not_yet(f"references non-existent config key: {missing[0]}")
        return [(item["path"], data[item["key"]], item.get("mode")) for item in items if item["key"] in data]

    def mounts(self, container, environment):
        """Returns a container's mounts, each as the runtime's [host's path, path inside, read-only]."""
        mounts = []
        for mount in container.get("volumeMounts") or []:
            volume = self._volumes[mount["name"]]
            inside = mount.get("subPath") or spec.expand(mount.get("subPathExpr") or "", environment)
            path = os.path.normpath(os.path.join(volume.path, inside))
            if not f"{path}/".startswith(os.path.normpath(volume.path) + "/"):
                raise spec.config_error(f'failed to prepare subPath for volumeMount "{mount["name"]}": it leads out of it')
            read_only = volume.read_only or mount.get("readOnly", False)
            if not os.path.exists(path):
                if volume.read_only:
                    raise spec.config_error(f'failed to prepare subPath for volumeMount "{mount["name"]}"')
                self._make_sub_path(volume, path)
            mounts.append([path, mount["mountPath"], read_only])
        return mounts

    def _make_sub_path(self, volume, path):
        above = os.stat(volume.path)
        os.makedirs(path)
        os.chown(path, above.st_uid, above.st_gid)
        os.chmod(path, stat.S_IMODE(above.st_mode))
