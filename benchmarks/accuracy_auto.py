"""``auto`` and its predictions, hash rows on their own kernel, times to build."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from benchmarks.accuracy_data import Contest, Floats, selected
from benchmarks.accuracy_methods import DELTA, EPSILONS, Cell, landmark_seeds, measure, promises, worth

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.kernels.base import HashableKernel, Kernel
from hushsum.methods import method_named
from hushsum.planning import Option, Plan
from hushsum.planning.automatic_method import planned_tally
from hushsum.releases import ReleasedFunction

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
        seeds = 1 if option.method == "grid" else _seeds(option.rows * len(contest.records), most_seeds)
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


def _seeds(increments: int, most: int = _MOST_SEEDS) -> int:
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
        for seed in range(_seeds(rows * len(contest.records), most_seeds)):
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
