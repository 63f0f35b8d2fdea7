"""Rules that an API server, its admission or a kubelet enforces and no schema can express.

REQUIRES: the manifests have the right shape.

Each `check_…` yields (path, what is wrong).
"""

import re

import forms
import pods

CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
ANNOTATION_BYTES = 256 << 10
OBJECT_BYTES = 1 << 20
ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def check_meta(meta, path, of_template=False):
    if not of_template and not meta.get("name") and not meta.get("generateName"):
        yield f"{path}.name", "is missing"
    if "name" in meta and not forms.is_subdomain(meta["name"]):
        yield f"{path}.name", f"{meta['name']!r} is no name: lower case letters, digits, - and . alone"
    if "namespace" in meta and not forms.is_label(meta["namespace"]):
        yield f"{path}.namespace", f"{meta['namespace']!r} is no namespace's name"
    for key, value in (meta.get("labels") or {}).items():
        if not forms.is_label_key(key):
            yield f"{path}.labels", f"{key!r} is no label's key"
        if len(value) > 63 or not forms.LABEL_VALUE.fullmatch(value):
            yield f"{path}.labels.{key}", f"{value!r} is no label's value: 63 letters, digits, -, _ and . at most"
    annotations = meta.get("annotations") or {}
    for key in annotations:
        if not forms.is_label_key(key.lower()):
            yield f"{path}.annotations", f"{key!r} is no annotation's key"
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATION_BYTES:
        yield f"{path}.annotations", f"are {size} bytes, and {ANNOTATION_BYTES} is the most"


# --- Jobs

def check_job(name, spec, path):
    """`name` is the Job's name, or None for the Job of a CronJob, whose name gets a suffix."""
    template = spec["template"]
    pod = template.get("spec")
    if pod is None:
        yield f"{path}.template.spec", "is missing"
        return
    yield from check_meta(template.get("metadata") or {}, f"{path}.template.metadata", of_template=True)
    yield from pods.check(pod, f"{path}.template.spec")
    policy = pod.get("restartPolicy", "Always")
    yield from forms.one_of(policy, ("Never", "OnFailure"), f"{path}.template.spec.restartPolicy")
    for field in ("backoffLimit", "ttlSecondsAfterFinished", "parallelism", "completions"):
        yield from forms.at_least(spec.get(field), 0, f"{path}.{field}")
    yield from forms.at_least(spec.get("activeDeadlineSeconds"), 1, f"{path}.activeDeadlineSeconds")
    yield from forms.one_of(spec.get("podReplacementPolicy"), ("TerminatingOrFailed", "Failed"),
                            f"{path}.podReplacementPolicy")
    yield from forms.one_of(spec.get("completionMode"), ("NonIndexed", "Indexed"), f"{path}.completionMode")
    if "suspend" in spec:
        yield f"{path}.suspend", "is there: to apply the manifest again would suspend and kill a Job that runs"
    if "selector" in spec and not spec.get("manualSelector"):
        yield f"{path}.selector", "is the controller's to write"
    if spec.get("completionMode") == "Indexed":
        yield from check_indexed(name, spec, path)
    elif "backoffLimitPerIndex" in spec or "maxFailedIndexes" in spec or "successPolicy" in spec:
        yield path, "backoffLimitPerIndex, maxFailedIndexes and successPolicy need completionMode: Indexed"
    if pod.get("subdomain") and spec.get("completionMode") == "Indexed" and \
            spec.get("parallelism", 1) != spec.get("completions"):
        yield f"{path}.parallelism", "is not completions: pods that wait for each other would not all be there"
    if "podFailurePolicy" in spec:
        yield from check_failure_policy(spec, pod, f"{path}.podFailurePolicy")


def check_indexed(name, spec, path):
    if "completions" not in spec:
        yield f"{path}.completions", "is missing, and Indexed"
        return
    longest = f"{name}-{max(spec['completions'] - 1, 0)}"
    if name is not None and len(longest) > 63:
        yield "metadata.name", f"with the largest index, {longest}, it is longer than 63: no hostname"


def check_failure_policy(spec, pod, path):
    if pod.get("restartPolicy") != "Never":
        yield path, "needs restartPolicy: Never"
    failure_rules = spec["podFailurePolicy"].get("rules") or []
    if not 1 <= len(failure_rules) <= 20:
        yield f"{path}.rules", f"has {len(failure_rules)} rules: 1 to 20"
    names = {container["name"] for container in [*pod["containers"], *(pod.get("initContainers") or [])]}
    for number, rule in enumerate(failure_rules):
        here = f"{path}.rules[{number}]"
        yield from forms.one_of(rule["action"], ("FailJob", "FailIndex", "Ignore", "Count"), f"{here}.action")
        if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield f"{here}.action", "FailIndex needs backoffLimitPerIndex"
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if (codes is None) == (not conditions):
            yield here, "has both, or neither, of onExitCodes and onPodConditions"
        if codes is not None:
            yield from check_exit_codes(codes, names, f"{here}.onExitCodes")
        for index, pattern in enumerate(conditions or []):
            if not pattern.get("type"):
                yield f"{here}.onPodConditions[{index}].type", "is missing"
            yield from forms.one_of(pattern.get("status", "True"), ("True", "False", "Unknown"),
                              f"{here}.onPodConditions[{index}].status")


