"""Numbers for Prometheus, which anybody may read: no label and no number depends on records.

So owners' requests are counted and not timed, and of jobs only those that wait are told: how long counting
takes, and whether it fails, depends on records, and stands in the log.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from hushsum.errors import HushsumError
from hushsum.service.store import JobQueue
from hushsum.service.store.job_queue import QUEUED

MEDIA_TYPE = CONTENT_TYPE_LATEST
_OWNERS = ("/datasets", "/jobs")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)


class Metrics:
    """The numbers of one application; each has a registry of its own."""

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
        self._waiting = Gauge("hushsum_jobs_waiting", "Jobs not begun.", registry=self._registry)
        self._database = Gauge(
            "hushsum_database_up", "Whether the database answers.", registry=self._registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request, and take its time where that tells nothing about records."""
        self._requests.labels(method, route, str(status)).inc()
        if not route.startswith(_OWNERS):
            self._seconds.labels(route).observe(seconds)

    def text(self, jobs: JobQueue) -> bytes:
        """Everything, as Prometheus reads it."""
        try:
            self._waiting.set(jobs.counts().get(QUEUED, 0))
            self._database.set(1)
        except HushsumError:
            self._database.set(0)
        return generate_latest(self._registry)
