"""Kubeflow Trainer's controller of TrainJobs, written from its release v2.3.0 (pkg/controller/trainjob_controller.go,
pkg/runtime/core, and the plugins jobset, plainml and torch of pkg/runtime/framework).

It makes a JobSet from a TrainJob and its runtime. JobSet's controller follows this JobSet, and the TrainJob gets its end.
"""

import copy

import api
import jobset
from world import age_seconds, holds, owned_by, with_condition

VERSION = "trainer.kubeflow.org/v1alpha1"
NODE = "node"  # the name of the trainer's replicated job and of its container in a runtime
PORT = "29500"
KEYS = {"volumeMounts": "mountPath"}  # the keys of lists whose items have no name


def merged(base, patch, key="name"):
    """Returns a strategic merge, with what the patches of a runtime need."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {**base, **{name: merged(base.get(name), value, KEYS.get(name, "name")) for name, value in patch.items()}}
    if isinstance(base, list) and isinstance(patch, list) and all(key in one for one in [*base, *patch]):
        items = {one[key]: one for one in base}
        for one in patch:
            items[one[key]] = merged(items.get(one[key]), one)
        return list(items.values())
    return copy.deepcopy(patch)


class Controller:
    def __init__(self, world):
        self._world = world
        world.watch(f"/apis/{VERSION}/trainjobs", "TrainJob", VERSION)

    def reconcile(self, uid):
        job = self._world.find("TrainJob", uid)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        sets = f"/apis/{jobset.VERSION}/namespaces/{namespace}/jobsets"
        made = next(iter(self._world.made_by("JobSet", job)), None)
        conditions = (job.get("status") or {}).get("conditions") or []
        finished = holds(job, "Complete") or holds(job, "Failed")
        suspend = job["spec"].get("suspend", False)
        if not finished and made is None:
            self._make(job, sets)
        elif not finished and made["spec"].get("suspend", False) != suspend:
            self._world.server.persist("PATCH", f"{sets}/{name}", {"spec": {"suspend": suspend}}, api.MERGE)
        if suspend:
            conditions = with_condition(conditions, "Suspended", "True", "Suspended", "TrainJob is suspended")
        elif holds(job, "Suspended"):
            conditions = with_condition(conditions, "Suspended", "False", "Resumed", "TrainJob is resumed")
        for theirs, ours in (("Completed", "Complete"), ("Failed", "Failed")):
            end = made and holds(made, theirs)
            if end:
                conditions = with_condition(conditions, ours, "True", end["reason"], end["message"])
        conditions = self._deadline(job, made, sets, conditions)
        if conditions:
            self._world.set_status(f"/apis/{VERSION}/namespaces/{namespace}/trainjobs", job, {"conditions": conditions})

    def _deadline(self, job, made, sets, conditions):
        seconds = job["spec"].get("activeDeadlineSeconds")
        if seconds is None or job["spec"].get("suspend") or any(
                one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions):
            return conditions
        resumed = [one["lastTransitionTime"] for one in conditions if (one["type"], one["status"]) == ("Suspended", "False")]
        age = age_seconds((resumed or [job["metadata"]["creationTimestamp"]])[0])
        if age <= seconds:
            self._world.again(job["metadata"]["uid"], seconds - age + 1)
            return conditions
        if made is not None:
            self._world.delete(sets, made, "Background")
        return with_condition(conditions, "Failed", "True", "DeadlineExceeded", "TrainJob exceeded its active deadline")

    def _make(self, job, sets):
        ref, namespace = job["spec"]["runtimeRef"], job["metadata"]["namespace"]
        clusters = ref.get("kind", "ClusterTrainingRuntime") == "ClusterTrainingRuntime"
        path = "clustertrainingruntimes" if clusters else f"namespaces/{namespace}/trainingruntimes"
        try:
            runtime = self._world.server.get(f"/apis/{VERSION}/{path}/{ref['name']}")
        except api.Refused as refused:
            self._world.warn(job, "TrainJobResourcesCreationFailed", f"TrainJob resources reconciliation failed: {refused}")
            raise
        template = runtime["spec"]["template"]
        spec = copy.deepcopy(template["spec"])
        for patch in job["spec"].get("runtimePatches") or []:
            spec = merged(spec, ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {})
        for replicated in spec["replicatedJobs"]:
            labels = (replicated["template"].get("metadata") or {}).get("labels") or {}
            if labels.get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer":
                self._train(job, replicated["template"]["spec"], runtime["spec"].get("mlPolicy") or {})
        spec["suspend"] = job["spec"].get("suspend", False)
        self._world.create(sets, {
            "apiVersion": jobset.VERSION, "kind": "JobSet", "spec": spec,
            "metadata": {"name": job["metadata"]["name"], "ownerReferences": owned_by(job),
                         **{field: (template.get("metadata") or {}).get(field) or {} for field in ("labels", "annotations")}}})

    @staticmethod
    def _train(job, spec, policy):
        """Puts the TrainJob's settings of the trainer into the Job that runs it."""
        name, trainer = job["metadata"]["name"], job["spec"].get("trainer") or {}
        nodes = trainer.get("numNodes", policy.get("numNodes", 1))
        spec |= {"parallelism": nodes, "completions": nodes}
        container = next(one for one in spec["template"]["spec"]["containers"] if one["name"] == NODE)
        container |= {field: trainer[field] for field in ("image", "command", "args") if field in trainer}
        env = list(trainer.get("env") or [])
        if "torch" in policy:
            address = f"{name}-{NODE}-0-0.{name}"
            field = {"fieldRef": {"fieldPath": f"metadata.annotations['{jobset.INDEX}']"}}
            env += [{"name": "PET_NNODES", "value": str(nodes)},
                    {"name": "PET_NPROC_PER_NODE", "value": str(trainer.get("numProcPerNode", "auto"))},
                    {"name": "PET_NODE_RANK", "valueFrom": field}, {"name": "PET_MASTER_ADDR", "value": address},
                    {"name": "PET_MASTER_PORT", "value": PORT}]
        container["env"] = merged(container.get("env") or [], env)
        if "resourcesPerNode" in trainer:
            container["resources"] = merged(container.get("resources") or {}, trainer["resourcesPerNode"])
