"""Who races, with which parameters, and how one release is measured.

Baselines get their parameters by oracle: the settings of a ladder are run on the public data, further ones
while the best is at an end, and the best one counts, at no cost in ε. It is then released anew: the least of
several noisy errors is too small. Ours get none: ``grid``, ``landmarks`` and
``fourier_features`` run with their defaults, ``hermite`` and ``auto`` know the number of records.
"""

from __future__ import annotations

import io
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from benchmarks.data import Contest, Floats, selected

import hushsum as hs
from hushsum.baselines import bernstein, fourier_series, hermite, lsq_fgt, trigonometric
from hushsum.errors import SuspiciousParameter
from hushsum.kernels import HashableKernel, Kernel
from hushsum.methods import method_named
from hushsum.planning import Option, Plan, planned_tally
from hushsum.releases import NoisyTable, ReleasedFunction
from hushsum.tables import RowReading
from hushsum.tally import row_blocks

Settings = dict[str, Any]

EPSILONS = (0.1, 1.0)
FLOORS = {0.05: 69.0, 0.1: 36.0, 0.5: 8.1, 1.0: 4.2, 2.0: 2.2}
"""c(ε, δ = 1e-6): the standard deviation of a kernel sum whose features have length 1."""
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
    """Whether it is run with that many columns."""
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
                lambda epsilon, delta: tally.release(epsilon=epsilon, delta=delta, threads=1), taken, settings
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


NAME = "lsq_rff"
BLOCK = 4096
MOST_FEATURES = 1 << 18
_SEEDS = 3
_NOISES = 4
_RECORDS_AT_A_TIME = 1024
_WORK = 4e9
"""Records times features that are counted for one data set: about a minute."""


@dataclass
class Features:
    """√2·cos(ω·x + b) for a growing number of frequencies: those of m features are the first of more."""

    contest: Contest
    seed: int
    means: list[Floats] = field(default_factory=list)
    queries: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._records, repeats = np.unique(self.contest.records, axis=0, return_counts=True)
        self._share = (repeats / len(self.contest.records)).astype(np.float32)

    def grow(self) -> None:
        """Count one more block of features."""
        kernel = self.contest.kernel
        scale = 1.0 / kernel.bandwidth
        waves = self._random.normal(0.0, scale, (kernel.dim, BLOCK)).astype(np.float32)
        phases = self._random.uniform(0.0, 2.0 * np.pi, BLOCK).astype(np.float32)
        means = np.zeros(BLOCK)
        for start in range(0, len(self._records), _RECORDS_AT_A_TIME):
            part = slice(start, start + _RECORDS_AT_A_TIME)
            means += self._share[part] @ np.cos(self._records[part] @ waves + phases)
        self.means.append(math.sqrt(2.0) * means)
        self.queries.append(math.sqrt(2.0) * np.cos(self.contest.queries @ waves + phases))

    def errors(self, number: int, deviation: Callable[[int], Floats]) -> tuple[float, float]:
        """The mean absolute and the root mean square error of this many features."""
        noisy = np.concatenate(self.means)[:number] + deviation(number)
        sums = np.zeros(len(self.contest.truth))
        for start, queries in zip(range(0, number, BLOCK), self.queries, strict=False):
            part = noisy[start : start + BLOCK]
            sums += queries[:, : len(part)] @ part
        away = sums / number - self.contest.truth
        return float(np.abs(away).mean()), float(np.sqrt((away**2).mean()))


def _sizes(most: int) -> Iterator[int]:
    size = 8
    while size <= most:
        yield size
        size *= 2


