"""How long others wait while one account attacks the service with ordinary requests; how soon it stops.

The attacks, each by one account, with the attacker on the same cores as the service:

1. 60 claims of a synthesizer of 16 columns at once, again and again;
2. the same by clients that leave after a second;
3. 32 clients that send queries of 4 KiB, and 4. of 64 KiB, one after the other;
5. 48 clients without an account that request ``/openapi.json``.

Meanwhile another owner queries one point 20 times a second and lists datasets 10 times a second; each answer
is timed from the moment its request was due. Then the service gets SIGTERM under the first attack. Goals:
99 of 100 queries within 50 ms, and an end within 3 s, on a quiet machine of two cores. The same requests are
timed first without an attack, since other processes of the machine delay answers too.

``python -m benchmarks attack_load [--seconds 15]``
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.service.service_load import connected, start

import hushsum as hs

GOAL_MS = 50.0
GOAL_SECONDS = 3.0
COLUMNS = 16
SETTLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Attack:
    """Requests that are sent over and over by ``clients``, who leave after ``patience`` seconds."""

    name: str
    request: bytes
    clients: int
    patience: float = 600.0


@dataclass(frozen=True, slots=True)
class Victim:
    """Another owner, and the function that is queried."""

    port: int
    token: str
    function: str


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(16)
        port = 18000 + os.getpid() % 2000
        server = start(Path(folder), port, token)
        try:
            victim, attacks = prepare(port, token)
            report("nobody", victim, options.seconds)
            for attack in attacks:
                with_attack = started(port, attack)
                time.sleep(SETTLE_SECONDS)
                good &= report(attack.name, victim, options.seconds) <= GOAL_MS
                with_attack.terminate()
                with_attack.join()
            with_attack = started(port, attacks[0])
            time.sleep(SETTLE_SECONDS)
            begun = time.perf_counter()
            server.send_signal(signal.SIGTERM)
            code = server.wait()
            seconds = time.perf_counter() - begun
            with_attack.terminate()
            print(f"SIGTERM under {attacks[0].name}: exit code {code} after {seconds:.1f} s ({_load()})")
            good &= seconds <= GOAL_SECONDS
        finally:
            server.kill()
            server.wait()
    return 0 if good else 1


def prepare(port: int, token: str) -> tuple[Victim, list[Attack]]:
    """Both accounts with a function each, and the attacks."""
    url = f"http://127.0.0.1:{port}"
    admin = connected(url, token)
    tokens = {name: admin.create_account(name, "owner") for name in ("victim", "attacker")}
    functions: dict[str, str] = {}
    datasets: dict[str, Any] = {}
    for name, each in tokens.items():
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            points = np.random.default_rng(0).normal(0, 1, (5000, 3))
            np.savetxt(file.name, points, delimiter=",", header="x,y,z", comments="", fmt="%.4f")
            data = hs.connect(url, each).create_dataset(name, epsilon=10.0)
            upload = data.upload(file.name)
            tally = data.tally(upload, bandwidth=1.0, rows=1000, width=1000, bounds=[[-6, 6]])
            functions[name] = data.release(tally, "load", epsilon=5.0).id
            datasets[name] = data
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        names = [f"c{i}" for i in range(COLUMNS)]
        Path(file.name).write_text(",".join(names) + "\n" + ",".join("0" * COLUMNS) + "\n")
        upload = datasets["attacker"].upload(file.name)
    claim = {
        "upload": upload,
        "name": "m",
        "model": "synthesizer",
        "columns": names,
        "bounds": [[-1.0, 1.0]],
        "epsilon": 1.0,
        "delta": 1e-6,
        "records": 10_000,
    }
    claims = _request("attacker", f"/datasets/{datasets['attacker'].id}/models/claims", claim, tokens)
    query = f"/functions/{functions['attacker']}/query"
    # Points of 24 bytes each.
    queries = {
        size: _request("attacker", query, {"points": [[0.123, -1.234, 0.012]] * (1024 * size // 24)}, tokens)
        for size in (4, 64)
    }
    attacks = [
        Attack("60 claims", claims, 60),
        Attack("60 claims by clients that leave", claims, 60, patience=1.0),
        Attack("32 clients with queries of 4 KiB", queries[4], 32),
        Attack("32 clients with queries of 64 KiB", queries[64], 32),
        Attack("48 clients of /openapi.json", b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n", 48),
    ]
    return Victim(port, tokens["victim"], functions["victim"]), attacks


def _request(who: str, path: str, body: Any, tokens: dict[str, str]) -> bytes:
    text = json.dumps(body, separators=(",", ":"))
    return (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {tokens[who]}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n{text}"
    ).encode()


def started(port: int, attack: Attack) -> Any:
    process = multiprocessing.get_context("spawn").Process(target=run, args=(port, attack), daemon=True)
    process.start()
    return process


def run(port: int, attack: Attack) -> None:
    """Attack for ever."""

    async def one() -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    async with asyncio.timeout(attack.patience):
                        while True:
                            writer.write(attack.request)
                            head = await reader.readuntil(b"\r\n\r\n")
                            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                            await reader.readexactly(int(length or 0))
                            if b" 429 " in head[:20]:
                                await asyncio.sleep(0.2)
                finally:
                    writer.transport.abort()
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(attack.clients)))

    asyncio.run(all_of_them())


def report(name: str, victim: Victim, seconds: float) -> float:
    """Print how long the other owner waits; p99 of queries in milliseconds."""
    headers = {"authorization": f"Bearer {victim.token}", "content-type": "application/json"}
    late: dict[str, list[float]] = {"query": [], "/datasets": [], "/readyz": []}
    point = json.dumps({"points": [[0.1, 0.2, 0.3]]})
    probes = [
        ("query", "POST", f"/functions/{victim.function}/query", point, 20.0),
        ("/datasets", "GET", "/datasets", None, 10.0),
        ("/readyz", "GET", "/readyz", None, 2.0),
    ]

    def probe(kind: str, method: str, path: str, body: str | None, rate: float) -> None:
        begun = time.perf_counter()
        link = http.client.HTTPConnection("127.0.0.1", victim.port, timeout=60)
        for i in range(round(seconds * rate)):
            due = begun + i / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            link.request(method, path, body, headers)
            answer = link.getresponse()
            answer.read()
            assert answer.status == 200 or kind == "/readyz", (kind, answer.status)
            late[kind].append(1000.0 * (time.perf_counter() - due))

    threads = [threading.Thread(target=probe, args=each) for each in probes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    texts = []
    for kind, values in late.items():
        middle, slow, slowest = np.quantile(values, [0.5, 0.99, 1.0])
        texts.append(f"{kind} p50 {middle:.0f}, p99 {slow:.0f}, slowest {slowest:.0f} ms")
    print(f"{name}: {'; '.join(texts)} ({_load()})", flush=True)
    return float(np.quantile(late["query"], 0.99))


def _load() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    sys.exit(main())
