"""What trust is worth: errors of central, federated, site-level, shuffled and local releases of one data set.

Skin tones in three columns, a Euclidean kernel, queries from the data. All releases claim the same ε, with
the same δ where they have one. Federated releases are simulated by the distribution of their noise, n
differences of two negative binomial numbers, of which n − t suffice; reports of persons are drawn like those
of ``make_report``; everything else is really released. Mean absolute errors of f(q)/N over queries and
repetitions, next to those that ``hs.plan(trust=…)`` predicts with 5,000 of the records as a public sample.

    python -m benchmarks trust_models          # a few minutes; needs $HUSHSUM_DATA
    python -m benchmarks trust_models --reports  # time to collect and read 10⁶ reports
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import ROOT, Results, version_of_code
from numpy.typing import NDArray
from papers.data import dataset_file
from tests.oracles.local_reports import lines_of, simulated_reports

import hushsum as hs
from hushsum.parties import ReportTerms, collect_reports
from hushsum.privacy.accounting import local_epsilon_for

FIGURE = ROOT / "docs/figures/trust.png"
BANDWIDTH, BOUNDS, ROWS, WIDTH = 20.0, (0, 255), 500, 1000
EPSILON, DELTA, QUERIES, REPEATS = 1.0, 1e-6, 200, 4
PERSONS = (1_000, 10_000, 100_000)
SITES, COLLUDING = (3, 20), 0.25
KERNEL = hs.EuclideanKernel(dim=3, bandwidth=BANDWIDTH)

Floats = NDArray[np.float64]
Terms = dict[str, Any]


def central(X: Floats, Q: Floats, epsilon: float, delta: float | None) -> Floats:
    tally = hs.race(KERNEL, rows=ROWS, width=WIDTH, bounds=BOUNDS).add(X)
    return np.asarray(tally.release(epsilon=epsilon, delta=delta, rows=ROWS)(Q))


def federated(X: Floats, Q: Floats, epsilon: float, sites: int, rng: np.random.Generator) -> Floats:
    """Pure ε: the noise of all sites, of which a quarter may collude."""
    honest = sites - int(COLLUDING * sites)
    tally = hs.race(KERNEL, rows=ROWS, width=WIDTH, bounds=BOUNDS).add(X)
    f: Any = tally.release(epsilon=1e9, rows=ROWS, count_share=0.5)
    success = 1.0 - np.exp(-epsilon / ROWS)
    shape = sites / honest  # the sum of n numbers of shape 1/(n − t)
    noise = rng.negative_binomial(shape, success, (2, ROWS, WIDTH))
    table = np.asarray(f.table) + noise[0] - noise[1]
    cells = f.reading.basis.cells(f.basis.prepare_queries(Q))
    mean = table[np.arange(ROWS), cells].mean(axis=1)
    return np.asarray(f.reading.unfold(mean, float(len(X))) / len(X))


def by_sites(X: Floats, Q: Floats, epsilon: float, sites: int) -> Floats:
    """Each site's release by itself, added."""
    parts = np.array_split(X, sites)
    released = [
        hs.race(KERNEL, rows=ROWS, width=WIDTH, bounds=BOUNDS).add(part).release(epsilon=epsilon, rows=ROWS)
        for part in parts
    ]
    return np.asarray(sum(f.sum(Q) for f in released) / sum(f.count for f in released))


def reported(X: Floats, Q: Floats, local: float, rng: np.random.Generator) -> Floats:
    terms = ReportTerms.of(KERNEL, epsilon=local, rows=ROWS, width=WIDTH, bounds=BOUNDS)
    return np.asarray(collect_reports(terms, simulated_reports(terms, X, rng))(Q))


def ways(X: Floats, Q: Floats, rng: np.random.Generator) -> dict[str, tuple[Callable[[], Floats], Terms]]:
    """Every kind of release, and the parameters of its plan."""
    local = local_epsilon_for(EPSILON, len(X), DELTA)
    found: dict[str, tuple[Callable[[], Floats], Terms]] = {
        "central": (partial(central, X, Q, EPSILON, None), {}),
        "central, δ": (partial(central, X, Q, EPSILON, DELTA), {"delta": DELTA}),
    }
    for n in SITES:
        terms = {"trust": "federated", "sites": n, "colluding": int(COLLUDING * n)}
        found[f"federated, {n} sites"] = (partial(federated, X, Q, EPSILON, n, rng), terms)
    for n in SITES:
        terms = {"trust": "sites", "sites": n}
        found[f"{n} sites with noise of their own"] = (partial(by_sites, X, Q, EPSILON, n), terms)
    found["shuffled, δ"] = (partial(reported, X, Q, local, rng), {"trust": "shuffled", "delta": DELTA})
    found["local"] = (partial(reported, X, Q, EPSILON, rng), {"trust": "local"})
    return found