def lsq_rff_cells(
    contest: Contest, *, tell: Callable[[str], None], most_features: int = MOST_FEATURES
) -> list[Cell]:
    """The best number for each promise. The numbers are doubled until the best is not the last, or until the
    counting takes too long, which the cell then says.
    """
    started = time.process_time()
    runs = [Features(contest, seed) for seed in range(_SEEDS)]
    records, random = len(contest.records), np.random.default_rng(0)
    best: dict[tuple[float, float], Cell] = {}
    for number in _sizes(most_features):
        while len(runs[0].means) * BLOCK < number:
            for run in runs:
                run.grow()
        for epsilon in EPSILONS:
            for delta in (0.0, DELTA):
                # One record moves the sums by √2 in each feature: by √2·m in L1 and √(2m) in L2.
                scale = math.sqrt(2.0) * number / (epsilon * records)
                sigma = FLOORS[epsilon] * math.sqrt(2.0 * number) / records

                def noise(m: int, pure: bool = delta == 0.0, b: float = scale, s: float = sigma) -> Floats:
                    return random.laplace(0.0, b, m) if pure else random.normal(0.0, s, m)

                found = [run.errors(number, noise) for run in runs for _ in range(_NOISES)]
                cell = _lsq_cell(contest, epsilon, delta, number, found, time.process_time() - started)
                kept = best.get((epsilon, delta))
                if kept is None or cell.error < kept.error:
                    best[epsilon, delta] = cell
        inside = all(number > 2 * cell.settings["features"] for cell in best.values())
        tell(f"{contest.name} {NAME} {number}")
        if inside or 2 * number * records * _SEEDS > _WORK:
            break
    for cell in best.values():
        if cell.settings["features"] == number:
            cell.note = AT_THE_END
    return list(best.values())


def _lsq_cell(
    contest: Contest, epsilon: float, delta: float, number: int, found: list[tuple[float, float]], took: float
) -> Cell:
    errors = np.array(found)
    by_seed = errors[:, 0].reshape(_SEEDS, _NOISES).mean(axis=1)
    return Cell(
        data=contest.name,
        method=NAME,
        epsilon=epsilon,
        delta=delta,
        error=float(errors[:, 0].mean()),
        relative=float(errors[:, 0].mean() / contest.truth.mean()),
        rms=float(np.sqrt((errors[:, 1] ** 2).mean())),
        spread=float(errors[:, 0].std()),
        releases=len(found),
        build=took,
        query=0.0,
        size=8 * number,
        mechanism="gaussian" if delta else "laplace",
        settings={"features": number},
        seeds=_SEEDS,
        seed_stderr=float(by_seed.std(ddof=1) / math.sqrt(_SEEDS)),
    )


SKETCH_ROWS = (10, 50, 200, 500, 1000, 2000, 5000, 10_000)
SKETCH_GAUSSIAN = 2000
SKETCH_WIDTH = 1000
UNDECLARED = "auto, undeclared"
ASSUMED_RECORDS = 100_000
"""The number of records that a release without ``records=`` is planned for."""

_MAX_SECONDS = 5.0
"""To count, as the plan predicts it on one core, in place of 60, so that there is time for several seeds."""

_HASH_BYTES = 8_000_000
"""The largest file of hash rows: an eighth of the default, since large ones take long to pack."""

_MOST_SEEDS, _SEEDS_OF_SMALL = 6, 24
_SMALL = 10_000_000
_INCREMENTS = 600_000_000
"""Rows times records that may be counted for one choice: some seconds; and below which there are more public
seeds, since so few rows differ much between them.
"""

Tell = Callable[[str], None]
Box = tuple[float, float] | None


