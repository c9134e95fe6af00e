"""Who races, with which parameters, and how one release is measured.

Baselines get their parameters by oracle: every setting of a small grid is run on the public data, and the
best one counts, at no cost in ε. Ours get none: ``grid`` and ``fourier_features`` run with their defaults,
``hermite`` and ``auto`` know the number of records.
"""

from __future__ import annotations

import io
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from benchmarks.accuracy_data import Contest, Floats, Rows

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import (
    bernstein,
    fourier_series,
    hermite,
    lsq_fgt,
    lsq_rff,
    method_named,
    trigonometric,
)
from hushsum.releases import ReleasedFunction

Settings = dict[str, Any]

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
DELTA = 1e-6
SAMPLED = 20_000
"""Records for methods whose time grows too fast with them; their ε is for the sample."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A method, and the settings that are tried.

    ``tally`` makes an empty tally, which is filled once and released for every promise; else the method is
    called by its name. ``few``, ``many`` and ``vast`` are the settings in one column, in three, and in
    more; ``most`` is the most columns it is run with, and ``sampled`` says whether it needs a sample beyond
    three.
    """

    name: str
    few: tuple[Settings, ...]
    many: tuple[Settings, ...] = ()
    vast: tuple[Settings, ...] | None = None
    tally: Callable[..., hs.Tally] | None = None
    ours: bool = False
    seeded: bool = False
    most: int = 3
    sampled: bool = False

    def settings(self, contest: Contest) -> tuple[Settings, ...]:
        """What is tried on this data."""
        if contest.dim > self.most:
            return ()
        vast = self.many if self.vast is None else self.vast
        return self.few if contest.dim == 1 else self.many if contest.dim <= 3 else vast


def _each(name: str, *values: object, **others: object) -> tuple[Settings, ...]:
    return tuple({name: value, **others} for value in values)


CONTESTANTS = (
    Contestant("grid", ({},), ({},), tally=hs.grid, ours=True, most=4),
    Contestant("hermite", ({},), ({},), tally=hermite, ours=True, most=4),
    Contestant("fourier_features", ({},), ({},), tally=hs.fourier_features, ours=True, seeded=True, most=99),
    Contestant("lsq_fgt", _each("order", 3, 4, 5, 6, 8, 10), _each("order", 2, 3, 4), tally=lsq_fgt),
    Contestant(
        "lsq_rff",
        _each("features", 25, 50, 100, 200, 400, 1000),
        _each("features", 100, 400, 1000),
        _each("features", 200, 1000),
        tally=lsq_rff,
        seeded=True,
        most=99,
    ),
    Contestant(
        "bernstein",
        (*_each("degree", 9, 19, 39, 99), *_each("degree", 39, 99, iterations=10)),
        _each("degree", 19),
        tally=bernstein,
    ),
    Contestant("fourier_series", _each("frequencies", 2, 5, 10, 20, 40), tally=fourier_series, most=1),
    Contestant("trigonometric", _each("terms", 8, 16, 32, 64), _each("terms", 10), tally=trigonometric),
    Contestant("histogram", _each("bins", 32, 64, 128, 256), _each("bins", 64)),
    Contestant("mwem", _each("rounds", 10, 20), _each("rounds", 10, bins=24)),
    Contestant("privbayes", _each("bins", 32, 64, 128), _each("bins", 16, 32), most=8),
    Contestant(
        "kme", _each("lattice", 64, 128), _each("lattice", 96), _each("points", 1000), most=99, sampled=True
    ),
    Contestant("pfda", _each("penalty", 1e-2, 1e-4, 1e-5), most=1),
)


@dataclass(slots=True)
class Cell:
    """What one method did under one promise on one data set: means over releases with fresh noise.

    ``seed_stderr`` is the standard error of ``error`` over public seeds, where there were several.
    ``build`` is the processor time to count and release over all cores, ``query`` that of one query, and
    ``predicted`` the error that ``hs.plan`` predicted.
    """

    data: str
    method: str
    epsilon: float
    delta: float
    error: float
    relative: float
    rms: float
    spread: float
    releases: int
    build: float
    query: float
    size: int
    mechanism: str
    settings: Settings = field(default_factory=dict)
    predicted: float | None = None
    seeds: int = 1
    seed_stderr: float | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)


def bytes_of(function: ReleasedFunction) -> int:
    """The size of its file."""
    buffer = io.BytesIO()
    function.save(buffer)
    return len(buffer.getvalue())


@dataclass(slots=True)
class Counted:
    """A filled tally, or a method to be called, ready to be released."""

    release: Callable[[float, float | None], ReleasedFunction]
    seconds: float
    settings: Settings
    note: str = ""


