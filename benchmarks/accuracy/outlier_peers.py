"""The outlier detector by its defaults, beside exact kernel densities and private histograms of an oracle.

    HUSHSUM_ADBENCH=... python -m benchmarks outlier_peers [--sets 6_cardio,8_celeba] [--repetitions 3]

The folder contains files of ADBench's classical data sets (github.com/Minqi824/ADBench), arrays X and y. Half
of the normal records, at most 8,000 records, are private; up to 2,000 others and 1,000 outliers are scored.
Bounds are the range and a tenth of it beyond, or powers of ten around the values; nothing else is declared.

Peers: a Gaussian kernel density of columns divided by their standard deviation, of up to 3,000 records and
not private, with Scott's bandwidth or the best of six; and a product of one-column histograms with the same
claim, bounds and all of the budget, with the best of 3 to 50 bins. The best is chosen on the test points, for
each cell. All are written here in NumPy.

The constants of the detector were chosen on the sets of `TUNED_ON`; those for up to three columns also on one
to three columns of skin, Wilt, mammography and shuttle, of which skin has no others. That bins are better in
more than 48 columns was seen on the five scored sets that have more.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

RESULTS = Results("outlier_peers")
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
TUNED_ON = (
    "6_cardio", "30_satellite", "28_pendigits", "41_Waveform", "8_celeba", "27_PageBlocks", "10_cover",
    "12_fault", "22_magic.gamma", "43_WDBC",
)  # fmt: skip
SCORED = (
    "33_skin", "16_http", "44_Wilt", "2_annthyroid", "23_mammography", "38_thyroid", "47_yeast", "32_shuttle",
    "11_donors", "40_vowels", "7_Cardiotocography", "1_ALOI", "20_letter", "18_Ionosphere", "31_satimage-2",
    "19_landsat", "35_SpamBase", "5_campaign", "26_optdigits", "24_mnist", "25_musk",
)  # fmt: skip
BOUNDS = ("range", "powers of ten")
MULTIPLES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
BINS = (3, 5, 10, 20, 50)
_RECORDS, _NORMAL, _OUTLIERS, _OF_DENSITY = 16_000, 2000, 1000, 3000
Table = tuple[Any, Any, Any, dict[str, Any]]


@cache
def split(name: str) -> Table:
    """Normal records, test points, which of them are outliers, and the bounds."""
    stored = np.load(Path(os.environ["HUSHSUM_ADBENCH"]) / f"{name}.npz", allow_pickle=True)
    chosen = np.random.default_rng(0).permutation(len(stored["X"]))[:_RECORDS]
    X, y = stored["X"][chosen].astype(float), stored["y"][chosen].astype(int)
    half = len(X) // 2
    test, truth = X[half:], y[half:]
    kept = np.concatenate((np.flatnonzero(truth == 1)[:_OUTLIERS], np.flatnonzero(truth == 0)[:_NORMAL]))
    low, high = X.min(axis=0), X.max(axis=0)
    spare = 0.1 * np.where(high > low, high - low, 1.0)
    top = 10.0 ** np.ceil(np.log10(np.maximum(np.abs(X).max(axis=0), 1e-6)))
    boxes = {
        "range": np.column_stack((low - spare, high + spare)),
        "powers of ten": np.column_stack((np.where(low >= 0.0, 0.0, -top), top)),
    }
    return X[:half][y[:half] == 0], test[kept], truth[kept], boxes


def area(scores: Any, truth: Any) -> float:
    """Under the ROC curve; outliers have low scores."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, -scores))


def exact_densities(name: str) -> dict[str, float]:
    """Of kernel densities that are not private: with Scott's bandwidth, and with the best."""
    X, Q, truth, _ = split(name)
    rng, dim = np.random.default_rng(0), X.shape[1]
    mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-3 * np.maximum(np.ptp(X, axis=0), 1e-9))
    T = (X[rng.permutation(len(X))[:_OF_DENSITY]] - mean) / spread
    V = (Q - mean) / spread
    squares = np.maximum((V**2).sum(axis=1)[:, None] + (T**2).sum(axis=1) - 2 * V @ T.T, 0)
    nearest = squares.min(axis=1)

    def found(bandwidth: float) -> float:
        sums = np.exp((nearest[:, None] - squares) / (2 * bandwidth**2)).sum(axis=1)
        return area(np.log(sums) - nearest / (2 * bandwidth**2), truth)

    best = max(found(each * dim**0.5) for each in MULTIPLES)
    return {"Scott": found(len(X) ** (-1.0 / (dim + 4))), "best": best, "records": len(X), "columns": dim}


def histograms(name: str, bounds: str, epsilon: float, delta: float | None, seed: int) -> list[float]:
    """Of products of private histograms, by their numbers of bins."""
    from hushsum.privacy.accounting import zcdp_rho

    X, Q, truth, boxes = split(name)
    rng, (low, high) = np.random.default_rng(seed), boxes[bounds].T
    dim, areas = X.shape[1], []
    scale = dim / epsilon if delta is None else (dim / 2 / float(zcdp_rho(epsilon, delta))) ** 0.5
    for bins in BINS:
        scores = np.zeros(len(Q))
        for column in range(dim):
            width = (high[column] - low[column]) / bins
            places, asked = (
                np.clip(((rows[:, column] - low[column]) / width).astype(int), 0, bins - 1) for rows in (X, Q)
            )
            noise = rng.laplace(0, scale, bins) if delta is None else rng.normal(0, scale, bins)
            counts = np.bincount(places, minlength=bins) + noise
            scores += np.log(np.maximum(counts, max(0.5, scale)))[asked]
        areas.append(area(scores, truth))
    return areas