def auto_cells(
    contest: Contest,
    *,
    repeats: int,
    tell: Tell,
    kernel: Kernel | None = None,
    truth: Floats | None = None,
    plan: Callable[..., Plan] | None = None,
    most_seeds: int = _MOST_SEEDS,
    declared: bool = True,
    known: Sequence[Cell] = (),
) -> list[Cell]:
    """What ``hs.release(..., records=N)`` chooses for each promise, as measured and as predicted; or without
    ``records``.

    Where a plan is the same as one of a cell that is ``known``, that cell is taken, with another name.

    Promises with one choice share their tallies. Random rows and features are drawn with several public
    seeds where time allows: errors at nearby queries share them, so one seed says little.
    """
    kernel = kernel or contest.kernel
    truth = contest.truth if truth is None else truth
    box: Box = None if isinstance(kernel, HashableKernel) else contest.bounds
    plan = plan or partial(hs.plan, kernel=kernel, bounds=box, max_seconds=_MAX_SECONDS)
    number = len(contest.records) if declared else ASSUMED_RECORDS
    name = "auto" if declared else UNDECLARED
    chosen: dict[str, list[tuple[float, float | None, Option]]] = {}
    cells: list[Cell] = []
    pure: dict[float, Option] = {}
    as_pure: list[tuple[float, float]] = []
    for epsilon, delta in promises():
        best = plan(records=number, epsilon=epsilon, delta=delta).best
        if not delta:
            pure[epsilon] = best
        same_as = [cell for cell in known if _is_same(cell, best, epsilon, delta)]
        if same_as:
            cells.append(replace(same_as[0], method=name, predicted=best.error if declared else None))
            continue
        if delta and not best.delta and _settings(best) == _settings(pure[epsilon]):
            as_pure.append((epsilon, delta))
            continue
        # Cells may be rounded under one promise and not under another.
        chosen.setdefault(f"{best.method} {best.sizes}", []).append((epsilon, delta, best))
    for same in chosen.values():
        option = same[0][2]
        seeds = (
            1 if option.method == "grid" else _seeds_of_auto(option.rows * len(contest.records), most_seeds)
        )
        one_call = method_named(option.method).tally is None
        seeds = landmark_seeds(len(contest.records)) if one_call else seeds
        found: list[list[dict[str, Any]]] = [[] for _ in same]
        for seed in range(seeds):
            tally, taken = None, 0.0
            if not one_call:
                tally, taken = filled(contest, partial(planned_tally, option, kernel, bounds=box, seed=seed))
            for (epsilon, delta, best), kept in zip(same, found, strict=True):
                release = _release(contest, kernel, best, tally, epsilon, delta, seed, declared)
                times = 1 if one_call else max(1, repeats // seeds)
                got = measure(contest, [release] * times, truth)
                kept.append({**got, "build": got["build"] + taken})
        for (epsilon, delta, best), kept in zip(same, found, strict=True):
            settings = _settings(best)
            note = "own kernel" if isinstance(kernel, HashableKernel) else ""
            cells.append(
                Cell(
                    data=contest.name,
                    method=name,
                    epsilon=epsilon,
                    delta=delta or 0.0,
                    settings=settings,
                    predicted=best.error if declared else None,
                    note=note,
                    **joined(kept),
                )
            )
            tell(f"{contest.name} auto {epsilon} {delta} {settings}")
    for epsilon, delta in as_pure:
        # Pure ε is kept where δ is allowed: the release is the same.
        same_cell = next(cell for cell in cells if cell.epsilon == epsilon and not cell.delta)
        cells.append(replace(same_cell, delta=delta))
    return cells


def _settings(best: Option) -> dict[str, Any]:
    return {"method": best.method, **best.settings, "count_share": best.count_share}


def _is_same(cell: Cell, best: Option, epsilon: float, delta: float | None) -> bool:
    """Whether a release is as that of a cell: of the same settings, and not of a part of random rows that
    depends on the number of records.
    """
    whole = best.method == "grid" or method_named(best.method).tally is None
    promised = (cell.epsilon, cell.delta) == (epsilon, delta or 0.0)
    return whole and promised and cell.settings == _settings(best)


def _release(
    contest: Contest,
    kernel: Kernel,
    best: Option,
    tally: hs.Tally | None,
    epsilon: float,
    delta: float | None,
    seed: int,
    declared: bool,
) -> Callable[[], ReleasedFunction]:
    """A release as ``hs.release`` makes it of the chosen option."""
    if tally is None:
        return partial(
            method_named(best.method).release,
            contest.records,
            kernel,
            bounds=contest.bounds,
            epsilon=epsilon,
            seed=seed,
            **best.sizes,
        )
    return partial(
        tally.release,
        epsilon=epsilon,
        delta=delta if best.delta else None,
        rows=best.rows if declared and best.method != "grid" else "auto",
        count_share=best.count_share,
        rounded=best.rounded,
        threads=1,
    )


def _seeds_of_auto(increments: int, most: int = _MOST_SEEDS) -> int:
    """Public seeds: as many as time allows, since the errors of one at all queries are as one draw."""
    most = _SEEDS_OF_SMALL if increments < _SMALL and most == _MOST_SEEDS else most
    return int(min(most, max(2, _INCREMENTS // increments)))


def filled(contest: Contest, make: Callable[[], hs.Tally]) -> tuple[hs.Tally, float]:
    """A tally of all records, and the processor seconds that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        start = time.process_time()
        tally = make().add(contest.records, threads=1)
    return tally, time.process_time() - start


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Measurements with several seeds as one."""
    mean = {name: float(np.mean([part[name] for part in parts])) for name in ("error", "relative", "spread")}
    return {
        **parts[-1],
        **mean,
        "rms": float(np.sqrt(np.mean([part["rms"] ** 2 for part in parts]))),
        "releases": sum(part["releases"] for part in parts),
        "seeds": len(parts),
        "seed_stderr": float(np.std([part["error"] for part in parts], ddof=1) / len(parts) ** 0.5)
        if len(parts) > 1
        else None,
    }


def hash_cells(
    contest: Contest, *, tell: Tell, most_seeds: int = 4, max_bytes: int = _HASH_BYTES, planned: bool = True
) -> list[Cell]:
    """Hash rows with the Euclidean kernel of the same mean density: as published, with δ, and as planned.

    The published sketch has its rows by oracle. The plan of ``auto`` is made from a hundredth of the data,
    taken as public, since without them it tells a bound.
    """
    kernel = contest.matched
    truth = kernel.exact_sum(contest.records, contest.queries) / len(contest.records)
    found: dict[tuple[str, float, int], list[dict[str, Any]]] = {}
    for rows in SKETCH_ROWS:
        if rows > SKETCH_GAUSSIAN and _passed(found):
            break
        for seed in range(_seeds_of_auto(rows * len(contest.records), most_seeds)):
            tally, taken = filled(contest, partial(_sketch, kernel, rows, seed))
            for epsilon in EPSILONS:
                for name, delta in (("sketch, Laplace", None), ("sketch, Gaussian", DELTA)):
                    if delta is None or rows == SKETCH_GAUSSIAN:
                        release = partial(tally.release, epsilon=epsilon, delta=delta, rows=rows, threads=1)
                        got = measure(contest, [release], truth)
                        got["build"] += taken
                        found.setdefault((name, epsilon, rows), []).append(got)
        tell(f"{contest.name} sketch {rows}")
    best: dict[tuple[str, float], Cell] = {}
    for (name, epsilon, rows), parts in found.items():
        cell = Cell(
            data=contest.name,
            method=name,
            epsilon=epsilon,
            delta=DELTA if "Gaussian" in name else 0.0,
            settings={"rows": rows, "width": SKETCH_WIDTH},
            note="own kernel",
            **joined(parts),
        )
        if (name, epsilon) not in best or worth(contest, cell) < worth(contest, best[name, epsilon]):
            best[name, epsilon] = cell
    if not planned:
        return list(best.values())
    sample = max(500, len(contest.records) // 100)
    chosen = np.random.default_rng(5).permutation(len(contest.records))[:sample]
    public = selected(contest.records, chosen)
    plan = partial(
        hs.plan, kernel=kernel, method="race", public=public, max_bytes=max_bytes, max_seconds=_MAX_SECONDS
    )
    as_planned = auto_cells(
        contest, repeats=4, tell=tell, kernel=kernel, truth=truth, plan=plan, most_seeds=most_seeds
    )
    return [*best.values(), *as_planned]


def _passed(found: dict[tuple[str, float, int], list[dict[str, Any]]]) -> bool:
    """Whether fewer rows than the last are best at every ε."""
    last = max(each for _, _, each in found)
    for epsilon in EPSILONS:
        errors = {
            each: np.mean([part["error"] for part in parts])
            for (name, at, each), parts in found.items()
            if at == epsilon and name == "sketch, Laplace"
        }
        if min(errors, key=lambda each: float(errors[each])) == last:
            return False
    return True


def _sketch(kernel: Kernel, rows: int, seed: int) -> hs.Tally:
    return hs.race(kernel, rows=rows, width=SKETCH_WIDTH, seed=seed)


def build_times(skin: Contest, covtype: Contest) -> list[dict[str, Any]]:
    """Seconds to count on two threads, with default sizes; the least of two runs."""
    cases: list[tuple[str, Callable[[], hs.Tally], Contest]] = [
        ("race, 1000 rows, 581k × 54", partial(hs.race, covtype.matched), covtype),
        ("fourier_features, 4000, 581k × 54", partial(hs.fourier_features, covtype.kernel), covtype),
        ("grid, 245k × 3", partial(hs.grid, skin.kernel, bounds=skin.bounds), skin),
    ]
    results = []
    for name, make, contest in cases:
        wall, processor = [], []
        for _ in range(2):
            start, used = time.perf_counter(), time.process_time()
            make().add(contest.records, threads=2)
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
        results.append({"case": name, "wall": min(wall), "processor": min(processor)})
    return results


def exact_density_seconds(contest: Contest, queries: int) -> dict[str, Any]:
    """Seconds of scikit-learn's exact KernelDensity: to fit, and a query."""
    from sklearn.neighbors import KernelDensity

    start = time.process_time()
    model = KernelDensity(bandwidth=contest.kernel.bandwidth, kernel="gaussian").fit(contest.records)
    fitted = time.process_time()
    model.score_samples(contest.queries[:queries])
    answered = (time.process_time() - fitted) / queries
    return {"data": contest.name, "fit": fitted - start, "query": answered, "queries": queries}


WIDTH = 1000
BROAD_BANDWIDTH = 0.63
"""At which 2000 hash rows err 0.0013 on this data, as the sketch did in the table to beat."""

_FEWEST_SEEDS = 2


_ROWS = tuple((size, WIDTH) for size in (500, 2000, 50_000))
_FEATURES = tuple((size, 2) for size in (500, 2000, 50_000))


@dataclass(frozen=True, slots=True)
class Curve:
    """Which kernel is released, at which sizes, and how an empty tally of a size is made."""

    kernel: Callable[[Contest], Kernel]
    make: Callable[[Kernel, int, int, int], hs.Tally]
    sizes: tuple[tuple[int, int], ...] = _ROWS
    count_share: float = 0.02


def _rows_of(kernel: Kernel, size: int, width: int, seed: int) -> hs.Tally:
    return hs.race(kernel, rows=size, width=width, seed=seed)


def _features_of(kernel: Kernel, size: int, width: int, seed: int) -> hs.Tally:
    return hs.fourier_features(kernel, features=size, seed=seed)


CURVES = {
    "race_broad": Curve(
        lambda contest: hs.EuclideanKernel(dim=contest.dim, bandwidth=BROAD_BANDWIDTH),
        _rows_of,
        # The error of the noisy count weighs with the density, which a broad kernel lets expect to be high.
        count_share=0.1,
    ),
    "fourier_features": Curve(lambda contest: contest.kernel, _features_of, _FEATURES),
}


def scaling(contest: Contest, label: str, size: int, width: int, *, tell: Tell) -> dict[str, Any]:
    """Errors at one size: without noise, and at each ε; means over public seeds. And bytes of the file."""
    curve, records = CURVES[label], len(contest.records)
    kernel = curve.kernel(contest)
    truth = kernel.exact_sum(contest.records, contest.queries) / records
    seeds = int(min(8, max(_FEWEST_SEEDS, _INCREMENTS // (size * records))))
    parts = [
        _measured(contest, partial(curve.make, kernel, size, width, seed), truth, curve.count_share)
        for seed in range(seeds)
    ]
    mean = {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
    facts = {"method": label, "size": size, "width": width, "records": records, "seeds": seeds}
    facts |= {"bandwidth": getattr(kernel, "bandwidth", None), "density": float(truth.mean())}
    tell(f"scaling {label} {size} × {width}, {seeds} seeds, own {mean['own']:.2e}, ε = 1 {mean['1']:.2e}")
    return {**facts, **mean}


def _measured(
    contest: Contest, make: Callable[[], hs.Tally], truth: Floats, count_share: float
) -> dict[str, float]:
    tally, taken = filled(contest, make)
    exact = _without_noise(tally, contest, len(contest.records))
    found = {"own": float(np.abs(exact - truth).mean()), "build": taken}
    for epsilon in EPSILONS:
        function = tally.release(epsilon=epsilon, delta=DELTA, count_share=count_share, threads=1)
        values = function(contest.queries)
        found[f"{epsilon:g}"] = float(np.abs(values - truth).mean())
        found[f"noise {epsilon:g}"] = float(np.sqrt(((values - exact) ** 2).mean()))
        assert isinstance(function, NoisyTable)
        rounded = function.rounded()
        found[f"rounded {epsilon:g}"] = float(np.abs(rounded(contest.queries) - truth).mean())
        if epsilon in (0.1, 1.0):
            found[f"bytes {epsilon:g}"] = bytes_of(function)
            found[f"rounded bytes {epsilon:g}"] = bytes_of(rounded)
    return found


def _without_noise(tally: hs.Tally, contest: Contest, number: int) -> Floats:
    """The answers of the exact table, which only a benchmark on public data may look at."""
    reading: Any = tally.reading
    batch = reading.basis.prepare_queries(contest.queries)
    # Large tables are kept as counters of one byte, which a reading does not take.
    rows = tally.basis.shape[0]
    table = np.concatenate([block for _, block in row_blocks(tally._table, rows)])
    if isinstance(reading, RowReading):
        mean = reading.read(table, batch, threads=1).mean
        return reading.unfold(mean, number) / number
    sums: Floats = reading.evaluate(table, batch, threads=1)
    return sums / number
