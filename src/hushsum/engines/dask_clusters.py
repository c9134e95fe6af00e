"""Clusters of Dask: the one at an address, and one of this machine that is set up for long counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hushsum.errors import UsageError
from hushsum.kernels.parameters import positive_integer, thread_count

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

_MOST_WORKERS: Final = 1024
_LONGEST_START_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
_ENVIRONMENT: Final = "distributed.nanny.pre-spawn-environ"
_TRIM: Final = "MALLOC_TRIM_THRESHOLD_"
_SETTINGS: Final[dict[str, Any]] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}
"""Without a profiler, which looks at the stack of a worker 100 times per second, and with a check of the
event loops once per second instead of 50 times."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address.

    Raises
    ------
    UsageError
        if no scheduler answers there in the time that Dask's settings give it, 30 seconds by default.
    """
    from distributed import Client

    try:
        client = Client(address, set_as_default=False)
    except Exception:
        # What a server that is not Dask's sends is taken for a length, which may be more than the memory.
        raise UsageError(
            parameter="address",
            rule="must be that of a Dask scheduler",
            got=address,
            remedy="check that it runs",
        ) from None
    with client:
        yield client


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Client]:
    """A client of a new cluster of this machine, which ends with the block.

    Its workers are processes of one thread. Dask's profiler is off, and memory that is freed is kept for the
    next batch: by default Dask makes the allocator of a worker return it to the system at once, and every
    batch then begins with page faults. Both matter in counts, which run one function for minutes.

    Parameters
    ----------
    workers : int, optional
        By default the cores that this process may use.
    """
    import dask
    from distributed import Client, LocalCluster

    many = (
        thread_count(None) if workers is None else positive_integer("workers", workers, at_most=_MOST_WORKERS)
    )
    environment = {name: value for name, value in dask.config.get(_ENVIRONMENT).items() if name != _TRIM}
    with (
        dask.config.set({**_SETTINGS, _ENVIRONMENT: environment}),
        LocalCluster(n_workers=many, threads_per_worker=1, dashboard_address=":0") as cluster,
        settled(cluster),
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def settled(cluster: LocalCluster) -> Iterator[None]:
    """A block at whose end none of the cluster's workers is being started.

    Dask starts workers again that were killed, and fails to close one whose process does not exist yet. That
    failure would hide why the count was refused.
    """
    from distributed.core import Status

    try:
        yield
    finally:
        until = time.monotonic() + _LONGEST_START_SECONDS
        while time.monotonic() < until:
            processes = [getattr(each, "process", None) for each in cluster.workers.values()]
            if not any(each is not None and each.status is Status.starting for each in processes):
                break
            time.sleep(_POLL_SECONDS)


@contextmanager
def chosen_client(client: Client | None) -> Iterator[Client]:
    """The given client, the current one, or that of a local cluster which ends with the block.

    Raises
    ------
    UsageError
        if it is asynchronous.
    """
    from distributed import default_client

    if client is None:
        try:
            client = default_client()
        except ValueError:
            with local_cluster() as own:
                yield own
            return
    if client.asynchronous:
        raise UsageError(parameter="client", rule="must not be asynchronous", remedy="make a plain one")
    yield client