def check_exit_codes(codes, container_names, path):
    operator, values = codes.get("operator"), codes.get("values") or []
    yield from forms.one_of(operator or "", ("In", "NotIn"), f"{path}.operator")
    if not 1 <= len(values) <= 255:
        yield f"{path}.values", f"are {len(values)}: 1 to 255"
    if values != sorted(set(values)):
        yield f"{path}.values", "must be in order, each once"
    if operator == "In" and 0 in values:
        yield f"{path}.values", "0 with In: that is no failure"
    if "containerName" in codes and codes["containerName"] not in container_names:
        yield f"{path}.containerName", f"there is no container {codes['containerName']!r}"


def check_job_document(document):
    name = document["metadata"].get("name", "")
    if not forms.is_label(name):
        yield "metadata.name", f"{name!r} is no Job's name: 63 lower case letters, digits and - at most"
    if "spec" not in document:
        yield "spec", "is missing"
        return
    yield from check_job(name, document["spec"], "spec")


def check_cron_job(document):
    name = document["metadata"].get("name", "")
    if len(name) > 52 or not forms.is_label(name):
        yield "metadata.name", f"{name!r} is no CronJob's name: 52 lower case letters, digits and - at most"
    spec = document.get("spec") or {}
    if len(spec.get("schedule", "").split()) != 5 and not spec.get("schedule", "").startswith("@"):
        yield "spec.schedule", f"{spec.get('schedule')!r} has not five fields"
    yield from forms.one_of(spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"), "spec.concurrencyPolicy")
    job = (spec.get("jobTemplate") or {}).get("spec")
    if job is None:
        yield "spec.jobTemplate.spec", "is missing"
        return
    yield from check_meta(spec["jobTemplate"].get("metadata") or {}, "spec.jobTemplate.metadata", of_template=True)
    yield from check_job(None, job, "spec.jobTemplate.spec")


# --- Kinds from which other projects make Jobs

def check_job_set(document):
    name, spec = document["metadata"].get("name", ""), document["spec"]
    for number, replicated in enumerate(spec["replicatedJobs"]):
        path = f"spec.replicatedJobs[{number}]"
        job = replicated["template"].get("spec")
        if job is None:
            yield f"{path}.template.spec", "is missing"
            continue
        called = f"{name}-{replicated['name']}-{max(replicated.get('replicas', 1) - 1, 0)}"
        yield from check_job(called, job, f"{path}.template.spec")
        yield from check_made_name(f"{called}-{max(job.get('completions', 1) - 1, 0)}-abcde", path)
        if "ttlSecondsAfterFinished" in job:
            yield f"{path}.template.spec.ttlSecondsAfterFinished", "is there: the JobSet would make the Job again"


def check_runtime(document):
    spec = document["spec"]["template"]["spec"]
    yield from check_job_set({"metadata": {"name": "a-trainjobs-name"}, "spec": spec})
    names = [one["name"] for replicated in spec["replicatedJobs"]
             for one in replicated["template"]["spec"]["template"]["spec"]["containers"]
             if replicated["name"] == "node"]
    if "node" not in names:
        yield "spec.template.spec.replicatedJobs", "there is no container 'node' of a replicated job 'node'"


def check_pytorch_job(document):
    name = document["metadata"].get("name", "")
    for kind, replica in document["spec"]["pytorchReplicaSpecs"].items():
        path = f"spec.pytorchReplicaSpecs.{kind}"
        yield from forms.one_of(replica.get("restartPolicy"), ("Always", "OnFailure", "Never", "ExitCode"),
                                f"{path}.restartPolicy")
        pod = (replica.get("template") or {}).get("spec")
        if pod is None:
            yield f"{path}.template.spec", "is missing"
            continue
        yield from check_meta(replica["template"].get("metadata") or {}, f"{path}.template.metadata", of_template=True)
        yield from pods.check(pod, f"{path}.template.spec")
        if "pytorch" not in [container["name"] for container in pod["containers"]]:
            yield f"{path}.template.spec.containers", "there is no container 'pytorch'"
        yield from check_made_name(f"{name}-{kind.lower()}-{max(replica.get('replicas', 1) - 1, 0)}", path)
    yield from forms.one_of(document["spec"].get("runPolicy", {}).get("cleanPodPolicy"), ("All", "Running", "None"),
                            "spec.runPolicy.cleanPodPolicy")


def check_made_name(longest, path):
    """`longest` is the longest name that a controller would make. It must be a label of RFC 1035."""
    if not forms.is_label(longest) or not longest[0].isalpha():
        yield path, f"its controller cannot make a pod called {longest!r}"


# --- Other kinds

def check_service(document):
    spec = document.get("spec") or {}
    if not forms.is_label(document["metadata"].get("name", "")):
        yield "metadata.name", "is no Service's name: 63 lower case letters, digits and - at most"
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None":
        yield "spec.ports", "is missing, and it is not headless"
    for number, port in enumerate(ports):
        if not 1 <= port["port"] <= 65535:
            yield f"spec.ports[{number}].port", f"{port['port']} is no port"
        if len(ports) > 1 and not port.get("name"):
            yield f"spec.ports[{number}].name", "is missing, and there are several"


def check_config_map(document):
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    for key in [*data, *binary]:
        if len(key) > 253 or not CONFIG_KEY.fullmatch(key) or key in (".", ".."):
            yield "data", f"{key!r} is no key: letters, digits, -, _ and . alone"
        if key in data and key in binary:
            yield "binaryData", f"{key!r} is in data, too"
    size = sum(len(key.encode()) + len(value.encode()) for key, value in [*data.items(), *binary.items()])
    if size > OBJECT_BYTES:
        yield "data", f"is {size} bytes, and {OBJECT_BYTES} is the most"


def check_claim(document):
    spec = document.get("spec") or {}
    if not spec.get("accessModes"):
        yield "spec.accessModes", "is missing"
    for mode in spec.get("accessModes") or []:
        yield from forms.one_of(mode, ACCESS_MODES, "spec.accessModes")
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        yield "spec.resources.requests.storage", "is missing"
    elif forms.quantity(amount) is None or forms.quantity(amount) <= 0:
        yield "spec.resources.requests.storage", f"{amount!r} is no amount"


def check_role(document):
    for number, rule in enumerate(document["rules"]):
        if not rule.get("nonResourceURLs") and ("apiGroups" not in rule or not rule.get("resources")):
            yield f"rules[{number}]", "names no apiGroups, or no resources"


def check_binding(document):
    for number, subject in enumerate(document.get("subjects") or []):
        if subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            yield f"subjects[{number}].namespace", "is missing"
        if subject["kind"] != "ServiceAccount" and subject.get("apiGroup", "rbac.authorization.k8s.io") != \
                "rbac.authorization.k8s.io":
            yield f"subjects[{number}].apiGroup", f"{subject['apiGroup']!r} is not rbac.authorization.k8s.io"


CHECKS = {
    "Job": check_job_document, "CronJob": check_cron_job, "Service": check_service, "ConfigMap": check_config_map,
    "PersistentVolumeClaim": check_claim, "Role": check_role, "ClusterRole": check_role, "RoleBinding": check_binding,
    "ClusterRoleBinding": check_binding, "JobSet": check_job_set,
    "PyTorchJob": check_pytorch_job, "TrainingRuntime": check_runtime, "ClusterTrainingRuntime": check_runtime,
}


def of_document(document):
    problems = []
    if document["kind"] != "Kustomization":
        problems += check_meta(document["metadata"], "metadata")
    if document["kind"] in CHECKS:
        problems += CHECKS[document["kind"]](document)
    return problems


def of_file(documents):
    """Returns the faults between a file's documents, as (number, path, what)."""
    problems, seen = [], set()
    for number, document in enumerate(documents, 1):
        meta = document.get("metadata") or {}
        identity = (document["kind"], meta.get("namespace"), meta.get("name"))
        if meta.get("name") and identity in seen:
            problems.append((number, "metadata.name", f"{meta['name']!r} is there twice"))
        seen.add(identity)
        if document["kind"] == "Job":
            problems += [(number, *problem) for problem in check_gang(document, documents)]
    return problems


def check_gang(job, documents):
    """Yields the faults of a Job's Service. Pods find each other by names, which they get from a headless service with the
    name of their subdomain."""
    template = job["spec"]["template"]
    subdomain = template["spec"].get("subdomain")
    if not subdomain:
        return
    path = "spec.template.spec.subdomain"
    services = [one for one in documents if one["kind"] == "Service" and one["metadata"].get("name") == subdomain]
    if not services:
        yield path, f"there is no Service {subdomain!r} beside it"
        return
    spec = services[0].get("spec") or {}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), "job-name": job["metadata"].get("name"),
              "batch.kubernetes.io/job-name": job["metadata"].get("name")}
    if spec.get("clusterIP") != "None":
        yield path, f"the Service {subdomain!r} is not headless: it has no clusterIP: None"
    if not spec.get("publishNotReadyAddresses"):
        yield path, f"the Service {subdomain!r} has no publishNotReadyAddresses: names come late"
    selector = spec.get("selector") or {}
    if not selector or any(labels.get(key) != value for key, value in selector.items()):
        yield path, f"the Service {subdomain!r} does not select its pods"
