"""The service as a process: ``hushsum serve`` on a port of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tests.e2e.cli_process import environment
from tests.forked import ForkedCommand
from tests.free_ports import free_port

import hushsum as hs
from hushsum.client import Service

ADMIN = "administrator-of-the-tests-0123456789"


@dataclass
class ServiceProcess:
    """One service that may be killed and started again."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: ForkedCommand | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self, largest: int | None = None) -> Service:
        """Start it, and wait until it answers; with ``largest``, as on a disk that is nearly full."""
        given = {
            "HUSHSUM_ADMIN_TOKEN": ADMIN,
            "HUSHSUM_STATE": str(self.folder / "state"),
            "HUSHSUM_LEASE_SECONDS": "1.5",
            "HUSHSUM_READY_SECONDS": "60",
            **self.settings,
        }
        self.process = ForkedCommand(
            ["serve", "--port", str(self.port)],
            folder=self.folder,
            environment=environment(**given),
            log=self.folder / "log",
            largest=largest,
        )
        for _ in range(6000):
            assert self.process.poll() is None, self.log
            # A client per attempt would take as much of the processor as the service that is waited for.
            if self.listens():
                return hs.connect(self.url, ADMIN)
            time.sleep(0.05)
        raise AssertionError("the service did not start")

    def listens(self) -> bool:
        """Whether somebody accepts connections at its port."""
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0

    def workers(self) -> list[psutil.Process]:
        """Its workers that are alive."""
        started = [each["pid"] for each in self.events() if each["event"] == "worker started"]
        return [psutil.Process(pid) for pid in started if psutil.pid_exists(pid)]

    def kill(self) -> None:
        """As the system does when it runs out of memory; its workers must notice by themselves."""
        assert self.process is not None
        workers = self.workers()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        _, alive = psutil.wait_procs(workers, timeout=120)
        assert alive == [], "a worker outlived its service"

    def stop(self) -> int:
        """End it as a service manager does."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(120)

    def events(self) -> list[dict[str, Any]]:
        """The log, whose every line is an object."""
        return [json.loads(line) for line in self.log.splitlines()]