def counted(contest: Contest, contestant: Contestant, settings: Settings, seed: int) -> Counted:
    """Count once what will be released several times."""
    own = {**settings, **({"seed": seed} if contestant.seeded else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        if contestant.tally is not None:
            start = time.process_time()
            tally = contestant.tally(contest.kernel, bounds=contest.bounds, **own)
            tally.add(contest.records)
            taken = time.process_time() - start
            return Counted(
                lambda epsilon, delta: tally.release(epsilon=epsilon, delta=delta, threads=None),
                taken,
                settings,
            )
    method = method_named(contestant.name)
    X, note = sampled(contest.records) if contestant.sampled and contest.dim > 3 else (contest.records, "")
    relation = str(method.relations[0])
    if relation != "add/remove":
        note = "; ".join(filter(None, [note, "replaced records"]))

    def release(epsilon: float, delta: float | None) -> ReleasedFunction:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousParameter)
            return method.release(
                X, contest.kernel, bounds=contest.bounds, epsilon=epsilon, delta=delta, **own
            )

    return Counted(release, 0.0, settings, note)


def sampled(records: Rows) -> tuple[Rows, str]:
    """At most so many records as slow methods take."""
    if len(records) <= SAMPLED:
        return records, ""
    chosen = np.random.default_rng(3).choice(len(records), SAMPLED, replace=False)
    return records[np.sort(chosen)], f"sample of {SAMPLED:,}"


def measure(
    contest: Contest, releases: Sequence[Callable[[], ReleasedFunction]], truth: Floats
) -> dict[str, Any]:
    """Mean errors over some releases, and what the last one cost."""
    absolute, relative, squared, function, built = [], [], [], None, 0.0
    for make in releases:
        start = time.process_time()
        function = make()
        built = time.process_time() - start
        away = np.abs(function(contest.queries) - truth)
        absolute.append(float(away.mean()))
        relative.append(float((away / np.maximum(truth, 1e-12)).mean()))
        squared.append(float((away**2).mean()))
    assert function is not None
    start = time.process_time()
    function(contest.queries)
    answered = time.process_time() - start
    return {
        "error": float(np.mean(absolute)),
        "relative": float(np.mean(relative)),
        "rms": float(np.sqrt(np.mean(squared))),
        "spread": float(np.std(absolute)),
        "releases": len(absolute),
        "build": built,
        "query": answered / len(contest.queries),
        "size": bytes_of(function),
        "mechanism": function.claim.mechanism,
    }


def worth(contest: Contest, cell: Cell) -> float:
    """What a contest compares: L2 errors of functions, or mean absolute errors at queries from the data."""
    return cell.error if contest.fixed_queries is None else cell.rms


def promises(delta: float | None = DELTA) -> Iterator[tuple[float, float | None]]:
    """Every ε, pure and with δ."""
    for each in (None, delta):
        for epsilon in EPSILONS:
            yield epsilon, each


def race_of(
    contest: Contest, contestant: Contestant, *, repeats: int, tell: Callable[[str], None]
) -> list[Cell]:
    """A method's best cell for each promise it can make, over its settings: the one of least mean square
    error where queries are a grid, else of least mean absolute error.
    """
    best: dict[tuple[float, float], Cell] = {}
    method = method_named(contestant.name)
    for settings in contestant.settings(contest):
        started = time.perf_counter()
        seeds = range(min(repeats, 3) if _quick(contest, contestant, settings) else 1)
        for epsilon in EPSILONS:
            ready = [_counted_once(contest, contestant, settings, epsilon, seed) for seed in seeds]
            cells = []
            if method.pure:
                pure = _cell(contest, contestant, ready, epsilon, None, repeats)
                # What is private without δ is private with it.
                cells += [pure, replace(pure, delta=DELTA)]
            if method.approximate:
                cells.append(_cell(contest, contestant, ready, epsilon, DELTA, repeats))
            for cell in cells:
                key = (epsilon, cell.delta)
                if key not in best or worth(contest, cell) < worth(contest, best[key]):
                    best[key] = cell
        tell(f"{contest.name} {contestant.name} {settings} {time.perf_counter() - started:.1f} s")
        _COUNTED.clear()
    return list(best.values())


def _quick(contest: Contest, contestant: Contestant, settings: Settings) -> bool:
    """Whether several public seeds are affordable."""
    return contestant.seeded and len(contest.records) * int(settings.get("features", 100)) < 3e7


_COUNTED: dict[tuple[Any, ...], Counted] = {}


def _counted_once(
    contest: Contest, contestant: Contestant, settings: Settings, epsilon: float, seed: int
) -> Counted:
    """One tally for all promises, but for methods that choose their sizes by ε."""
    sized = contestant.tally is not None and method_named(contestant.name).sized
    own = {**settings, "records": len(contest.records), "epsilon": epsilon} if sized else settings
    key = (contestant.name, tuple(sorted(own.items())), seed)
    if key not in _COUNTED:
        _COUNTED[key] = counted(contest, contestant, own, seed)
    return _COUNTED[key]


def _cell(
    contest: Contest,
    contestant: Contestant,
    ready: list[Counted],
    epsilon: float,
    delta: float | None,
    repeats: int,
) -> Cell:
    """Releases with one kind of noise."""
    slow = contestant.name == "pfda" or (
        contest.dim > 1 and (contestant.tally is None or contestant.name == "hermite")
    )
    number = max(2, repeats // 4) if slow else repeats
    each_tally = itertools.islice(itertools.cycle(ready), number)
    got = measure(contest, [partial(each.release, epsilon, delta) for each in each_tally], contest.truth)
    got["build"] += ready[0].seconds
    return Cell(
        data=contest.name,
        method=contestant.name,
        epsilon=epsilon,
        delta=delta or 0.0,
        settings=ready[0].settings,
        note=ready[0].note,
        **got,
    )
