"""The requests of the API server to a kubelet: containers' logs, over TLS."""

import http.server
import os
import ssl
import threading
import time
import urllib.parse

import containers

FOLLOW_SECONDS = 0.1


class Unanswerable(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Selection:
    """The lines of a log that a query asks for, and their format."""

    def __init__(self, query):
        self.follow = query.get("follow") == "true"
        self._stamps = query.get("timestamps") == "true"
        self._tail = int(query["tailLines"]) if "tailLines" in query else None
        self._left = int(query["limitBytes"]) if "limitBytes" in query else None
        self._since = query.get("sinceTime", "")[:19]
        if "sinceSeconds" in query:
            self._since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - int(query["sinceSeconds"])))

    def first(self, lines):
        """Returns the text of those of the first `lines` that the query asks for."""
        wanted = [line for line in lines if line[0][:19].decode() >= self._since]
        if self._tail is not None:
            wanted = wanted[-self._tail:] if self._tail else []
        return self.text(wanted)

    def text(self, lines):
        text = b"".join((stamp + b" " + line) if self._stamps else line for stamp, line in lines)
        if self._left is not None:
            text = text[:self._left]
            self._left -= len(text)
        return text

    def full(self):
        return self._left == 0


class Handler(http.server.BaseHTTPRequestHandler):
    node = None  # set by serve

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            pod, container = self._find(url.path.strip("/").split("/"), query)
        except Unanswerable as why:
            self._begin(why.code)
            self.wfile.write(str(why).encode())
            return
        self._begin(200)
        # With logs-rotated, rotation has removed all output.
        if pod.fault != "logs-rotated" and os.path.exists(container.log):
            self._send(container, Selection(query))

    def _begin(self, code):
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()

    def _find(self, words, query):
        if len(words) != 4 or words[0] != "containerLogs":
            raise Unanswerable(404, "this double of a kubelet serves /containerLogs alone")
        pod = self.node.find(words[1], words[2])
        if pod is None:
            raise Unanswerable(404, f'pod "{words[2]}" not found')
        container = pod.containers.get(words[3])
        if container is None:
            raise Unanswerable(400, f"container {words[3]} is not valid for pod {words[2]}")
        if query.get("previous") == "true":
            raise Unanswerable(400, f'previous terminated container "{words[3]}" in pod "{words[2]}" not found')
        waiting = container.state.get("waiting")
        if waiting:
            why = {"ErrImagePull": "image can't be pulled",
                   "ImagePullBackOff": "trying and failing to pull image"}.get(waiting["reason"], waiting["reason"])
            raise Unanswerable(400, f'container "{words[3]}" in pod "{words[2]}" is waiting to start: {why}')
        return pod, container

    def _send(self, container, selection):
        with open(container.log, "rb") as file:
            ended = not container.runs()  # this comes before the log is read, or its last lines might be missed
            self.wfile.write(selection.first(containers.lines(file)))
            while selection.follow and not ended and not selection.full():
                time.sleep(FOLLOW_SECONDS)
                ended = not container.runs()
                self.wfile.write(selection.text(containers.lines(file)))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # the client has gone away


def serve(node, certificate, key):
    """Serves logs in threads of its own. Returns the port."""
    handler = type("Handler", (Handler,), {"node": node})
    server = Server(("127.0.0.1", 0), handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    # Each connection's thread makes its own handshake, which must not hold up the others.
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
