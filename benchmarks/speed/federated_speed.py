"""Secure aggregation with processes: time of all, time of the server, traffic, dropouts, and error.

    python -m benchmarks federated_speed --sites 20 --rows 1000 --width 1000

Every party is a process of the command line with files, state on disk and TLS. ``--drop N`` kills N sites
when their replies to ``--at STEP`` are due; at the first step they connect and leave without a reply.
Processor time is what the operating system counted for each process; wall time means something on an idle
machine only. Traffic is the size of the messages of one site, both ways.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hushsum as hs
from hushsum.errors import PeerLost
from hushsum.parties import Identity, connect
from hushsum.parties.secure_aggregation import STEPS, AggregationTerms
from hushsum.privacy import ReleaseRequest

_COMMAND = (sys.executable, "-m", "hushsum", "federate")


class Federation:
    """A folder with the tallies, keys and terms of a run."""

    def __init__(self, folder: Path, sites: int, rows: int, width: int, dropouts: int) -> None:
        self.folder = folder
        self.keys = [Identity.create(folder / f"{i}.key") for i in range(sites)]
        self.server_key = Identity.create(folder / "server.key")
        with socket.create_server(("127.0.0.1", 0)) as place:
            self.port = place.getsockname()[1]
        tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=rows, width=width)
        rng = np.random.default_rng(0)
        for i in range(sites):
            one = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=rows, width=width)
            one.add(rng.normal(0, 3, (1000, 2))).save(folder / f"{i}.tally")
        self.terms = AggregationTerms.of(
            tally,
            ReleaseRequest(epsilon=1.0, population=10**6),
            [each.fingerprint for each in self.keys],
            dropouts=dropouts,
        )
        (folder / "run.terms").write_bytes(self.terms.to_bytes())

    def server(self) -> subprocess.Popen[bytes]:
        """The server's process."""
        where = ("--listen", f"127.0.0.1:{self.port}", "-o", "all.hush", "--patience", "8", "--wait", "45")
        return self._start("server", "server", "--terms", "run.terms", "--key", "server.key", *where)

    def site(self, i: int) -> subprocess.Popen[bytes]:
        """A site's process."""
        at = f"127.0.0.1:{self.port}@{self.server_key.fingerprint}"
        who = ("--terms", "run.terms", "--key", f"{i}.key", "--server", at)
        return self._start(f"{i}", "site", f"{i}.tally", *who)

    def come_and_go(self, i: int) -> None:
        """Connect as a site as soon as the server listens, and leave without a word."""
        while True:
            try:
                with connect(
                    self.keys[i], "127.0.0.1", self.port, self.server_key.fingerprint, timeout=20, transfer=20
                ):
                    return
            except PeerLost:
                time.sleep(0.1)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = open(self.folder / f"{name}.log", "wb")  # noqa: SIM115
        return subprocess.Popen([*_COMMAND, *arguments], cwd=self.folder, stdout=log, stderr=log)

    def replied(self, site: int, step: str) -> bool:
        """Whether the server has stored a site's reply to a step."""
        return (self.folder / "all.hush.federate" / f"{step}.{self.keys[site].fingerprint}").exists()


def measure(sites: int, rows: int, width: int, *, drop: int, at: str, dropouts: int) -> dict[str, Any]:
    """One run, from the start of the first process to the end of the last."""
    with tempfile.TemporaryDirectory() as place:
        run = Federation(Path(place), sites, rows, width, dropouts)
        begun = time.monotonic()
        server = run.server()
        silent = drop if at == STEPS[0] else 0
        running = {i: run.site(i) for i in range(silent, sites)}
        for i in range(silent):
            run.come_and_go(i)
        for i in range(silent, drop):
            while not run.replied(i, STEPS[STEPS.index(at) - 1]):
                time.sleep(0.005)
            running[i].send_signal(signal.SIGKILL)
        seconds = {}
        for name, process in [("server", server), *((str(i), each) for i, each in running.items())]:
            _, status, used = os.wait4(process.pid, 0)
            seconds[name] = used.ru_utime + used.ru_stime
            dropped = name != "server" and int(name) < drop
            if status and not dropped:
                raise SystemExit((run.folder / f"{name}.log").read_text())
        wall = time.monotonic() - begun
        function: Any = hs.load(run.folder / "all.hush")
        table = rows * width * 4
        last, kept = run.keys[-1].fingerprint, run.folder / "all.hush.federate"
        sent = sum((kept / f"{step}.{last}").stat().st_size for step in STEPS)
        traffic = sent + _received(run)
        central = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=rows, width=width)
        released: Any = central.add([[0.0, 0.0]]).release(epsilon=1.0, rows=rows)
        return {
            "sites": sites,
            "rows": rows,
            "width": width,
            "dropped": drop,
            "at": at if drop else None,
            "wall_seconds": round(wall, 1),
            "cpu_seconds_of_all": round(sum(seconds.values()), 1),
            "cpu_seconds_of_server": round(seconds["server"], 1),
            "load_average": round(os.getloadavg()[0], 1),
            "table_bytes": table,
            "sent_bytes": sent,
            "traffic_over_table": round(traffic / table, 4),
            "deviation_over_central": round(math.sqrt(function.noise.variance / released.noise.variance), 4),
        }


def _received(run: Federation) -> int:
    """The requests to one site, by the sizes of what they carry."""
    server = run.folder / "all.hush.federate"
    carried = ("keys.*", "consent.*")
    total = sum(path.stat().st_size for pattern in carried for path in server.glob(pattern))
    return total + len(run.terms.to_bytes()) + 200 * len(run.terms.sites)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--drop", type=int, default=0)
    parser.add_argument("--at", choices=STEPS, default="masked")
    parser.add_argument("--dropouts", type=int, help="Dropouts that the terms allow. [default: --drop]")
    arguments = parser.parse_args()
    allowed = arguments.drop if arguments.dropouts is None else arguments.dropouts
    found = measure(
        arguments.sites,
        arguments.rows,
        arguments.width,
        drop=arguments.drop,
        at=arguments.at,
        dropouts=allowed,
    )
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
