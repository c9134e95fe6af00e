"""Jobs and the worker processes that run them. Nothing here imports the HTTP interface or a web framework."""

from .job_runner import GRACE_SECONDS, JobRunner, delete_orphaned_files
from .worker_pool import HEALTHY_SECONDS, LONGEST_PAUSE_SECONDS, WorkerPool, WorkerSlot

__all__ = [
    "GRACE_SECONDS", "HEALTHY_SECONDS", "LONGEST_PAUSE_SECONDS", "JobRunner", "WorkerPool", "WorkerSlot",
    "delete_orphaned_files",
]  # fmt: skip
