"""Turns a pod's manifest into values: its environment, its user, its fields."""

import hashlib
import pwd
import re

CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()
# containerd's defaults.
DEFAULT_CAPABILITIES = frozenset(
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE".split())


class Waiting(Exception):
    """A container cannot start yet. A kubelet would report the reason and try again."""

    def __init__(self, reason, message=None):
        super().__init__(message or reason)
        self.reason, self.message = reason, message


def config_error(message):
    return Waiting("CreateContainerConfigError", message)


def address(pod):
    """Returns the pod's own address on the loopback device, which has all of 127.0.0.0/8. So two pods may listen on the
    same port."""
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    return "127.{}.{}.{}".format(*(1 + byte % 254 for byte in digest[:3]))


def field(pod, path):
    """Returns a fieldRef's value."""
    subscript = re.fullmatch(r"metadata\.(annotations|labels)\['(.+)'\]", path)
    if subscript:
        return (pod["metadata"].get(subscript[1]) or {}).get(subscript[2], "")
    known = {"status.podIP": address(pod), "status.podIPs": address(pod), "status.hostIP": "127.0.0.1"}
    if path in known:
        return known[path]
    value = pod
    for name in path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    if isinstance(value, dict):  # a volume may ask for all labels or all annotations
        return "".join(f'{key}="{text}"\n' for key, text in sorted(value.items()))
    return str(value)


def expand(text, environment):
    """Replaces $(NAME) by the variable, if there is one, and $$ by a dollar sign."""
    def replacement(match):
        return "$" if match[0] == "$$" else environment.get(match[1], match[0])
    return re.sub(r"\$\$|\$\(([^()]*)\)", replacement, text)


class Environment:
    """A container's variables. `objects` looks up configMaps and secrets."""

    def __init__(self, pod, container, objects, image_path):
        self.values = {
            "PATH": ":".join([*image_path, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]),
            "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        }
        self._pod, self._objects = pod, objects
        for source in container.get("envFrom") or []:
            self._add_all(source)
        for variable in container.get("env") or []:
            value = self._value(variable)
            if value is not None:
                self.values[variable["name"]] = value

    def _add_all(self, source):
        kind = "configMap" if "configMapRef" in source else "secret"
        reference = source[kind + "Ref"]
        data = self._data(kind, reference)
        for key, value in (data or {}).items():
            self.values[source.get("prefix", "") + key] = value.decode(errors="replace")

    def _data(self, kind, reference):
        data = self._objects.data(self._pod["metadata"]["namespace"], kind, reference["name"])
        if data is None and not reference.get("optional"):
            raise config_error(f'{kind.lower()} "{reference["name"]}" not found')
        return data

    def _value(self, variable):
        source = variable.get("valueFrom")
        if not source:
            return expand(variable.get("value") or "", self.values)
        if "fieldRef" in source:
            return field(self._pod, source["fieldRef"]["fieldPath"])
        for kind in ("configMap", "secret"):
            reference = source.get(kind + "KeyRef")
            if reference:
                data = self._data(kind, reference)
                if data is not None and reference["key"] in data:
                    return data[reference["key"]].decode(errors="replace")
                if reference.get("optional"):
                    return None
                words = {"configMap": "ConfigMap", "secret": "Secret"}[kind]
                raise config_error(f"couldn't find key {reference['key']} in {words} "
                                   f"{self._pod['metadata']['namespace']}/{reference['name']}")
        raise config_error(f"{variable['name']}: this double of a kubelet knows no {', '.join(source)}")


def identity(pod, container):
    """Returns the users, groups and rights of a container's processes, as the runtime's fields of those names."""
    of_pod = pod["spec"].get("securityContext") or {}
    own = {**of_pod, **(container.get("securityContext") or {})}
    uid = own.get("runAsUser", 0)  # the image's user is 0
    if own.get("runAsNonRoot") and uid == 0:
        if "runAsUser" in own:
            raise config_error("container's runAsUser breaks non-root policy")
        raise config_error("container has runAsNonRoot and image will run as root")
    try:
        usual_group = pwd.getpwuid(uid).pw_gid
    except KeyError:
        usual_group = 0
    capabilities = own.get("capabilities") or {}
    kept = set(DEFAULT_CAPABILITIES)
    if own.get("privileged") or "ALL" in (capabilities.get("add") or []):
        kept = set(CAPABILITIES)
    dropped = capabilities.get("drop") or []
    kept = (set() if "ALL" in dropped else kept - set(dropped)) | (set(capabilities.get("add") or []) - {"ALL"})
    return {
        "uid": uid,
        "gid": own.get("runAsGroup", usual_group),
        "groups": [*(of_pod.get("supplementalGroups") or []), *([of_pod["fsGroup"]] if "fsGroup" in of_pod else [])],
        "capabilities": sorted(CAPABILITIES.index(name) for name in kept if name in CAPABILITIES),
        "may_gain_privileges": own.get("allowPrivilegeEscalation", True),
        "read_only_root": own.get("readOnlyRootFilesystem", False),
    }