def own(name: str, bounds: str, epsilon: float, delta: float | None, seed: int) -> tuple[float, str]:
    """The detector by its defaults, and the method that it chose."""
    import hushsum as hs

    X, Q, truth, boxes = split(name)
    model = hs.PrivateOutlierDetector(
        epsilon=epsilon, delta=delta, bounds=boxes[bounds].tolist(), random_state=seed
    )
    model.fit(X)
    return area(model.score_samples(Q), truth), model.method_


def main() -> None:
    """Measure what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sets", default=",".join((*TUNED_ON, *SCORED)))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known: dict[str, Any] = RESULTS.read({})
    for name in options.sets.split(","):
        if f"{name}, exact" not in known:
            known[f"{name}, exact"] = exact_densities(name)
        for delta in (DELTA, None):
            for epsilon in EPSILONS:
                for bounds in BOUNDS:
                    key = f"{name}, {epsilon:g}, {'pure' if delta is None else 'delta'}, {bounds}"
                    if key in known:
                        continue
                    seeds = range(options.repetitions)
                    runs = [own(name, bounds, epsilon, delta, seed) for seed in seeds]
                    peers = [histograms(name, bounds, epsilon, delta, seed) for seed in seeds]
                    known[key] = {
                        "own": [each[0] for each in runs],
                        "methods": sorted({each[1] for each in runs}),
                        "histograms": float(np.mean(peers, axis=0).max()),
                    }
        RESULTS.write(known)
    RESULTS.publish(report(known))


def report(known: dict[str, Any]) -> str:
    """Areas, and where the detector is behind."""
    lines = [
        "# The outlier detector by its defaults, beside peers",
        "",
        "`python -m benchmarks outlier_peers`: area under the ROC curve; δ = 10⁻⁶ or pure ε; means of "
        "repetitions. Bounds: the range and a tenth of it beyond / powers of ten. `exact density` is not "
        "private: with Scott's bandwidth, and the best of six, chosen on the test points; `histograms` is a "
        "private product of one-column histograms with the best number of bins, chosen likewise. `method`: "
        "density (d) or histograms (h). `behind`: K, more than 0.03 (δ) or 0.06 (pure ε) below the exact "
        "density with Scott's bandwidth; H, more than 0.02 below the private histograms; for the first and "
        "the second bounds. Skin was looked at for the constants of up to three columns, and "
        "the sets of more than 48 columns for the choice of bins there.",
    ]
    for title, names in (("Tuned on", TUNED_ON), ("Scored", SCORED)):
        for kind in ("delta", "pure"):
            for epsilon in EPSILONS:
                rows, means, behind = [], [], [0, 0, 0]
                for name in names:
                    keys = [f"{name}, {epsilon:g}, {kind}, {bounds}" for bounds in BOUNDS]
                    if not all(each in known for each in keys):
                        continue
                    cells: list[Any] = [known[each] for each in keys]
                    exact = known[f"{name}, exact"]
                    values = [float(np.mean(each["own"])) for each in cells]
                    marks = []
                    for value, cell in zip(values, cells, strict=True):
                        density = value < exact["Scott"] - (0.03 if kind == "delta" else 0.06)
                        product = value < cell["histograms"] - 0.02
                        behind = [behind[0] + density, behind[1] + product, behind[2] + 1]
                        marks.append("K" * density + "H" * product or "–")
                    peers = [each["histograms"] for each in cells]
                    means.append([*values, exact["Scott"], exact["best"], *peers])
                    methods = "/".join("".join(each[0] for each in cell["methods"]) for cell in cells)
                    rows.append(
                        f"| {name.split('_')[1]} | {exact['columns']:.0f} | {exact['records']:.0f} | "
                        f"{_pair(values)} | {methods} | {exact['Scott']:.3f}, {exact['best']:.3f} | "
                        f"{_pair(peers)} | {' / '.join(marks)} |"
                    )
                if not rows:
                    continue
                mean = np.mean(means, axis=0)
                rows.append(
                    f"| mean | | | {_pair(mean[:2])} | | {mean[2]:.3f}, {mean[3]:.3f} | {_pair(mean[4:])} | |"
                )
                promise = "δ" if kind == "delta" else "pure ε"
                lines += ["", f"## {title}, ε = {epsilon:g}, {promise}"]
                lines += [
                    "",
                    f"Of {behind[2]} cells {behind[0]} are behind the density, {behind[1]} the histograms.",
                ]
                lines += [
                    "",
                    "| data | columns | records | detector | method | exact density | histograms | behind |",
                ]
                lines += ["|---" * 8 + "|", *rows]
    return "\n".join(lines) + "\n"


def _pair(found: Any) -> str:
    return " / ".join(f"{each:.3f}" for each in found)


if __name__ == "__main__":
    main()
