"""Adaptive maps against grids, thresholded grids and smoothed hierarchies, each with its best parameters.

    HUSHSUM_DATA=... python -m benchmarks adaptive_maps [--repeats 2] [--maps NAME ...]

A map is the share of the records in each of 256 × 256 pixels. Its error is the sum of the absolute errors of
all pixels, and the earth mover's distance on 64 × 64 of them, for moves along the sides, in widths of the
map. Each other method is run with every combination of its parameters, and the best of them is reported for
each error by itself; a user could not know it. Their estimates are cut at 0 and divided by their sum.
`adaptive_grid` runs with its defaults, at a bandwidth of two pixels. Its constants were chosen on another
simulated country and on a catalogue of earthquakes, and not on the maps of `MAPS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from benchmarks.writer import Results
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

import hushsum as hs
from hushsum.methods import adaptive_grid

from .heat_map_errors import SCORED, country

RESULTS = Results("adaptive_maps")
EPSILONS = (0.1, 1.0)
PIXELS, MOVED = 256, 64
FINEST = 8

Floats = NDArray[np.float64]
MAPS: dict[str, Callable[[], Floats]] = {
    "small towns (simulated), 300,000": lambda: country(13, 300_000, cities=400, rural=0.05),
    **SCORED,
}


def pooled(cells: Floats, side: int) -> Floats:
    """The sums over blocks, ``side`` of them along each side."""
    block = len(cells) // side
    return np.asarray(cells.reshape(side, block, side, block).sum(axis=(1, 3)))


def spread(cells: Floats) -> Floats:
    """Shares of the pixels: cells cut at 0, each spread evenly over its pixels."""
    block = PIXELS // len(cells)
    pixels = np.maximum(np.repeat(np.repeat(cells, block, 0), block, 1), 0.0)
    return np.asarray(pixels / max(pixels.sum(), 1e-9))


def noisy(cells: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Counts with Laplace noise."""
    return np.asarray(cells + rng.laplace(scale=1.0 / epsilon, size=cells.shape))


def hierarchy(counts: Floats, depth: int, growth: float, epsilon: float, rng: np.random.Generator) -> Floats:
    """Hay et al. 2010 on quadtrees; each level has ``growth`` times the ε of the one above."""
    shares = growth ** np.arange(depth + 1.0)
    shares *= epsilon / shares.sum()
    levels: list[Floats] = []
    below = 0.0
    for level in range(depth, -1, -1):
        found, variance = noisy(pooled(counts, 1 << level), shares[level], rng), 2.0 / shares[level] ** 2
        if levels:
            children = 4.0 * below
            found = (found * children + pooled(levels[-1], 1 << level) * variance) / (children + variance)
            variance = children * variance / (children + variance)
        levels.append(found)
        below = variance
    whole = levels.pop()
    while levels:
        each = levels.pop()
        missing = (whole - pooled(each, len(whole))) / 4.0
        whole = each + np.repeat(np.repeat(missing, 2, 0), 2, 1)
    return whole


def others(counts: Floats, epsilon: float, seed: int) -> Iterator[tuple[str, str, Floats]]:
    """Maps of the other methods with their parameters."""
    for level in range(2, FINEST + 1):
        side = 1 << level
        grid = noisy(pooled(counts, side), epsilon, np.random.default_rng(seed))
        yield "grid", f"{side}", spread(grid)
        for threshold in (1.0, 2.0, 4.0, 8.0):
            kept = np.where(grid > threshold / epsilon, grid, 0.0)
            yield "thresholded grid", f"{side}, {threshold:g}/ε", spread(kept)
        for growth in (1.0, 1.26, 1.6):
            base = hierarchy(counts, level, growth, epsilon, np.random.default_rng(seed))
            for width in (0.0, 0.5, 1.0, 2.0, 4.0):
                smooth = gaussian_filter(base, width, mode="reflect") if width else base
                yield "smoothed hierarchy", f"{side}, {growth}, {width:g}", spread(smooth)


def adaptive(points: Floats, epsilon: float, seed: int) -> Floats:
    """Shares of the pixels from the boxes of an adaptive grid, which records are spread evenly in."""
    kernel = hs.GaussianKernel(dim=2, bandwidth=2.0 / PIXELS)
    f = adaptive_grid(points, kernel, bounds=(0, 1), epsilon=epsilon, insecure_noise_seed=seed)
    edges = np.linspace(0.0, 1.0, PIXELS + 1)

    def parts(column: int, some: slice) -> Floats:
        low, high = f.low[some, column, None], f.high[some, column, None]
        inside = np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1])
        return np.asarray(np.maximum(inside, 0.0) / (high - low))

    pixels = np.zeros((PIXELS, PIXELS))
    for start in range(0, len(f.weights), 2000):
        some = slice(start, start + 2000)
        pixels += (parts(0, some) * f.weights[some, None]).T @ parts(1, some)
    return spread(pixels)


