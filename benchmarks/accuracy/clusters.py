"""Inertia of private k-means beside scikit-learn's, DP-Lloyd and pycle.

``python -m benchmarks clusters measure NAME …`` measures some of `SETS` and adds them to the results,
``pycle NAME`` adds pycle (PyPI, version 1.2) where it can be imported, and ``report`` writes the page. Real
sets are found through ``$HUSHSUM_DATA``.

Constants of the models were chosen with cod_rna, protein_casp and normal clusters of other seeds in view;
none of the sets here was used for that.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results, version_of_code
from sklearn.cluster import KMeans

import hushsum as hs
from hushsum.analysis import nearest_centers
from hushsum.privacy.accounting import zcdp_rho

Floats = np.ndarray[Any, np.dtype[np.float64]]
RESULTS = Results("clusters")
RECORDS = 100_000
PROMISES: dict[str, tuple[float, float | None]] = {
    "ε = 1, δ = 1e-6": (1.0, 1e-6),
    "ε = 0.1, δ = 1e-6": (0.1, 1e-6),
    "ε = 1, δ = 0": (1.0, None),
}
FIRST_PROMISE = next(iter(PROMISES))
REPETITIONS = 3
LLOYD_STEPS = (3, 6, 10)


def blobs(dim: int, width: float, shares: list[float] | None = None, heap: float = 0.0) -> Floats:
    """Eight normal clusters around random centres in a box of ±1."""
    rng = np.random.default_rng(100 + dim)
    centres = rng.uniform(-0.8, 0.8, (8, dim))
    chosen = rng.choice(8, RECORDS, p=shares)
    made = centres[chosen] + width * rng.standard_normal((RECORDS, dim))
    return np.clip(np.rint(made / heap) * heap if heap else made, -1.0, 1.0)


def real(name: str, columns: list[str], bounds: list[tuple[float, float]]) -> Floats:
    """Columns of a shared set, mapped from declared ranges to ±1."""
    import pyarrow.parquet as pq

    table = pq.read_table(Path(os.environ["HUSHSUM_DATA"]) / f"{name}.parquet", columns=columns)
    rows = np.column_stack([table[each].to_numpy().astype(np.float64) for each in columns])
    rows = rows[np.isfinite(rows).all(axis=1)]
    low, high = np.array(bounds).T
    return np.asarray(np.clip(2.0 * (rows - low) / (high - low) - 1.0, -1.0, 1.0), np.float64)


UNEQUAL = [0.4, 0.3, 0.15, 0.08, 0.03, 0.02, 0.01, 0.01]
SETS: dict[str, tuple[Callable[[], Floats], tuple[int, ...]]] = {
    **{f"clusters, d = {dim}": (partial(blobs, dim, 0.15), (8,)) for dim in (2, 8, 16)},
    **{f"overlapping, d = {dim}": (partial(blobs, dim, 0.4), (8,)) for dim in (2, 8, 16)},
    **{f"unequal sizes, d = {dim}": (partial(blobs, dim, 0.1, UNEQUAL), (8,)) for dim in (2, 8, 16)},
    "heaped to tenths, d = 8": (lambda: blobs(8, 0.15, heap=0.1), (8,)),
    "shuttle": (
        lambda: real("shuttle", [f"f{i}" for i in range(1, 10)], [(0, 130), (-100, 100), (0, 150),
            (-100, 100), (-200, 200), (-100, 100), (-50, 100), (-100, 200), (-100, 150)]), (3, 8, 20)),
    "occupancy": (
        lambda: real("occupancy", ["temperature", "humidity", "light", "co2", "humidity_ratio"],
            [(15, 30), (10, 50), (0, 2000), (400, 2200), (0, 0.01)]), (3, 8, 20)),
    "sf_salaries_2011_2014": (
        lambda: real("sf_salaries_2011_2014", ["base_pay", "overtime_pay", "other_pay"],
            [(0, 300_000), (0, 100_000), (0, 100_000)]), (3, 8, 20)),
    "naval_propulsion": (
        lambda: real("naval_propulsion", ["lever_position", "ship_speed", "gt_shaft_torque", "gt_rate_of_rev",
            "hp_turbine_exit_temp", "gt_compressor_outlet_air_temp", "hp_turbine_exit_pressure", "fuel_flow"],
            [(0, 10), (0, 30), (0, 80_000), (1000, 4000), (400, 1200), (500, 800), (1, 5), (0, 2)]),
        (3, 8, 20)),
}  # fmt: skip


def inertia(rows: Floats, centres: Floats) -> float:
    """The sum of squared distances to the nearest centres."""
    return float(nearest_centers(rows, centres)[1].sum())


def lloyd(rows: Floats, number: int, epsilon: float, delta: float | None, steps: int, seed: int) -> Floats:
    """DP-Lloyd: centres that are far apart, then steps of noisy sums and numbers over the whole box.

    Su et al. 2016. The noise is of floating point here, calibrated like that of the models: ρ or ε in equal
    parts over the steps; a record moves its sum by at most √d in L2 and d in L1, and its number by 1.
    """
    rng = np.random.default_rng(seed)
    dim = rows.shape[1]
    centres = rng.uniform(-1.0, 1.0, (64 * number, dim))
    chosen = [0]
    for _ in range(number - 1):
        apart = np.min([np.square(centres - centres[j]).sum(axis=1) for j in chosen], axis=0)
        chosen.append(int(np.argmax(apart)))
    centres = 0.7 * centres[chosen]
    for _ in range(steps):
        nearest, _ = nearest_centers(rows, centres)
        counts: Floats = np.bincount(nearest, minlength=number).astype(np.float64)
        sums: Floats = np.stack(
            [np.bincount(nearest, rows[:, j], minlength=number) * 1.0 for j in range(dim)], axis=1
        )
        if delta is None:
            # Half of each step's ε for either.
            counts = counts + rng.laplace(0.0, 2.0 * steps / epsilon, number)
            sums = sums + rng.laplace(0.0, 2.0 * dim * steps / epsilon, (number, dim))
        else:
            rho = zcdp_rho(epsilon, delta) / steps
            counts = counts + rng.normal(0.0, 1.0 / np.sqrt(2.0 * rho * 0.1), number)
            sums = sums + rng.normal(0.0, np.sqrt(dim) / np.sqrt(2.0 * rho * 0.9), (number, dim))
        full = counts > 1.0
        centres = np.where(full[:, None], sums / np.maximum(counts, 1.0)[:, None], centres)
        centres = np.clip(centres, -1.0, 1.0)
    return centres


def pycle(rows: Floats, number: int, epsilon: float, delta: float | None, seed: int) -> Floats | None:
    """Compressive k-means of pycle with the Gaussian mechanism of its sketch, calibrated correctly.

    m = 10·k·d frequencies, at most 640; a record moves the sum of the sketch by √m in L2. The scale of the
    frequencies is that of the clusters, computed from the records without noise: an advantage for pycle.
    """
    try:
        from pycle import compressive_learning, sketching  # type: ignore[import-not-found]
    except ImportError:
        return None
    if delta is None:
        return None
    from hushsum.privacy.accounting import analytic_gaussian_sigma

    np.random.seed(seed)  # noqa: NPY002  # pycle draws from the global generator
    rng = np.random.default_rng(seed)
    dim = rows.shape[1]
    waves = min(10 * number * dim, 640)
    plain = KMeans(number, n_init=1, random_state=0).fit(rows[:10_000])
    spread = plain.inertia_ / (len(rows[:10_000]) * dim)
    frequencies = sketching.drawFrequencies("AdaptedRadius", dim, waves, Sigma=spread * np.eye(dim))
    feature_map = sketching.SimpleFeatureMap("ComplexExponential", frequencies)
    sigma = analytic_gaussian_sigma(epsilon, delta, float(np.sqrt(waves)))
    sketch = np.zeros(waves, complex)
    for part in np.array_split(rows, 50):
        sketch += np.exp(1j * part @ frequencies).sum(axis=0)
    sketch += rng.normal(0.0, sigma, waves) + 1j * rng.normal(0.0, sigma, waves)
    box = np.array([-np.ones(dim), np.ones(dim)])
    solver = compressive_learning.CLOMP_CKM(feature_map, number, box, sketch / len(rows))
    solver.fit_once()
    return np.asarray(solver.get_centroids(), np.float64)


def measure(name: str) -> list[dict[str, Any]]:
    """All promises and numbers of clusters of one set."""
    make, numbers = SETS[name]
    rows = make()
    found = []
    for number in numbers:
        exact = inertia(rows, KMeans(number, n_init=3, random_state=0).fit(rows).cluster_centers_)
        for words, (epsilon, delta) in PROMISES.items():
            ours, seconds = [], []
            for seed in range(REPETITIONS):
                start = time.process_time()
                model = hs.PrivateKMeans(number, epsilon=epsilon, delta=delta, random_state=seed)
                ours.append(inertia(rows, model.fit(rows).cluster_centers_) / exact)
                seconds.append(time.process_time() - start)
            steps = {
                t: float(np.median([inertia(rows, lloyd(rows, number, epsilon, delta, t, seed))
                                    for seed in range(REPETITIONS)])) / exact
                for t in LLOYD_STEPS
            }  # fmt: skip
            entry = {
                "set": name, "records": len(rows), "dim": rows.shape[1], "clusters": number, "promise": words,
                "hushsum": float(np.median(ours)), "largest": float(max(ours)),
                "lloyd": min(steps.values()), "seconds": float(np.median(seconds)), "pycle": None,
            }  # fmt: skip
            print(entry, flush=True)
            found.append(entry)
    return found


def add_pycle(name: str, entries: list[dict[str, Any]]) -> None:
    """Complete the entries of a set, of the promise that pycle's Gaussian mechanism takes."""
    rows = SETS[name][0]()
    for entry in entries:
        if entry["set"] == name and entry["promise"] == FIRST_PROMISE:
            number = entry["clusters"]
            exact = inertia(rows, KMeans(number, n_init=3, random_state=0).fit(rows).cluster_centers_)
            centres = pycle(rows, number, *PROMISES[FIRST_PROMISE], seed=0)
            if centres is not None:
                entry["pycle"] = inertia(rows, centres) / exact
                print(name, entry["pycle"], flush=True)


