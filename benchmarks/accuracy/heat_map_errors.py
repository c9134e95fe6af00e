"""Heat maps: how far what is drawn is from the truth.

    HUSHSUM_DATA=... python -m benchmarks heat_map_errors [--repeats 3]

The error of a map is the sum of the absolute errors of 128 × 128 pixels over the sum of their true values.
The maps of `SCORED` are two columns of public tables, and simulated points with seeds that were not used
before; nothing was chosen on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from benchmarks.writer import Results
from numpy.typing import NDArray
from papers.data import dataset_file

import hushsum as hs

RESULTS = Results("heat_map_errors")
EPSILONS = (0.1, 1.0)
WIDTHS = (0.01, 0.03)
PIXELS = 128

Floats = NDArray[np.float64]


def country(seed: int, number: int, *, cities: int = 60, rural: float = 0.2) -> Floats:
    """Cities whose sizes follow Zipf's law, and points between them, in the unit square."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(0.05, 0.95, (cities, 2))
    sizes = np.arange(1, cities + 1) ** -1.1
    spreads = np.exp(rng.uniform(np.log(0.004), np.log(0.025), cities)) * (sizes / sizes[0]) ** 0.25
    chosen = rng.choice(cities, number, p=sizes / sizes.sum())
    points = middles[chosen] + rng.standard_t(4, (number, 2)) * spreads[chosen][:, None]
    lone = rng.random(number) < rural
    points[lone] = rng.uniform(0.1, 0.9, (int(lone.sum()), 2))
    return np.asarray(np.clip(points, 0.0, 1.0))


def streets(seed: int, number: int) -> Floats:
    """Points along 25 straight streets of the unit square."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0, 1, (25, 2, 2))
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    chosen = rng.choice(25, number, p=lengths / lengths.sum())
    along = rng.random(number)[:, None]
    points = ends[chosen, 0] * (1 - along) + ends[chosen, 1] * along
    clipped: Floats = np.clip(points + rng.normal(0, 0.004, (number, 2)), 0.0, 1.0)
    return clipped


def _columns(file: str, *ranges: tuple[str, float]) -> Floats:
    """Two columns that begin at 0, as parts of a declared range."""
    table = pq.read_table(dataset_file(file), columns=[name for name, _ in ranges])
    columns = [table[name].to_numpy().astype(np.float64) / most for name, most in ranges]
    return np.asarray(np.clip(np.stack(columns, axis=1), 0.0, 1.0))


SCORED: dict[str, Callable[[], Floats]] = {
    "country (simulated), 100,000": lambda: country(11, 100_000),
    "streets (simulated), 50,000": lambda: streets(12, 50_000),
    "forest, distances to roads and fires, 581,012": lambda: _columns(
        "covtype",
        ("Horizontal_Distance_To_Roadways", 10_000.0),
        ("Horizontal_Distance_To_Fire_Points", 10_000.0),
    ),
    "skin tones, blue and red, 245,057": lambda: _columns("skin_segmentation", ("B", 255.0), ("R", 255.0)),
}


def middles(number: int) -> Floats:
    """The middles of the pixels along a side."""
    return (np.arange(number) + 0.5) / number


def true_sums(points: Floats, width: float) -> Floats:
    """Gaussian kernel sums at the middles of the pixels."""
    places, repeats = np.unique(points, axis=0, return_counts=True)
    across, up = (np.exp(-0.5 * ((middles(PIXELS)[:, None] - each) / width) ** 2) for each in places.T)
    return np.asarray((across * repeats) @ up.T)


def nonnegative_errors(points: Floats, width: float, epsilon: float, seed: int) -> dict[str, float]:
    """Errors of the released values, of those above 0, of those above two standard errors, and of the
    non-negative version; and how often 95 % intervals hold before and after.
    """
    truth = true_sums(points, width).ravel()
    f = hs.release(
        points, bandwidth=width, bounds=(0, 1), epsilon=epsilon, method="grid",
        records=10 ** round(np.log10(len(points))), insecure_noise_seed=seed,
    )  # fmt: skip
    queries = np.stack([each.ravel() for each in np.meshgrid(*[middles(PIXELS)] * 2, indexing="ij")], axis=1)
    own, raised = f.query(queries, of="sum"), f.nonnegative().query(queries, of="sum")

    def error(values: Floats) -> float:
        return float(np.abs(values - truth).sum() / truth.sum())

    def held(answers: Any) -> float:
        return float(np.mean((answers.lower <= truth) & (truth <= answers.upper)))

    return {
        "released": error(own.value),
        "above 0": error(np.maximum(own.value, 0.0)),
        "above 2 standard errors": error(np.where(own.value > 2.0 * own.stderr, own.value, 0.0)),
        "nonnegative": error(raised.value),
        "held": held(own),
        "held after": held(raised),
    }


def _table(values: dict[str, dict[str, float]]) -> str:
    names = ["released", "above 0", "above 2 standard errors", "nonnegative", "held", "held after"]
    heads = ["as released", "negative values as 0", "below 2 standard errors as 0", "`f.nonnegative()`"]
    heads += ["95 % intervals hold", "after"]
    lines = [f"| map | bandwidth | ε | {' | '.join(heads)} |", "|---|" + "---:|" * 8]
    for key, found in values.items():
        name, width, epsilon = key.rsplit(" @ ", 1)[0], *key.rsplit(" @ ", 1)[1].split(" ")
        numbers = [f"{found[each]:.3f}" for each in names[:4]] + [f"{found[each]:.1%}" for each in names[4:]]
        lines.append(f"| {name} | {width} | {epsilon} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=3)
    repeats = options.parse_args().repeats
    values: dict[str, dict[str, float]] = {}
    for name, make in SCORED.items():
        points = make()
        for width in WIDTHS:
            for epsilon in EPSILONS:
                runs = [nonnegative_errors(points, width, epsilon, seed) for seed in range(repeats)]
                means = {each: float(np.mean([run[each] for run in runs])) for each in runs[0]}
                values[f"{name} @ {width} {epsilon}"] = means
    RESULTS.write(values)
    heading = (
        f"# Errors of heat maps\n\nSum of absolute errors over 128 × 128 pixels, over the sum of the true "
        f"values; means of {repeats} releases of a grid that `hs.release` planned.\n\n"
    )
    RESULTS.publish(heading + _table(values))


if __name__ == "__main__":
    main()