@cache
def _flows() -> tuple[Any, int]:
    """The flows between neighbouring cells: what they change, and how many there are."""
    places = np.arange(MOVED * MOVED).reshape(MOVED, MOVED)
    pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    origins = np.concatenate([each.ravel() for pair in pairs for each in pair])
    targets = np.concatenate([each.ravel() for pair in pairs for each in pair[::-1]])
    number = len(origins)
    signs = np.repeat([1.0, -1.0], number)
    places_of = np.concatenate([origins, targets])
    return coo_matrix((signs, (places_of, np.tile(np.arange(number), 2)))).tocsr(), number


def moved(one: Floats, other: Floats) -> float:
    """The earth mover's distance, as a flow of least cost."""
    matrix, number = _flows()
    surplus = (pooled(one, MOVED) - pooled(other, MOVED)).ravel()
    surplus -= surplus.mean()
    found: Any = linprog(np.full(number, 1.0 / MOVED), A_eq=matrix[:-1], b_eq=surplus[:-1], method="highs-ds")
    return float(found.fun)


def _rough(one: Floats, other: Floats) -> float:
    """Nearly proportional to the earth mover's distance, and quick: sums of errors at several scales."""
    sides = (2, 4, 8, 16, 32, 64)
    return float(sum(np.abs(pooled(one, side) - pooled(other, side)).sum() / side for side in sides))


def measured(points: Floats, epsilon: float, repeats: int) -> dict[str, Any]:
    """Both errors of every method, and the parameters of the best."""
    counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=PIXELS, range=[[0, 1], [0, 1]])
    truth = counts / counts.sum()
    runs: dict[tuple[str, str], list[Floats]] = {}
    for seed in range(repeats):
        for name, parameters, pixels in others(counts, epsilon, seed):
            runs.setdefault((name, parameters), []).append(pixels)

    def mean(error: Callable[[Floats, Floats], float], maps: list[Floats]) -> float:
        return float(np.mean([error(each, truth) for each in maps]))

    def absolute(one: Floats, other: Floats) -> float:
        return float(np.abs(one - other).sum())

    found: dict[str, Any] = {}
    for method in ("grid", "thresholded grid", "smoothed hierarchy"):
        own = {parameters: maps for (name, parameters), maps in runs.items() if name == method}
        sums = {parameters: mean(absolute, maps) for parameters, maps in own.items()}
        best = min(sums, key=lambda each: sums[each])
        near = sorted(own, key=lambda each: mean(_rough, own[each]))[:3]
        distances = {parameters: mean(moved, own[parameters]) for parameters in near}
        nearest = min(near, key=lambda each: distances[each])
        found[method] = {"l1": sums[best], "at": best, "emd": distances[nearest], "emd at": nearest}
    ours = [adaptive(points, epsilon, seed) for seed in range(repeats)]
    found["adaptive"] = {"l1": mean(absolute, ours), "emd": mean(moved, ours)}
    return found


def _table(values: dict[str, Any], error: str, digits: int) -> str:
    methods = ("grid", "thresholded grid", "smoothed hierarchy")
    lines = [f"| map | ε | {' | '.join(methods)} | `adaptive_grid` | over the best |", "|---|" + "---:|" * 6]
    for key, found in values.items():
        name, epsilon = key.rsplit(" @ ", 1)
        best = min(found[each][error] for each in methods)
        at = "at" if error == "l1" else "emd at"
        cells = [f"{found[each][error]:.{digits}f} ({found[each][at]})" for each in methods]
        own = found["adaptive"][error]
        lines.append(f"| {name} | {epsilon} | {' | '.join(cells)} | {own:.{digits}f} | {own / best:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, and write the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--maps", nargs="*", default=list(MAPS), help="by the first word of their names")
    chosen = options.parse_args()
    values = RESULTS.read({})
    for name, make in MAPS.items():
        if not any(name.startswith(each) for each in chosen.maps):
            continue
        points = make()
        for epsilon in EPSILONS:
            values[f"{name} @ {epsilon}"] = measured(points, epsilon, chosen.repeats)
            RESULTS.write(values)
    heading = (
        "# Adaptive maps\n\nEach other method with its best parameters in hindsight, for each error by "
        "itself: cells along a side, then threshold, or growth of ε and smoothing in cells. "
        f"Means of {chosen.repeats} releases.\n\n"
    )
    body = f"Sum of absolute errors:\n\n{_table(values, 'l1', 3)}\n\n"
    RESULTS.publish(f"{heading}{body}Earth mover's distance:\n\n{_table(values, 'emd', 5)}")


if __name__ == "__main__":
    main()
