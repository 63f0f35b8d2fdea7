"""The Kubernetes API as a node uses it: requests that return an answer or raise, and lists that stay up to date."""

import http.client
import json
import queue
import ssl
import sys
import threading
import time
import urllib.parse

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
REQUEST_SECONDS = 30
# The server sends a bookmark every minute, so a watch that is silent for longer has lost its server.
WATCH_SECONDS = 100


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code, message):
        super().__init__(f"{code} {message}")
        self.code = code


# What a request raises if the server is not there, or goes away.
UNREACHABLE = (OSError, http.client.HTTPException)


def say(*words):
    """Writes to the node's log."""
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


class Api:
    """A client. It is safe to use from several threads."""

    def __init__(self, kubeconfig):
        """`kubeconfig` is a path. REQUIRES: the file is JSON, with one cluster, one user, and paths of certificates."""
        with open(kubeconfig, encoding="utf-8") as file:
            config = json.load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._address = urllib.parse.urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._idle = queue.LifoQueue()  # connections that wait for their next request

    def _connect(self, timeout):
        return http.client.HTTPSConnection(self._address.hostname, self._address.port, timeout=timeout, context=self._tls)

    def request(self, method, path, body=None, content_type="application/json"):
        """Returns the answer. Raises Refused, or one of UNREACHABLE. The request may arrive twice."""
        data = None if body is None else json.dumps(body)
        while True:
            try:
                connection, used = self._idle.get_nowait(), True
            except queue.Empty:
                connection, used = self._connect(REQUEST_SECONDS), False
            try:
                connection.request(method, path, data, {"Content-Type": content_type})
                response = connection.getresponse()
                text = response.read()
            except UNREACHABLE:
                connection.close()
                if used:
                    continue  # the server may have closed the idle connection
                raise
            self._idle.put(connection)
            answer = json.loads(text) if text.startswith(b"{") else {"message": text.decode(errors="replace")}
            if response.status >= 300:
                raise Refused(response.status, answer.get("message", ""))
            return answer

    def get(self, path):
        return self.request("GET", path)

    def persist(self, method, path, body=None, content_type="application/json"):
        """Repeats a request until it is answered. Returns the answer, or None if the object is gone or replaced."""
        while True:
            try:
                return self.request(method, path, body, content_type)
            except Refused as refused:
                crowded = refused.code == 409 and "has been modified" in str(refused)  # several wrote at once
                if refused.code in (404, 409) and not crowded:
                    return None
                if refused.code < 500 and refused.code != 429 and not crowded:
                    raise
                say(method, path, refused)
            except UNREACHABLE as error:
                say(method, path, repr(error))
            time.sleep(0.5)

    def events(self, path):
        """Yields the events of a watch until the server ends it."""
        connection = self._connect(WATCH_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status != 200:
                raise Refused(response.status, response.read().decode(errors="replace"))
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()


class Watch:
    """Follows a collection in a thread of its own, even if the server comes and goes.

    It calls `listed(objects)` with all objects, at first and whenever it may have missed changes. It calls
    `changed(kind, object)` for each change: ADDED, MODIFIED or DELETED. Both calls are in that thread.
    """

    def __init__(self, api, path, listed, changed):
        self._api, self._path, self._listed, self._changed = api, path, listed, changed
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                collection = self._api.get(self._path)
                self._listed(collection.get("items") or [])
                self._follow(collection["metadata"]["resourceVersion"])
            except (Refused, *UNREACHABLE) as error:
                say("watch", self._path, repr(error))
                time.sleep(0.5)

    def _follow(self, version):
        """Returns when the server has forgotten what happened since that version."""
        while True:
            for event in self._api.events(
                    f"{self._path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"):
                if event["type"] == "ERROR":
                    return
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._changed(event["type"], event["object"])
