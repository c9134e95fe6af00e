"""Metrics for Prometheus, which anybody may read: no label and no value depends on records.

So owners' requests are counted and not timed, and of jobs only those that wait are reported: how long
counting takes, and whether it fails, depends on records, and stands in the log. The room on the disk and the
wait of the oldest job depend on the size of what was uploaded, so both are given in coarse steps: enough for
an alert, too little to distinguish uploads.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from hushsum.errors import HushsumError
from hushsum.service.store import JobQueue
from hushsum.service.store.job_queue import QUEUED

MEDIA_TYPE = CONTENT_TYPE_LATEST
_OWNERS = ("/datasets", "/jobs")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)


_WAIT_STEP = 30.0
_DISK_STEPS = 20


@dataclass(frozen=True, slots=True)
class CurrentState:
    """What is read when the metrics are requested."""

    jobs: JobQueue
    folder: Path
    workers_alive: int
    workers_configured: int
    streams: int


class Metrics:
    """The metrics of one application; each application has its own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "hushsum_requests_total",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "hushsum_request_seconds",
            "Time to answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.points = Counter("hushsum_points_total", "Points of queries answered.", registry=self._registry)
        self._waiting = Gauge("hushsum_jobs_waiting", "Jobs queued.", registry=self._registry)
        self._wait = Gauge(
            "hushsum_queue_age_seconds",
            "How long the oldest queued job has waited, in steps of 30 seconds.",
            registry=self._registry,
        )
        self._workers = Gauge("hushsum_workers_alive", "Workers alive.", registry=self._registry)
        self._configured = Gauge("hushsum_workers_configured", "Workers configured.", registry=self._registry)
        self._free = Gauge(
            "hushsum_disk_free_ratio",
            "Free fraction of the disk of the service's folder, in steps of 0.05.",
            registry=self._registry,
        )
        self._streams = Gauge("hushsum_event_streams", "Open event streams.", registry=self._registry)
        self._database = Gauge(
            "hushsum_database_up", "Whether the database answers.", registry=self._registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request, and record its duration where that does not depend on records."""
        self._requests.labels(method, route, str(status)).inc()
        if not route.startswith(_OWNERS):
            self._seconds.labels(route).observe(seconds)

    def text(self, now: CurrentState) -> bytes:
        """All metrics in the Prometheus text format."""
        try:
            self._waiting.set(now.jobs.counts().get(QUEUED, 0))
            self._wait.set(now.jobs.longest_wait() // _WAIT_STEP * _WAIT_STEP)
            self._database.set(1)
        except HushsumError:
            self._database.set(0)
        self._workers.set(now.workers_alive)
        self._configured.set(now.workers_configured)
        self._streams.set(now.streams)
        self._free.set(_free(now.folder))
        return generate_latest(self._registry)


def _free(folder: Path) -> float:
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return 0.0
    return round(disk.free * _DISK_STEPS // disk.total / _DISK_STEPS, 2)
