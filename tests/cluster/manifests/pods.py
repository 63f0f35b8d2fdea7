"""The rules of a pod's spec: see rules.py."""

import re

import forms

# registry[:port]/path[:tag][@digest]
IMAGE = re.compile(r"([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*"
                   r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?")
HOST_PATHS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def check(pod, path):
    names = []
    for number, container in enumerate(pod["containers"]):
        names.append((container["name"], f"{path}.containers[{number}]"))
        yield from check_container(container, pod, f"{path}.containers[{number}]")
    for number, container in enumerate(pod.get("initContainers") or []):
        names.append((container["name"], f"{path}.initContainers[{number}]"))
        yield from check_container(container, pod, f"{path}.initContainers[{number}]")
    yield from check_names(names)
    if not pod["containers"]:
        yield f"{path}.containers", "there is none"
    yield from check_volumes(pod.get("volumes") or [], f"{path}.volumes")
    yield from forms.at_least(pod.get("activeDeadlineSeconds"), 1, f"{path}.activeDeadlineSeconds")
    yield from forms.at_least(pod.get("terminationGracePeriodSeconds"), 0, f"{path}.terminationGracePeriodSeconds")
    for field in ("hostname", "subdomain"):
        if field in pod and not forms.is_label(pod[field]):
            yield f"{path}.{field}", f"{pod[field]!r} is none: 63 lower case letters, digits and - at most"
    for field in ("serviceAccountName", "priorityClassName"):
        if pod.get(field) and not forms.is_subdomain(pod[field]):
            yield f"{path}.{field}", f"{pod[field]!r} is no name"
    for key, value in (pod.get("nodeSelector") or {}).items():
        if not forms.is_label_key(key) or len(value) > 63 or not forms.LABEL_VALUE.fullmatch(value):
            yield f"{path}.nodeSelector.{key}", f"{value!r} is no label's value, or that no key"
    for number, toleration in enumerate(pod.get("tolerations") or []):
        yield from check_toleration(toleration, f"{path}.tolerations[{number}]")
    yield from check_affinity(pod.get("affinity") or {}, f"{path}.affinity")


def check_names(named):
    seen = set()
    for name, path in named:
        if not forms.is_label(name):
            yield f"{path}.name", f"{name!r} is no name: 63 lower case letters, digits and - at most"
        if name in seen:
            yield f"{path}.name", f"{name!r} is there twice"
        seen.add(name)


def check_toleration(toleration, path):
    operator = toleration.get("operator", "Equal")
    yield from forms.one_of(operator, ("Equal", "Exists"), f"{path}.operator")
    yield from forms.one_of(toleration.get("effect", ""), ("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
                            f"{path}.effect")
    if operator == "Exists" and toleration.get("value"):
        yield f"{path}.value", "is there, with Exists"
    if operator == "Equal" and not toleration.get("key"):
        yield f"{path}.key", "is missing: only Exists tolerates every key"
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        yield f"{path}.tolerationSeconds", "is there, with another effect than NoExecute"


def check_affinity(affinity, path):
    node = affinity.get("nodeAffinity") or {}
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = list(needed.get("nodeSelectorTerms") or [])
    terms += [one.get("preference") or {} for one in node.get("preferredDuringSchedulingIgnoredDuringExecution") or []]
    for expression in (one for term in terms for one in term.get("matchExpressions") or []):
        operator, values = expression.get("operator"), expression.get("values") or []
        yield from forms.one_of(operator, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), f"{path}.nodeAffinity")
        if (operator in ("In", "NotIn")) != bool(values) and operator not in ("Gt", "Lt"):
            yield f"{path}.nodeAffinity", f"{expression.get('key')}: {operator} with values {values}"


# --- Volumes

def check_volumes(volumes, path):
    yield from check_names([(volume["name"], f"{path}[{number}]") for number, volume in enumerate(volumes)])
    for number, volume in enumerate(volumes):
        here, sources = f"{path}[{number}]", [key for key in volume if key != "name"]
        if len(sources) != 1:
            yield here, f"has {len(sources)} sources: {', '.join(sources) or 'none'}"
        empty = volume.get("emptyDir") or {}
        medium = empty.get("medium", "")
        if medium not in ("", "Memory") and not medium.startswith("HugePages"):
            yield f"{here}.emptyDir.medium", f"{medium!r} is none"
        if "sizeLimit" in empty and forms.quantity(empty["sizeLimit"]) is None:
            yield f"{here}.emptyDir.sizeLimit", f"{empty['sizeLimit']!r} is no amount"
        host = volume.get("hostPath")
        if host:
            yield from forms.one_of(host.get("type", ""), HOST_PATHS, f"{here}.hostPath.type")
            if ".." in host["path"].split("/"):
                yield f"{here}.hostPath.path", "has .. in it"
        for kind in ("configMap", "secret", "projected", "downwardAPI"):
            mode = (volume.get(kind) or {}).get("defaultMode", 0)
            if not 0 <= mode <= 0o777:
                yield f"{here}.{kind}.defaultMode", f"{mode} is none of 0 to 511 (0777)"


def check_mounts(container, pod, path):
    known = {volume["name"] for volume in pod.get("volumes") or []}
    seen = set()
    for number, mount in enumerate(container.get("volumeMounts") or []):
        here, where = f"{path}.volumeMounts[{number}]", mount["mountPath"]
        if mount["name"] not in known:
            yield f"{here}.name", f"there is no volume {mount['name']!r}"
        if where in seen:
            yield f"{here}.mountPath", f"{where} is there twice"
        seen.add(where)
        if not where.startswith("/") or ":" in where:
            yield f"{here}.mountPath", f"{where!r} is no absolute path, or has a colon in it"
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield here, "has both subPath and subPathExpr"
        inside = mount.get("subPath") or mount.get("subPathExpr") or ""
        if inside.startswith("/") or ".." in inside.split("/"):
            yield f"{here}.subPath", f"{inside!r} leads out of the volume"


# --- Containers

def check_container(container, pod, path):
    image = container.get("image", "")
    if not image or not IMAGE.fullmatch(image):
        yield f"{path}.image", f"{image!r} is no image's name"
    yield from forms.one_of(container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"), f"{path}.imagePullPolicy")
    yield from forms.one_of(container.get("terminationMessagePolicy"), ("File", "FallbackToLogsOnError"),
                            f"{path}.terminationMessagePolicy")
    yield from check_environment(container.get("env") or [], f"{path}.env")
    yield from check_mounts(container, pod, path)
    yield from check_resources(container.get("resources") or {}, f"{path}.resources")
    own = {**(pod.get("securityContext") or {}), **(container.get("securityContext") or {})}
    if own.get("runAsNonRoot") and own.get("runAsUser") == 0:
        yield f"{path}.securityContext", "runAsNonRoot, and runAsUser is 0"
    if own.get("privileged") and own.get("allowPrivilegeEscalation") is False:
        yield f"{path}.securityContext", "privileged, and allowPrivilegeEscalation is false"


def check_environment(variables, path):
    seen = set()
    for number, variable in enumerate(variables):
        name = variable["name"]
        if not VARIABLE.fullmatch(name):
            yield f"{path}[{number}].name", f"{name!r} is no variable's name"
        if name in seen:
            yield f"{path}[{number}].name", f"{name!r} is there twice: the last one counts"
        seen.add(name)
        source = variable.get("valueFrom")
        if source is not None and variable.get("value"):
            yield f"{path}[{number}]", "has both value and valueFrom"
        if source is not None and len(source) != 1:
            yield f"{path}[{number}].valueFrom", f"has {len(source)} sources"


def whole_and_equal(name):
    """Returns whether the resource comes in whole units that a container does not share, so its request equals its limit."""
    return name.startswith("hugepages-") or ("/" in name and not name.startswith("kubernetes.io/"))


def check_resources(resources, path):
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            amount = forms.quantity(text)
            if amount is None or amount < 0:
                yield f"{path}.{kind}.{name}", f"{text!r} is no amount"
                return
            if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
                yield f"{path}.{kind}.{name}", "is no resource"
            if whole_and_equal(name) and amount.denominator != 1:
                yield f"{path}.{kind}.{name}", f"{text!r} is not whole"
            if name.startswith("hugepages-"):
                page = forms.quantity(name.removeprefix("hugepages-"))
                if not page or amount % page:
                    yield f"{path}.{kind}.{name}", f"{text!r} is no multiple of the page"
    for name in {**limits, **requests}:
        if whole_and_equal(name):
            if name not in limits:
                yield f"{path}.limits.{name}", "is missing: what is requested of it must be its limit"
            elif forms.quantity(requests.get(name, limits[name])) != forms.quantity(limits[name]):
                yield f"{path}.requests.{name}", f"{requests[name]!r} is not its limit, {limits[name]!r}"
        elif name in limits and name in requests and forms.quantity(requests[name]) > forms.quantity(limits[name]):
            yield f"{path}.requests.{name}", f"{requests[name]!r} is more than its limit, {limits[name]!r}"
    if any(name.startswith("hugepages-") for name in {**limits, **requests}) and \
            not {"cpu", "memory"} & {*limits, *requests}:
        yield path, "hugepages need cpu or memory beside them"