def report() -> None:
    """The page of results."""
    entries = RESULTS.read([])
    lines = [
        "# Private k-means: inertia over that of scikit-learn",
        "",
        f"`python -m benchmarks clusters`, version {version_of_code().number}. Inertia of all records"
        ", divided by that of scikit-learn's `KMeans(n_init=3)` on the same records without "
        "privacy: the median of "
        f"{REPETITIONS} releases, and the largest of them. DP-Lloyd (Su et al. 2016) is the median with the "
        f"best of {', '.join(map(str, LLOYD_STEPS))} steps, chosen without privacy. pycle is one run of "
        "compressive k-means with 10·k·d frequencies (at most 640), noise calibrated to √m by the "
        "analytic Gaussian "
        "mechanism, the number of records and the scale of the clusters known to it. Seconds are processor "
        "time of one fit. The box is ±1 after declared ranges. Constants were tuned on cod_rna, "
        "protein_casp and "
        "clusters of other seeds, which are not among these sets.",
        "",
        "| set | records | d | k | promise | PrivateKMeans | largest | DP-Lloyd | pycle | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in entries:
        other = "–" if each["pycle"] is None else f"{each['pycle']:.3f}"
        lines.append(
            f"| {each['set']} | {each['records']:,} | {each['dim']} | {each['clusters']} | {each['promise']} "
            f"| {each['hushsum']:.3f} | {each['largest']:.3f} | {each['lloyd']:.3f} | {other} "
            f"| {each['seconds']:.1f} |"
        )
    RESULTS.publish("\n".join(lines))


def main() -> None:
    """Measure some sets, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("measure", "pycle", "report"))
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.task == "report":
        report()
        return
    for name in given.names:
        if given.task == "pycle":
            known = RESULTS.read([])
            add_pycle(name, known)
            RESULTS.write(known)
            continue
        found = measure(name)
        kept = [each for each in RESULTS.read([]) if each["set"] != name] + found
        order = {each: i for i, each in enumerate(SETS)}
        kept.sort(key=lambda each: order.get(each["set"], len(order)))
        RESULTS.write(kept)


if __name__ == "__main__":
    main()
