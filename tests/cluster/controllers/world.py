"""The controllers' view of a cluster: its objects, always up to date, and the owners that a change concerns."""

import calendar
import threading
import time

import api

AGAIN_SECONDS = 0.5


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def age_seconds(time_text):
    return time.time() - calendar.timegm(time.strptime(time_text, "%Y-%m-%dT%H:%M:%SZ"))


def owner_of(thing):
    """Returns the uid of the object whose controller made this one, or None."""
    return next((one["uid"] for one in thing["metadata"].get("ownerReferences") or [] if one.get("controller")), None)


def owned_by(owner):
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
             "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


def holds(thing, kind):
    """Returns the condition of that type if it is True, otherwise None."""
    conditions = (thing.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), None)


def ended(pod):
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def with_condition(conditions, kind, status, reason, message):
    """Returns the conditions with one of them set. Its time changes only if its status or its reason does."""
    before = next((one for one in conditions if one["type"] == kind), None)
    if before and (before["status"], before["reason"]) == (status, reason):
        return conditions
    made = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now()}
    return [one for one in conditions if one["type"] != kind] + [made]


class World:
    """Objects by their uid. A change puts the uids of the object and of its owner into the queue."""

    def __init__(self, server, changes):
        self.server, self._changes = server, changes
        self._lock = threading.Lock()
        self._objects = {}  # collection -> uid -> object
        self._collections = []

    def watch(self, path, kind, version):
        """Follows the objects of a path such as "/api/v1/pods". Items of a list lack their kind and version, so the caller
        names them."""
        self._collections.append((path, kind, version))

    def follow(self, ready):
        """Begins to follow the objects. Makes the file `ready` once everything has been listed."""
        unlisted = {kind for _, kind, _ in self._collections}

        def begin(path, kind, version):
            def listed(things):
                with self._lock:
                    gone = self._objects.get(kind, {})
                    self._objects[kind] = {thing["metadata"]["uid"]: self._whole(thing, kind, version) for thing in things}
                for thing in [*gone.values(), *things]:
                    self._tell(thing)
                unlisted.discard(kind)
                if not unlisted:
                    with open(ready, "w", encoding="utf-8"):
                        pass

            def changed(event, thing):
                with self._lock:
                    if event == "DELETED":
                        self._objects[kind].pop(thing["metadata"]["uid"], None)
                    else:
                        self._objects[kind][thing["metadata"]["uid"]] = self._whole(thing, kind, version)
                self._tell(thing)
            api.Watch(self.server, path, listed, changed)
        for collection in self._collections:
            begin(*collection)

    @staticmethod
    def _whole(thing, kind, version):
        return {**thing, "kind": kind, "apiVersion": version}

    def _tell(self, thing):
        self._changes.put(thing["metadata"]["uid"])
        if owner_of(thing):
            self._changes.put(owner_of(thing))

    def again(self, uid, seconds=AGAIN_SECONDS):
        """Puts the uid into the queue again after a while."""
        timer = threading.Timer(seconds, self._changes.put, [uid])
        timer.daemon = True
        timer.start()

    def find(self, kind, uid):
        with self._lock:
            return self._objects.get(kind, {}).get(uid)

    def all(self, kind):
        with self._lock:
            return list(self._objects.get(kind, {}).values())

    def made_by(self, kind, owner):
        with self._lock:
            return [thing for thing in self._objects.get(kind, {}).values() if owner_of(thing) == owner["metadata"]["uid"]]

    # --- The controllers' actions

    def create(self, path, thing):
        """Creates an object. Does nothing if one of that name exists."""
        self.server.persist("POST", path, thing)

    def bind(self, namespace, pod, node):
        """Puts a pod on a node, as a scheduler does."""
        self.server.persist("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})

    def delete(self, path, thing, policy="Foreground"):
        if "deletionTimestamp" not in thing["metadata"]:
            self.server.persist("DELETE", f"{path}/{thing['metadata']['name']}", {
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
                "preconditions": {"uid": thing["metadata"]["uid"]}})

    def set_status(self, path, thing, status):
        if status != (thing.get("status") or {}):
            self.server.persist("PATCH", f"{path}/{thing['metadata']['name']}/status", {"status": status}, api.MERGE)

    def warn(self, thing, reason, message):
        """Creates an event about an object."""
        meta = thing["metadata"]
        about = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "name": meta["name"], "uid": meta["uid"],
                 "namespace": meta["namespace"]}
        self.server.persist("POST", f"/api/v1/namespaces/{meta['namespace']}/events", {
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message, "count": 1,
            "metadata": {"name": f"{meta['name']}.{reason.lower()}", "namespace": meta["namespace"]},
            "involvedObject": about, "firstTimestamp": now(), "lastTimestamp": now(),
            "source": {"component": "a test's double"}})
