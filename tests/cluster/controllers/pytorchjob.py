"""The training operator's controller of PyTorchJobs, written from its release v1.9.0 (pkg/controller.v1/common and
pkg/controller.v1/pytorch). It handles only jobs without a master and without elasticity."""

import copy

import api
from world import age_seconds, holds, now, owned_by, with_condition

VERSION = "kubeflow.org/v1"
TYPE = "worker"


def env(job, replicas):
    """Returns the variables that the controller adds after a container's own."""
    return [{"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": "PET_NPROC_PER_NODE", "value": job["spec"].get("nprocPerNode", "auto")},
            {"name": "PET_NNODES", "value": str(replicas)}]


class Controller:
    def __init__(self, world):
        self._world = world
        world.watch(f"/apis/{VERSION}/pytorchjobs", "PyTorchJob", VERSION)
        world.watch("/api/v1/pods", "Pod", "v1")

    def reconcile(self, uid):
        job = self._world.find("PyTorchJob", uid)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        path = f"/apis/{VERSION}/namespaces/{job['metadata']['namespace']}/pytorchjobs"
        policy = job["spec"]["runPolicy"]
        pods = self._world.made_by("Pod", job)
        status = copy.deepcopy(job.get("status") or {})
        if holds(job, "Succeeded") or holds(job, "Failed"):
            self._clean_up(job, pods, policy.get("cleanPodPolicy", "None"))
            return
        name = job["metadata"]["name"]

        def say(kind, value, reason, message):
            status["conditions"] = with_condition(status.get("conditions") or [], kind, value, "PyTorchJob" + reason,
                                                  message)
        if policy.get("suspend"):
            self._clean_up(job, pods, "All")
            if holds(job, "Running"):
                say("Running", "False", "Suspended", f"PyTorchJob {name} is suspended.")
            say("Suspended", "True", "Suspended", f"PyTorchJob {name} is suspended.")
            self._world.set_status(path, job, status)
            return
        if holds(job, "Suspended"):
            say("Suspended", "False", "Resumed", f"PyTorchJob {name} is resumed.")
            status["startTime"] = now()
        deadline, begun = policy.get("activeDeadlineSeconds"), status.get("startTime")
        if deadline is not None and begun is not None:
            if age_seconds(begun) >= deadline:
                self._clean_up(job, pods, "All")
                status["completionTime"] = now()
                say("Failed", "True", "Failed", f"Job {name} has failed because it was active longer than specified deadline")
            else:
                self._world.again(uid, deadline - age_seconds(begun) + 1)
        if "completionTime" not in status:
            self._run(job, pods, status, say)
        self._world.set_status(path, job, status)

    def _run(self, job, pods, status, say):
        """Makes the missing pods, and sets the job's conditions from the phases of the others."""
        (_, replica), = job["spec"]["pytorchReplicaSpecs"].items()
        assert replica["restartPolicy"] == "Never", "this double restarts nothing"
        count, name = replica.get("replicas", 1), job["metadata"]["name"]
        status.setdefault("startTime", now())
        there = {pod["metadata"]["labels"]["training.kubeflow.org/replica-index"]: pod for pod in pods}
        for index in map(str, range(count)):
            if index not in there:
                self._make(job, replica["template"], count, index)
        phases = [self._phase(pod) for pod in there.values()]
        succeeded, running, failed = (phases.count(phase) for phase in ("Succeeded", "Running", "Failed"))
        if succeeded == count:
            say("Succeeded", "True", "Succeeded", f"PyTorchJob {name} successfully completed.")
        elif running > 0:
            say("Running", "True", "Running", f"PyTorchJob {name} is running.")
        if failed > 0 and count > succeeded + running:
            say("Failed", "True", "Failed", f"PyTorchJob {name} is failed because {failed} Worker replica(s) failed.")
        if succeeded == count or (failed > 0 and count > succeeded + running):
            status["completionTime"] = now()

    @staticmethod
    def _phase(pod):
        """Returns a pod's phase. A running pod that is being deleted counts as failed."""
        phase = (pod.get("status") or {}).get("phase")
        return "Failed" if phase == "Running" and "deletionTimestamp" in pod["metadata"] else phase

    def _make(self, job, template, count, index):
        meta = job["metadata"]
        called, namespace = f"{meta['name']}-{TYPE}-{index}", meta["namespace"]
        labels = {"training.kubeflow.org/job-name": meta["name"], "training.kubeflow.org/replica-type": TYPE,
                  "training.kubeflow.org/operator-name": "pytorchjob-controller",
                  "training.kubeflow.org/replica-index": index}
        owned = owned_by(job)
        pod = copy.deepcopy(template)
        own = pod.setdefault("metadata", {})
        own |= {"name": called, "ownerReferences": owned, "labels": {**(own.get("labels") or {}), **labels}}
        pod["spec"]["restartPolicy"] = "Never"
        for container in pod["spec"]["containers"]:
            container["env"] = (container.get("env") or []) + env(job, count)
        service = {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None", "selector": labels},
                   "metadata": {"name": called, "labels": labels, "ownerReferences": owned}}
        self._world.create(f"/api/v1/namespaces/{namespace}/services", service)
        try:
            self._world.create(f"/api/v1/namespaces/{namespace}/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
        except api.Refused as refused:
            self._world.warn(job, "FailedCreatePod", f"Error creating: {refused}")
            raise

    def _clean_up(self, job, pods, policy):
        for pod in pods:
            if policy == "All" or (policy == "Running" and pod["status"].get("phase") in ("Running", "Pending")):
                self._world.delete(f"/api/v1/namespaces/{job['metadata']['namespace']}/pods", pod, "Background")
