"""Private k-means beside diffprivlib's, one center and scikit-learn's without privacy, and its ``inertia_``.

    HUSHSUM_ADBENCH=… python -m benchmarks clusters_peers [--seeds 3] [--sets 28_pendigits,47_yeast]

Sets are those of ADBench (files NAME.npz with an array X), at most 10,000 records of each, every column in
units of its range, which is declared. diffprivlib (0.6.6) is compared where it can be imported; it has pure ε
alone. The constants of the model were chosen on `TUNED`. After a first run on `SCORED`, with 37_Stamps, one
of them was changed, since a few hundred records in few columns had lost too much to the first step; `FRESH`
were measured after that alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results, version_of_code
from sklearn.cluster import KMeans

import hushsum as hs
from hushsum.analysis import nearest_centers

Floats = np.ndarray[Any, np.dtype[np.float64]]
RESULTS = Results("clusters_peers")
TUNED = (
    "22_magic.gamma", "31_satimage-2", "2_annthyroid", "43_WDBC", "6_cardio", "4_breastw", "12_fault",
    "29_Pima", "35_SpamBase", "27_PageBlocks", "44_Wilt", "37_Stamps",
)  # fmt: skip
SCORED = (
    "32_shuttle", "23_mammography", "28_pendigits", "41_Waveform", "47_yeast", "20_letter", "10_cover",
    "40_vowels", "7_Cardiotocography", "26_optdigits", "38_thyroid", "24_mnist",
)  # fmt: skip
FRESH = ("42_WBC", "39_vertebral", "18_Ionosphere", "5_campaign", "25_musk", "11_donors", "34_smtp")
RECORDS = 10_000
PROMISES = ((0.1, None), (1.0, None), (10.0, None), (0.1, 1e-6), (1.0, 1e-6))
NUMBERS = (3, 8)


def load(name: str) -> Floats:
    """Some records, with every column that varies mapped from its range to ±1."""
    rows = np.load(Path(os.environ["HUSHSUM_ADBENCH"]) / f"{name}.npz")["X"].astype(np.float64)
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:RECORDS]]
    low, high = rows.min(axis=0), rows.max(axis=0)
    varies = high > low
    return np.asarray((2.0 * (rows - low)[:, varies] / (high - low)[varies]) - 1.0)


def inertia(rows: Floats, centres: Any) -> float:
    """The sum of squared distances to the nearest centres."""
    return float(nearest_centers(rows, np.asarray(centres))[1].sum())


def peer(rows: Floats, number: int, epsilon: float, seed: int) -> float | None:
    """The inertia of diffprivlib's centres; None where it cannot be imported."""
    # Its forests need an older scikit-learn, and are not needed here.
    unused: Any = types.ModuleType("diffprivlib.models.forest")
    unused.RandomForestClassifier = unused.DecisionTreeClassifier = None
    sys.modules.setdefault("diffprivlib.models.forest", unused)
    try:
        from diffprivlib.models.k_means import KMeans as Private  # type: ignore[import-not-found]
    except ImportError:
        return None
    box = np.ones(rows.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Private(n_clusters=number, epsilon=epsilon, bounds=(-box, box), random_state=seed).fit(rows)
    return inertia(rows, model.cluster_centers_)


def measure(name: str, seeds: int) -> list[dict[str, Any]]:
    """All promises and numbers of clusters of one set."""
    rows, found = load(name), []
    one = float(np.square(rows - rows.mean(axis=0)).sum())
    for number in NUMBERS:
        exact = float(KMeans(number, n_init=3, random_state=0).fit(rows).inertia_)
        for epsilon, delta in PROMISES:
            ours, ratios = [], []
            for seed in range(seeds):
                model = hs.PrivateKMeans(number, epsilon=epsilon, delta=delta, random_state=seed).fit(rows)
                ours.append(inertia(rows, model.cluster_centers_))
                ratios.append(model.inertia_ / ours[-1])
            theirs = [peer(rows, number, epsilon, seed) for seed in range(seeds)]
            known = [each for each in theirs if each is not None]
            entry = {
                "set": name, "records": len(rows), "dim": rows.shape[1], "clusters": number,
                "epsilon": epsilon, "delta": delta or 0.0, "exact": exact / one,
                "diffprivlib": float(np.median(known)) / one if known else None,
                "hushsum": float(np.median(ours)) / one, "largest": max(ours) / one,
                "inertia": float(np.median(ratios)), "seeds": seeds,
            }  # fmt: skip
            print(entry, flush=True)
            found.append(entry)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", default=",".join((*TUNED, *SCORED, *FRESH)))
    given = parser.parse_args()
    done: dict[str, Any] = RESULTS.read({"entries": []})
    for name in given.sets.split(","):
        entries = measure(name, given.seeds)
        done["entries"] = [each for each in done["entries"] if each["set"] != name] + entries
        done["version"] = version_of_code().as_json()
        RESULTS.write(done)
        write_report(done)


def write_report(done: dict[str, Any]) -> None:
    """The table for readers."""
    lines = [
        "# Private k-means beside diffprivlib",
        "",
        "Inertia over that of one center, the exact mean of all records: "
        "*exact* is scikit-learn's k-means without privacy, *largest* that of the worst fit. *inertia_* is "
        "the estimate over the true one. Medians over seeds. diffprivlib has pure ε always. Constants were "
        f"chosen on {', '.join(TUNED)}; {', '.join(FRESH)} were not looked at before.",
        "",
        "| set | records | columns | clusters | ε | δ | exact | diffprivlib | hushsum | largest | inertia_ "
        "| seeds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in done["entries"]:
        theirs = "–" if each["diffprivlib"] is None else f"{each['diffprivlib']:.2f}"
        lines.append(
            f"| {each['set']} | {each['records']:,} | {each['dim']} | {each['clusters']} | "
            f"{each['epsilon']:g} | {each['delta']:g} | {each['exact']:.2f} | {theirs} | "
            f"{each['hushsum']:.2f} | {each['largest']:.2f} | {each['inertia']:.2f} | {each['seeds']} |"
        )
    RESULTS.publish("\n".join(lines))


if __name__ == "__main__":
    main()
