"""JobSet's controller, written from its release v0.12.0 (pkg/controllers/jobset_controller.go and failure_policy.go).

It makes a Job for each replica of each replicated job. This cluster's server has no Indexed Jobs. One Job for each index
takes their place, with the annotation and the host name that its pod would have. To suspend a Job, the double deletes it,
because this server cannot suspend Jobs.
"""

import copy

from world import holds, owned_by, with_condition

VERSION = "jobset.x-k8s.io/v1alpha2"
INDEX = "batch.kubernetes.io/job-completion-index"


class Controller:
    def __init__(self, world):
        self._world = world
        world.watch(f"/apis/{VERSION}/jobsets", "JobSet", VERSION)
        world.watch("/apis/batch/v1/jobs", "Job", "batch/v1")

    def reconcile(self, uid):
        job_set = self._world.find("JobSet", uid)
        if job_set is None or "deletionTimestamp" in job_set["metadata"]:
            return
        namespace, spec = job_set["metadata"]["namespace"], job_set["spec"]
        path = f"/apis/{VERSION}/namespaces/{namespace}/jobsets"
        jobs_path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        jobs = self._world.made_by("Job", job_set)
        active = [job for job in jobs if not holds(job, "Complete") and not holds(job, "Failed")]
        # A Job that is being deleted was suspended. Its condition Failed may come from the end of its pods.
        failed = [job for job in jobs if holds(job, "Failed") and "deletionTimestamp" not in job["metadata"]]
        status = copy.deepcopy(job_set.get("status") or {})
        conditions = status.get("conditions") or []
        if holds(job_set, "Completed") or holds(job_set, "Failed"):
            for job in active:
                self._world.delete(jobs_path, job)
            return
        if failed:
            conditions = with_condition(conditions, "Failed", "True", *self._why(job_set, failed[0]))
            status["terminalState"] = "Failed"
        elif spec.get("suspend"):
            for job in active:
                self._world.delete(jobs_path, job)
            conditions = with_condition(conditions, "Suspended", "True", "SuspendedJobs", "jobset is suspended")
        else:
            wanted = self._jobs(job_set)
            if len([job for job in jobs if holds(job, "Complete")]) == len(wanted):
                conditions = with_condition(conditions, "Completed", "True", "AllJobsCompleted",
                                            "jobset completed successfully")
                status["terminalState"] = "Completed"
            else:
                self._world.create(f"/api/v1/namespaces/{namespace}/services", self._service(job_set))
                for job in wanted:
                    if job["metadata"]["name"] not in [one["metadata"]["name"] for one in jobs]:
                        self._world.create(jobs_path, job)
            if holds(job_set, "Suspended"):
                conditions = with_condition(conditions, "Suspended", "False", "ResumeJobs", "jobset is resumed")
        status["conditions"] = conditions
        status["restarts"] = 0
        self._world.set_status(path, job_set, status)

    @staticmethod
    def _why(job_set, job):
        """Returns the reason and the message with which this failed Job ends the JobSet."""
        first = f" (first failed job: {job['metadata']['name']})"
        policy = job_set["spec"].get("failurePolicy")
        if policy is None:
            return "FailedJobs", "jobset failed due to one or more job failures" + first
        reason = holds(job, "Failed")["reason"]
        for rule in policy.get("rules") or []:
            if rule["action"] == "FailJobSet" and reason in (rule.get("onJobFailureReasons") or [reason]):
                return "FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action" + first
        assert not policy.get("maxRestarts"), "this double restarts nothing"
        return "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts" + first

    @staticmethod
    def _service(job_set):
        name, network = job_set["metadata"]["name"], job_set["spec"].get("network") or {}
        return {"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": network.get("subdomain", name), "ownerReferences": owned_by(job_set)},
                "spec": {"clusterIP": "None", "selector": {"jobset.sigs.k8s.io/jobset-name": name},
                         "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True)}}

    @staticmethod
    def _jobs(job_set):
        name = job_set["metadata"]["name"]
        subdomain = (job_set["spec"].get("network") or {}).get("subdomain", name)
        made = []
        for replicated in job_set["spec"]["replicatedJobs"]:
            template = replicated["template"]
            for replica in range(replicated.get("replicas", 1)):
                called = f"{name}-{replicated['name']}-{replica}"
                labels = {"jobset.sigs.k8s.io/jobset-name": name,
                          "jobset.sigs.k8s.io/jobset-uid": job_set["metadata"]["uid"],
                          "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
                          "jobset.sigs.k8s.io/job-index": str(replica),
                          "jobset.sigs.k8s.io/restart-attempt": "0"}
                pods = template["spec"].get("completions", 1)
                for index in range(pods):
                    spec = copy.deepcopy(template["spec"])
                    for field in ("completionMode", "completions", "parallelism"):
                        spec.pop(field, None)
                    meta = spec["template"].setdefault("metadata", {})
                    meta["labels"] = {**(meta.get("labels") or {}), **labels}
                    meta["annotations"] = {**(meta.get("annotations") or {}), INDEX: str(index)}
                    spec["template"]["spec"] |= {"hostname": f"{called}-{index}", "subdomain": subdomain}
                    own = template.get("metadata") or {}
                    made.append({"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
                                 "metadata": {"name": called if pods == 1 else f"{called}-{index}",
                                              "labels": {**(own.get("labels") or {}), **labels},
                                              "annotations": own.get("annotations") or {},
                                              "ownerReferences": owned_by(job_set)}})
        return made
