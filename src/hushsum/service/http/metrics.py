"""Metrics for Prometheus, which anybody may read: no label and no value depends on records.

So owners' requests are counted and not timed, and of jobs only those that wait are reported: how long
counting takes, and whether it fails, depends on records, and stands in the log. The room on the disk and the
wait of the oldest job depend on the size of what was uploaded, so both are given in coarse steps: enough for
an alert, too little to distinguish uploads.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from hushsum.errors import HushsumError

if TYPE_CHECKING:
    from .context import Context

MEDIA_TYPE = CONTENT_TYPE_LATEST
_OWNERS = ("/datasets", "/jobs")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)


_WAIT_STEP = 30.0
_DISK_STEPS = 20


_GAUGES = {
    "hushsum_jobs_waiting": "Jobs queued.",
    "hushsum_queue_age_seconds": "How long the oldest queued job has waited, in steps of 30 seconds.",
    "hushsum_workers_alive": "Workers alive.",
    "hushsum_workers_configured": "Workers configured.",
    "hushsum_disk_free_ratio": "Free fraction of the disk of the service's folder, in steps of 0.05.",
    "hushsum_event_streams": "Open event streams.",
    "hushsum_database_up": "Whether the database answers.",
}


class Metrics:
    """The metrics of one application; each application has its own registry."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("hushsum_requests_total", "Requests answered.", labels, registry=own)
        self._seconds = Histogram(
            "hushsum_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS, registry=own
        )
        self.points = Counter("hushsum_points_total", "Points of queries answered.", registry=own)
        self._gauges = {name: Gauge(name, text, registry=own) for name, text in _GAUGES.items()}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request, and record its duration where that does not depend on records."""
        self._requests.labels(method, route, str(status)).inc()
        if not route.startswith(_OWNERS):
            self._seconds.labels(route).observe(seconds)

    def text(self, context: Context) -> bytes:
        """All metrics of a running service in the Prometheus text format."""
        now: dict[str, float] = {
            "hushsum_workers_alive": context.worker_pool.alive(),
            "hushsum_workers_configured": context.settings.workers,
            "hushsum_event_streams": len(context.streams),
            "hushsum_disk_free_ratio": _free(context.settings.path("")),
            "hushsum_database_up": 0,
        }
        # Without the database the jobs keep their last values.
        with suppress(HushsumError):
            now["hushsum_jobs_waiting"], seconds = context.store.jobs.waiting()
            now["hushsum_queue_age_seconds"] = seconds // _WAIT_STEP * _WAIT_STEP
            now["hushsum_database_up"] = 1
        for name, value in now.items():
            self._gauges[name].set(value)
        return generate_latest(self._registry)


def _free(folder: Path) -> float:
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return 0.0
    return round(disk.free * _DISK_STEPS // disk.total / _DISK_STEPS, 2)
