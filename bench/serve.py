#!/usr/bin/env python3
"""Measures the memory of `ridgeline serve` with a large database, and its answer times beside idle clients.

  serve.py PROGRAM DB [PAGES [CLIENTS]]

PROGRAM: ridgeline. DB: a database of 100,000 measurements, which many_runs_db makes. The script first requests each
expensive page on its own: a first time, then three times more. It then requests PAGES (200) of them, four at a time. Then
CLIENTS (1,000) stay connected and send half a request each, while the script scrapes /metrics 200 times. It prints the
server's resident memory and the times.
"""
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time

program, db = sys.argv[1:3]
pages = int(sys.argv[3]) if len(sys.argv) > 3 else 200
clients = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
repository = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXPENSIVE = ["/reports/history", "/history", "/reports/activation-checkpointing", "/runs?status=ok", "/reports/scaling",
             "/compare?base=night-1&head=night-400", "/reports/history.csv", "/reports/history.md"]
SCRAPES = 200

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--db", db, "--reports",
                           os.path.join(repository, "reports")], stdout=subprocess.PIPE, text=True)
port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))


def get(path, timeout=300, encoding="gzip"):
    """Returns the answer's status, its bytes, and the seconds that it took."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {encoding}\r\n\r\n".encode())
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    answer = b"".join(parts)
    return int(answer.split()[1]) if answer else 0, len(answer), time.monotonic() - began


def resident_mb():
    """Returns the server's resident memory, now and at most, in MB."""
    with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
        text = status.read()
    return [int(re.search(name + r":\s+(\d+)", text).group(1)) / 1000 for name in ("VmRSS", "VmHWM")]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


try:
    print(f"at rest: {resident_mb()[0]:.0f} MB")
    for path in EXPENSIVE:
        status, size, first = get(path)
        again = min(get(path)[2] for _ in range(3))
        print(f"{path}: {status}, {size / 1e6:.2f} MB as sent, {first:.2f} s at first, {again:.3f} s again")
    # Four threads request pages at once, like several people.
    left = list(range(pages))
    statuses = []
    lock = threading.Lock()

    def ask():
        while True:
            with lock:
                if not left:
                    return
                number = left.pop()
            # Every second request has an address of its own, so the cache of pages does not have its answer.
            path = EXPENSIVE[number % len(EXPENSIVE)]
            fresh = f"{'&' if '?' in path else '?'}number={number}" if number % 2 else ""
            statuses.append(get(path + fresh)[0])

    began = time.monotonic()
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rss, most = resident_mb()
    print(f"{pages} expensive pages, four at once: {time.monotonic() - began:.0f} s, {pages - statuses.count(200)} failed; "
          f"{rss:.0f} MB after, {most:.0f} MB at most")

    ended = threading.Event()

    def hold_half_requests(count):
        """Keeps `count` connections open that have sent half a request. Reopens each one that the server closes."""
        held = []
        while not ended.is_set():
            for connection in list(held):
                try:
                    if connection.recv(1, socket.MSG_DONTWAIT) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except OSError:
                    connection.close()
                    held.remove(connection)
            while len(held) < count and not ended.is_set():
                connection = socket.socket()
                connection.settimeout(5)
                try:
                    connection.connect(("127.0.0.1", port))
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
                    held.append(connection)
                except OSError:
                    connection.close()
                    break
            time.sleep(0.2)
        for connection in held:
            connection.close()

    took = [get("/metrics")[2] for _ in range(20)]
    print(f"a scrape alone: median {percentile(took, 0.5):.3f} s")
    crowd = [threading.Thread(target=hold_half_requests, args=(clients // 4,)) for _ in range(4)]
    for thread in crowd:
        thread.start()
    time.sleep(2)
    took, failed = [], 0
    for _ in range(SCRAPES):
        try:
            status, _, seconds = get("/metrics", timeout=60)
            failed += status != 200
        except OSError:
            failed, seconds = failed + 1, 60.0
        took.append(seconds)
        if sum(took) > 300:
            break
    ended.set()
    for thread in crowd:
        thread.join()
    print(f"{len(took)} scrapes beside {clients} idle clients: median {percentile(took, 0.5):.3f} s, "
          f"p99 {percentile(took, 0.99):.3f} s, {failed} failed")
finally:
    server.terminate()
    server.wait()
