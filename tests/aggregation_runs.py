"""Secure aggregations in one process: keys, small terms, and parties whose tables are known."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hushsum as hs
from hushsum.parties import Identity
from hushsum.parties.secure_aggregation import DONE, STEPS, AggregationTerms, ServerState, SiteState
from hushsum.privacy import ReleaseRequest
from tests.memory_store import MemoryStore


@cache
def identity(number: int) -> Identity:
    """A key that several tests share."""
    with tempfile.TemporaryDirectory() as folder:
        return Identity.create(Path(folder) / f"{number}.key")


def small_tally() -> hs.Tally:
    return hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=3, width=4)


@cache
def small_terms(
    sites: int, dropouts: int = 0, colluding: int = 0, *, run: str = "run1", epsilon: float = 1.0
) -> AggregationTerms:
    return AggregationTerms.of(
        small_tally(),
        ReleaseRequest(epsilon=epsilon),
        [identity(i).fingerprint for i in range(sites)],
        dropouts=dropouts,
        colluding=colluding,
        run=run,
    )


def table_of(site: str, terms: AggregationTerms) -> NDArray[np.int64]:
    """What a site contributes: fixed numbers, of both signs."""
    rng = np.random.default_rng(int(site[:8], 16))
    return rng.integers(-(2**20), 2**20, terms.cells + 1)


class Run:
    """One run: a server, its sites, and everybody's store, which outlives a crash."""

    def __init__(self, terms: AggregationTerms) -> None:
        self.terms = terms
        self.keys = {each.fingerprint: each for each in map(identity, range(len(terms.sites)))}
        self.stores = {site: MemoryStore() for site in terms.sites}
        self.server_store = MemoryStore()
        self.drawn = dict.fromkeys(terms.sites, 0)
        self.sites = {site: self.started(site) for site in terms.sites}
        self.server = ServerState(terms, self.server_store)

    def started(self, site: str) -> SiteState:
        """A site's process, new or again."""

        def draw() -> NDArray[np.int64]:
            self.drawn[site] += 1
            return table_of(site, self.terms)

        return SiteState(self.keys[site], self.terms, draw, self.stores[site])

    def crash_site(self, site: str) -> None:
        self.sites[site] = self.started(site)

    def crash_server(self) -> None:
        self.server = ServerState(self.terms, self.server_store)

    def exchange(self, site: str) -> None:
        """One request and its reply."""
        request = self.server.request_for(site)
        assert request is not None
        self.server.take(site, self.sites[site].answer(request))

    def step(self, without: Iterable[str] = ()) -> None:
        """One step, to its end."""
        for site in self.server.awaited:
            if site not in without:
                self.exchange(site)
        self.server.close_step()

    def until(self, step: str) -> None:
        """All steps before this one."""
        while self.server.step != step:
            self.step()

    def finish(self, drop: Callable[[str], Iterable[str]] = lambda _: ()) -> NDArray[np.int64]:
        """All steps; ``drop`` names who is gone from a step on."""
        gone: set[str] = set()
        while self.server.step != DONE:
            gone |= set(drop(self.server.step))
            self.step(gone)
        return self.server.sum

    def expected(self) -> NDArray[np.int64]:
        """The sum of the tables of those who stayed."""
        total: NDArray[np.int64] = sum(
            (table_of(site, self.terms) for site in self.server.survivors), np.zeros(1, np.int64)
        )
        return total


ALL_STEPS = STEPS
