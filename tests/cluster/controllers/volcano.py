"""Volcano's scheduler, written from its release v1.15.1 (pkg/scheduler/plugins/gang/gang.go, framework/job_updater.go).

It puts all pods of a PodGroup on nodes at once, or none. Pods name their group by an annotation. A node takes pods while
its processors suffice. As in the real scheduler, the condition Unschedulable stays after the gang has been scheduled. The
phase and the condition Scheduled say that it no longer holds.
"""

import copy

from world import ended, with_condition

VERSION = "scheduling.volcano.sh/v1beta1"
GROUP = "scheduling.k8s.io/group-name"


def processors(quantity):
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def wanted(pod):
    return sum(processors(((one.get("resources") or {}).get("requests") or {}).get("cpu", "0"))
               for one in pod["spec"]["containers"])


class Controller:
    def __init__(self, world):
        self._world = world
        world.watch(f"/apis/{VERSION}/podgroups", "PodGroup", VERSION)
        world.watch("/api/v1/pods", "Pod", "v1")
        world.watch("/api/v1/nodes", "Node", "v1")

    def reconcile(self, _):
        """Looks at all groups, the oldest first, because any pod's end may make room for any group."""
        pods = [pod for pod in self._world.all("Pod") if not ended(pod)]
        free = {node["metadata"]["name"]: processors(node["status"]["allocatable"]["cpu"])
                for node in self._world.all("Node") if (node.get("status") or {}).get("allocatable")}
        for pod in pods:
            if pod["spec"].get("nodeName") in free:
                free[pod["spec"]["nodeName"]] -= wanted(pod)
        for group in sorted(self._world.all("PodGroup"), key=lambda one: one["metadata"]["creationTimestamp"]):
            mine = [pod for pod in pods if pod["spec"].get("schedulerName") == "volcano" and
                    pod["metadata"]["namespace"] == group["metadata"]["namespace"] and
                    (pod["metadata"].get("annotations") or {}).get(GROUP) == group["metadata"]["name"]]
            self._schedule(group, mine, free)

    def _schedule(self, group, pods, free):
        placed = {}
        left = dict(free)
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
        for pod in waiting:
            node = next((name for name, room in left.items() if room >= wanted(pod)), None)
            if node is not None:
                left[node] -= wanted(pod)
                placed[pod["metadata"]["name"]] = node
        least = group["spec"].get("minMember", 1)
        running = len(pods) - len(waiting)
        is_ready = running + len(placed) >= least
        status = copy.deepcopy(group.get("status") or {})
        conditions = status.get("conditions") or []
        if is_ready:
            namespace = group["metadata"]["namespace"]
            for name, node in placed.items():
                self._world.bind(namespace, name, node)
            free.update(left)
            status["phase"] = "Running"
            conditions = with_condition(conditions, "Scheduled", "True", "tasks in gang are ready to be scheduled", "")
        elif running == 0:
            status["phase"] = "Inqueue"
            why = f"pod group is not ready, {len(waiting)} Pending, {least} minAvailable"
            conditions = with_condition(conditions, "Unschedulable", "True", "NotEnoughResources",
                                        f"{len(waiting)}/{len(pods)} tasks in gang unschedulable: {why}")
        status["conditions"] = conditions
        path = f"/apis/{VERSION}/namespaces/{group['metadata']['namespace']}/podgroups"
        self._world.set_status(path, group, status)
