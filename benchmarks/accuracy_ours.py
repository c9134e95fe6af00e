"""``auto`` and its predictions, hash rows on their own kernel, times to build."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.accuracy_data import Contest, Floats
from benchmarks.accuracy_methods import DELTA, EPSILONS, Cell, measure, promises, worth

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.kernels.base import HashableKernel, Kernel
from hushsum.planning import Option, Plan
from hushsum.planning.plan import MAX_BYTES
from hushsum.planning.release import planned_tally

SKETCH_ROWS = (100, 200, 500, 1000, 2000)
SKETCH_WIDTH = 1000
_MOST_SEEDS = 24
_INCREMENTS = 20_000_000_000
"""Rows times records that may be counted for one choice: about half a minute."""

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
) -> list[Cell]:
    """What ``hs.release(..., records=N)`` chooses for each promise, as measured and as predicted.

    Promises with one choice share their tallies. Random rows and features are drawn with several public
    seeds where time allows: errors at nearby queries share them, so one seed says little.
    """
    kernel = kernel or contest.kernel
    truth = contest.truth if truth is None else truth
    box: Box = None if isinstance(kernel, HashableKernel) else contest.bounds
    plan = plan or partial(hs.plan, records=len(contest.records), kernel=kernel, bounds=box)
    chosen: dict[str, list[tuple[float, float | None, Option]]] = {}
    for epsilon, delta in promises():
        best = plan(epsilon=epsilon, delta=delta).best
        # Cells may be rounded under one promise and not under another.
        sizes = {name: value for name, value in best.settings.items() if name != "rounded"}
        chosen.setdefault(f"{best.method} {sizes}", []).append((epsilon, delta, best))
    cells = []
    for same in chosen.values():
        option = same[0][2]
        seeds = 1 if option.method == "grid" else _seeds(option.rows * len(contest.records), most_seeds)
        found: list[list[dict[str, Any]]] = [[] for _ in same]
        for seed in range(seeds):
            tally, taken = filled(contest, partial(planned_tally, option, kernel, bounds=box, seed=seed))
            for (epsilon, delta, best), kept in zip(same, found, strict=True):
                release = partial(
                    tally.release,
                    epsilon=epsilon,
                    delta=delta if best.delta else None,
                    rows="auto" if best.method == "grid" else best.rows,
                    rounded=bool(best.settings.get("rounded", False)),
                )
                got = measure(contest, [release] * max(1, repeats // seeds), truth)
                kept.append({**got, "build": got["build"] + taken})
        for (epsilon, delta, best), kept in zip(same, found, strict=True):
            settings = {"method": best.method, **best.settings}
            note = "own kernel" if isinstance(kernel, HashableKernel) else ""
            cells.append(
                Cell(
                    data=contest.name,
                    method="auto",
                    epsilon=epsilon,
                    delta=delta or 0.0,
                    settings=settings,
                    predicted=best.error,
                    note=note,
                    **joined(kept),
                )
            )
            tell(f"{contest.name} auto {epsilon} {delta} {settings}")
    return cells


def _seeds(increments: int, most: int = _MOST_SEEDS) -> int:
    """Public seeds: as many as time allows, since the errors of one at all queries are as one draw."""
    return int(min(most, max(2, _INCREMENTS // increments)))


def filled(contest: Contest, make: Callable[[], hs.Tally]) -> tuple[hs.Tally, float]:
    """A tally of all records, and the processor seconds that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        start = time.process_time()
        tally = make().add(contest.records)
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
    contest: Contest, *, tell: Tell, most_seeds: int = _MOST_SEEDS, max_bytes: int = MAX_BYTES
) -> list[Cell]:
    """Hash rows with the Euclidean kernel of the same mean density: as published, with δ, and as planned.

    The published sketch has its rows by oracle. The plan of ``auto`` is made from a hundredth of the data,
    taken as public, since without them it tells a bound.
    """
    kernel = contest.matched
    truth = kernel.exact_sum(contest.records, contest.queries) / len(contest.records)
    found: dict[tuple[str, float, int], list[dict[str, Any]]] = {}
    for rows in SKETCH_ROWS:
        for seed in range(_seeds(rows * len(contest.records), most_seeds)):
            tally, taken = filled(contest, partial(_sketch, kernel, rows, seed))
            for epsilon in EPSILONS:
                for name, delta in (("sketch, Laplace", None), ("sketch, Gaussian", DELTA)):
                    if delta is None or rows == SKETCH_ROWS[-1]:
                        release = partial(tally.release, epsilon=epsilon, delta=delta, rows=rows)
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
    public = np.random.default_rng(5).permutation(contest.records)[: max(500, len(contest.records) // 100)]
    plan = partial(hs.plan, records=len(contest.records), kernel=kernel, public=public, max_bytes=max_bytes)
    planned = auto_cells(
        contest, repeats=8, tell=tell, kernel=kernel, truth=truth, plan=plan, most_seeds=most_seeds
    )
    return [*best.values(), *planned]


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
