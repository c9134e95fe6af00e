"""Who races, with which parameters, and how one release is measured.

Baselines get their parameters by oracle: the settings of a ladder are run on the public data, further ones
while the best is at an end, and the best one counts, at no cost in ε. It is then released anew: the least of
several noisy errors is too small. Ours get none: ``grid``, ``landmarks`` and
``fourier_features`` run with their defaults, ``hermite`` and ``auto`` know the number of records.
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
from benchmarks.accuracy_data import Contest, Floats

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import (
    bernstein,
    fourier_series,
    hermite,
    lsq_fgt,
    method_named,
    trigonometric,
)
from hushsum.releases import ReleasedFunction

Settings = dict[str, Any]

EPSILONS = (0.1, 1.0)
DELTA = 1e-6
_FEW_RECORDS = 5000


def landmark_seeds(records: int) -> int:
    """Releases of landmarks, each with its own public seed; their errors differ most with few records."""
    return 48 if records < _FEW_RECORDS else 16


_QUICK_SECONDS = 0.05
"""To make one release and its answers: baselines that take less are released as often as ours."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The values of one parameter that an oracle chooses from.

    It starts with those from ``first`` to ``last``. While the best of them is at an end, the next value there
    is tried too; where there is none, the method or the time of a run allows none.
    """

    name: str
    values: tuple[Any, ...]
    first: int
    last: int
    others: Settings = field(default_factory=dict)


NO_SETTINGS = Ladder("", (None,), 0, 0)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A method, and the settings that are tried.

    ``tally`` makes an empty tally, which is filled once and released for every promise; else the method is
    called by its name. ``few``, ``many`` and ``vast`` are the settings in one column, in two and three, and
    in more; ``least`` and ``most`` are the columns it is run with, and ``cells`` is the largest number of
    cells that it takes, if the settings are cells per column.
    """

    name: str
    few: Ladder
    many: Ladder | None = None
    vast: Ladder | None = None
    tally: Callable[..., hs.Tally] | None = None
    ours: bool = False
    seeded: bool = False
    least: int = 1
    most: int = 3
    cells: int | None = None

    def ladder(self, contest: Contest) -> Ladder | None:
        """What is tried on this data; None where it does not run."""
        if not runs(self, contest.dim):
            return None
        many = self.few if self.many is None else self.many
        vast = many if self.vast is None else self.vast
        found = self.few if contest.dim == 1 else many if contest.dim <= 3 else vast
        if self.cells is None:
            return found
        return replace(found, values=tuple(each for each in found.values if each**contest.dim <= self.cells))


def _doubling(name: str, start: int, most: int, first: int, last: int, **others: object) -> Ladder:
    values = [start]
    while values[-1] * 2 <= most:
        values.append(values[-1] * 2)
    return Ladder(name, tuple(values), first, last, others)


CONTESTANTS = (
    Contestant("grid", NO_SETTINGS, tally=hs.grid, ours=True, most=4),
    Contestant("hermite", NO_SETTINGS, tally=hermite, ours=True),
    Contestant("landmarks", NO_SETTINGS, ours=True, seeded=True, least=4, most=20),
    Contestant("fourier_features", NO_SETTINGS, tally=hs.fourier_features, ours=True, seeded=True, most=99),
    Contestant(
        "lsq_fgt",
        Ladder("order", (2, 3, 4, 5, 6, 8, 10, 12), 1, 4),
        Ladder("order", (2, 3, 4, 5), 0, 2),
        tally=lsq_fgt,
    ),
    Contestant(
        "bernstein",
        _doubling("degree", 5, 160, 1, 3),
        Ladder("degree", (3, 5, 9, 19, 29), 1, 3),
        tally=bernstein,
    ),
    Contestant("fourier_series", _doubling("frequencies", 1, 160, 2, 5), tally=fourier_series, most=1),
    Contestant(
        "trigonometric",
        _doubling("terms", 4, 512, 1, 4),
        Ladder("terms", (3, 5, 7, 10, 14), 1, 3),
        tally=trigonometric,
    ),
    Contestant("histogram", _doubling("bins", 8, 4096, 2, 5), _doubling("bins", 8, 128, 1, 3)),
    Contestant("mwem", _doubling("rounds", 5, 160, 1, 2), _doubling("rounds", 5, 20, 0, 1, bins=24), most=2),
    Contestant(
        "privbayes",
        _doubling("bins", 16, 2048, 1, 3),
        _doubling("bins", 8, 256, 1, 3),
        _doubling("bins", 4, 64, 1, 3),
        most=8,
    ),
    # Beyond three columns its points tell nothing about the records.
    Contestant(
        "kme", _doubling("lattice", 32, 512, 1, 2), _doubling("lattice", 48, 192, 0, 1), cells=1 << 21
    ),
    Contestant("pfda", Ladder("penalty", (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7), 1, 4), most=1),
)


