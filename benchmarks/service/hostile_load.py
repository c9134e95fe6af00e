"""How long others wait while an analyst and an owner send hostile bodies, with the load on the same cores.

Three clients send one hostile body after the other, 60 MB each where the function allows it; meanwhile
``/healthz`` is requested ten times a second. Goal: 99 of 100 answers within 100 ms. It is measured first
without hostile bodies, since other processes of the machine delay answers too.

``python -m benchmarks hostile_load [--seconds 30]``
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
from benchmarks.service.service_load import connected, start

import hushsum as hs

GOAL_MS = 100.0
PROBES_PER_SECOND = 10.0
SIZE = 60_000_000
DIM = 64


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(16)
        port = 18000 + os.getpid() % 2000
        server = start(Path(folder), port, token)
        try:
            return measure(server.pid, port, token, options.seconds)
        finally:
            server.terminate()
            server.wait()


def measure(server: int, port: int, token: str, seconds: float) -> int:
    url = f"http://127.0.0.1:{port}"
    owner_token = connected(url, token).create_account("owner", "owner")
    owner = hs.connect(url, owner_token)
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        points = np.random.default_rng(0).normal(0, 1, (200, DIM))
        names = ",".join(f"x{i}" for i in range(DIM))
        np.savetxt(file.name, points, delimiter=",", header=names, comments="", fmt="%.4f")
        data = owner.create_dataset("load", epsilon=1.0)
        tally = data.tally(data.upload(file.name), bandwidth=9.0, rows=50, width=50, bounds=[[-6, 6]])
    path = f"/functions/{data.release(tally, 'load', epsilon=1.0).id}/query"

    quiet = probe(port, seconds / 3)
    report("without hostile bodies", quiet)
    context = multiprocessing.get_context("spawn")
    attacks = [
        context.Process(target=attack, args=(port, owner_token, path, kinds), daemon=True)
        for kinds in (("empty lists", "one row", "brackets"), ("valid", "spaces"), ("small body", "valid"))
    ]
    for each in attacks:
        each.start()
    memory = [0]
    watching = threading.Thread(target=watch, args=(server, memory), daemon=True)
    watching.start()
    time.sleep(5.0)
    loud = probe(port, seconds)
    for each in attacks:
        each.terminate()
        each.join()
    slow = report("with hostile bodies", loud)
    print(f"the server took {memory[0] / 1e6:.0f} MB at most")
    return 0 if slow <= GOAL_MS else 1


def attack(port: int, token: str, path: str, kinds: tuple[str, ...]) -> None:
    """Send bodies for ever."""
    valid = json.dumps({"points": np.random.default_rng(0).normal(size=(45_000, DIM)).tolist()})
    bodies: dict[str, Callable[[], bytes]] = {
        "empty lists": lambda: b'{"points":[' + b"[]," * (SIZE // 3) + b"[]]}",
        "one row": lambda: b'{"points":[[' + b"0," * (SIZE // 2) + b"0]]}",
        "brackets": lambda: b'{"points":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}",
        "spaces": lambda: b'{"points":[' + b" " * SIZE + b"[0]]}",
        "valid": lambda: valid.encode(),
        "small body": lambda: b'{"name":"x","epsilon":[' + b"[]," * 340_000 + b"[]]}",
    }
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while True:
        for kind in kinds:
            body = bodies[kind]()
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            try:
                link.request("POST", "/datasets" if kind == "small body" else path, body, headers)
                link.getresponse().read()
            except OSError:
                pass
            finally:
                link.close()


def probe(port: int, seconds: float) -> list[float]:
    """Milliseconds of each answer of ``/healthz``, counted from when it was due."""
    late = []
    begun = time.perf_counter()
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for i in range(round(seconds * PROBES_PER_SECOND)):
        due = begun + i / PROBES_PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        link.request("GET", "/healthz")
        answer = link.getresponse()
        answer.read()
        assert answer.status == 200
        late.append(1000.0 * (time.perf_counter() - due))
    return late


def watch(server: int, most: list[int]) -> None:
    process = import_module("psutil").Process(server)
    while process.is_running():
        most[0] = max(most[0], process.memory_info().rss)
        time.sleep(0.05)


def report(what: str, late: list[float]) -> float:
    middle, slow, slowest = np.quantile(late, [0.5, 0.99, 1.0])
    print(f"/healthz {what}: p50 {middle:.1f} ms, p99 {slow:.1f} ms, slowest {slowest:.1f} ms", flush=True)
    return float(slow)


if __name__ == "__main__":
    sys.exit(main())