def measure() -> list[dict[str, Any]]:
    """Errors of every kind of release, for several numbers of persons."""
    import pandas as pd

    frame = pd.read_parquet(dataset_file("skin_segmentation"), columns=["B", "G", "R"])
    everything = frame.to_numpy(np.float64).copy()
    rng = np.random.default_rng(0)
    rng.shuffle(everything)
    public, private = everything[:5_000], everything[5_000:]
    found = []
    for persons in PERSONS:
        X, Q = private[:persons], private[-QUERIES:]
        truth = np.asarray(KERNEL.exact_sum(X, Q)) / persons
        for name, (release, terms) in ways(X, Q, rng).items():
            errors = [float(np.abs(release() - truth).mean()) for _ in range(REPEATS)]
            plan = hs.plan(
                records=persons,
                kernel=KERNEL,
                epsilon=EPSILON,
                rows=ROWS,
                width=WIDTH,
                method="race",
                public=public,
                queries=Q,
                **terms,
            )
            found.append(
                {
                    "trust": name,
                    "persons": persons,
                    "epsilon": EPSILON,
                    "error": float(np.mean(errors)),
                    "predicted": plan.best.error,
                    "truth": float(truth.mean()),
                }
            )
            print(found[-1], flush=True)
    return found


def page(found: list[dict[str, Any]], version: str) -> str:
    """The results as Markdown."""
    names = list(dict.fromkeys(each["trust"] for each in found))
    lines = [
        "# What trust is worth",
        "",
        f"`python -m benchmarks trust_models`. Skin tones, Euclidean kernel of bandwidth {BANDWIDTH:g},",
        f"{ROWS} rows × {WIDTH} cells, ε = 1, δ = {DELTA:g} where there is one, a quarter of the federated",
        f"sites may collude. Mean absolute error of f(q)/N over {QUERIES} queries and {REPEATS} releases; in",
        "brackets what `hs.plan` predicts.",
        "",
        "| trust | " + " | ".join(f"{each:,} persons" for each in PERSONS) + " |",
        "| --- |" + " ---: |" * len(PERSONS),
    ]
    of = {(each["trust"], each["persons"]): each for each in found}
    for name in names:
        cells = [f"{of[name, n]['error']:.2g} ({of[name, n]['predicted']:.2g})" for n in PERSONS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    truth = found[0]["truth"]
    return "\n".join([*lines, "", f"The mean of f(q)/N is {truth:.2g}. hushsum {version}.", ""])


def picture(found: list[dict[str, Any]], path: Path) -> None:
    """Errors against the number of persons."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    for name in dict.fromkeys(each["trust"] for each in found):
        points = [(each["persons"], each["error"]) for each in found if each["trust"] == name]
        axes.loglog(*zip(*points, strict=True), marker="o", label=name)
    axes.set_xlabel("persons")
    axes.set_ylabel("mean absolute error of f(q)/N")
    axes.set_title("The same data and ε = 1 under different trust")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def collect_many(number: int = 1_000_000) -> dict[str, float]:
    """Seconds of processor time to parse reports, make the function, and answer 1,000 queries."""
    rng = np.random.default_rng(0)
    terms = ReportTerms.of(KERNEL, epsilon=1.0, rows=1000, width=WIDTH, bounds=BOUNDS)
    text = lines_of(
        terms,
        rng.integers(0, 1000, number),
        rng.integers(0, terms.order, number),
        rng.integers(0, 2, number).astype(np.bool_),
    )
    start = time.process_time()
    f = collect_reports(terms, text)
    middle = time.process_time()
    f.query(rng.uniform(*BOUNDS, (1000, 3)))
    return {"collect": middle - start, "1,000 queries": time.process_time() - middle}


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", action="store_true", help="only the time to collect 10⁶ reports")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    seconds = collect_many()
    print({name: round(value, 2) for name, value in seconds.items()})
    if options.reports:
        return
    found = measure()
    document = {"seconds for 1,000,000 reports": seconds, "errors": found}
    results = Results("trust_models", options.output)
    results.write(document)
    results.publish(page(found, str(version_of_code())))
    picture(found, FIGURE)


if __name__ == "__main__":
    main()