def runs(contestant: Contestant, columns: int) -> bool:
    """Whether it is run with so many columns."""
    return contestant.least <= columns <= contestant.most


def contestant_named(name: str) -> Contestant:
    """The contestant of that name."""
    return next(each for each in CONTESTANTS if each.name == name)


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
            tally.add(contest.records, threads=1)
            taken = time.process_time() - start
            return Counted(
                lambda epsilon, delta: tally.release(epsilon=epsilon, delta=delta, threads=1),
                taken,
                settings,
            )
    method = method_named(contestant.name)
    note = ""
    relation = str(method.relations[0])
    if relation != "add/remove":
        note = "replaced records"

    def release(epsilon: float, delta: float | None) -> ReleasedFunction:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousParameter)
            return method.release(
                contest.records, contest.kernel, bounds=contest.bounds, epsilon=epsilon, delta=delta, **own
            )

    return Counted(release, 0.0, settings, note)


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
        "mechanism": str(function.claim.mechanism),
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
    ladder = contestant.ladder(contest)
    if ladder is None:
        return []
    best: dict[tuple[float, float], tuple[int, Cell]] = {}
    low, high = ladder.first, ladder.last
    waiting = list(range(low, high + 1))
    while waiting:
        started = time.perf_counter()
        for rung in waiting:
            chosen = {ladder.name: ladder.values[rung], **ladder.others} if ladder.name else {}
            for cell in _cells_of(contest, contestant, chosen, repeats):
                key = (cell.epsilon, cell.delta)
                if key not in best or worth(contest, cell) < worth(contest, best[key][1]):
                    best[key] = rung, cell
        tell(f"{contest.name} {contestant.name} {low} to {high}, {time.perf_counter() - started:.1f} s")
        at = {rung for rung, _ in best.values()}
        waiting = []
        if high in at and high + 1 < len(ladder.values):
            high += 1
            waiting.append(high)
        if low in at and low > 0:
            low -= 1
            waiting.append(low)
    ends = {0, len(ladder.values) - 1} if len(ladder.values) > 1 else set()
    if len(ladder.values) > 1:
        best = {
            key: (rung, _released_anew(contest, contestant, cell, repeats))
            for key, (rung, cell) in best.items()
        }
        _COUNTED.clear()
    for rung, cell in best.values():
        if rung in ends:
            cell.note = "; ".join(filter(None, [cell.note, AT_THE_END]))
    return [cell for _, cell in best.values()]


def _released_anew(contest: Contest, contestant: Contestant, cell: Cell, repeats: int) -> Cell:
    """The same settings with fresh noise, as often as ours where that is quick."""
    seeds = range(min(repeats, _seeds(contest, contestant, cell.settings)))
    ready = [_counted_once(contest, contestant, cell.settings, cell.epsilon, seed) for seed in seeds]
    # A method may have been best with pure noise where δ is allowed.
    delta = cell.delta if cell.mechanism.endswith("gaussian") or not method_named(cell.method).pure else 0.0
    quick = cell.build + cell.query * len(contest.queries) < _QUICK_SECONDS
    every = contestant.tally is not None or quick
    anew = _cell(contest, contestant, ready, cell.epsilon, delta or None, repeats, all_of_them=every)
    return replace(anew, delta=cell.delta)


AT_THE_END = "at the end of its grid"


def _cells_of(contest: Contest, contestant: Contestant, settings: Settings, repeats: int) -> Iterator[Cell]:
    """One setting under every promise."""
    method = method_named(contestant.name)
    seeds = range(min(repeats, _seeds(contest, contestant, settings)))
    for epsilon in EPSILONS:
        ready = [_counted_once(contest, contestant, settings, epsilon, seed) for seed in seeds]
        if method.pure:
            pure = _cell(contest, contestant, ready, epsilon, None, repeats)
            # What is private without δ is private with it.
            yield from (pure, replace(pure, delta=DELTA))
        if method.approximate:
            yield _cell(contest, contestant, ready, epsilon, DELTA, repeats)
    _COUNTED.clear()


def _seeds(contest: Contest, contestant: Contestant, settings: Settings) -> int:
    """Public seeds: one where there is nothing random, else as many as are affordable."""
    if not contestant.seeded:
        return 1
    if contestant.tally is None:
        return landmark_seeds(len(contest.records))
    work = len(contest.records) * int(settings.get("features", 4000))
    return int(min(6, max(2, 5e8 // work)))


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
    *,
    all_of_them: bool = False,
) -> Cell:
    """Releases with one kind of noise; of baselines a part, unless all are requested."""
    number = len(ready) if contestant.tally is None and contestant.seeded else repeats
    if not contestant.ours and not all_of_them:
        number = max(3, repeats // (4 if contestant.tally is not None else 10))
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
