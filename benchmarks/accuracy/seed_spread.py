"""Errors over many public seeds where ``comparison`` has two: pulsars in four columns, ε = 1, δ = 1e-6.

    HUSHSUM_DATA=... python -m benchmarks seed_spread

All queries of ``pulsar_4`` see the same cluster of records, so that the error of one set of random features
is nearly the same at all of them: one draw for each seed, whatever the number of queries. ``comparison``
releases 262,144 features with the seeds 0 and 1. Here are eight others, each with one release: the error of
the features alone (*own*), and that of the release.
"""

from __future__ import annotations

import argparse

import numpy as np
from benchmarks.accuracy.comparison_contestants import DELTA, _without_noise
from benchmarks.data import CONTESTS
from benchmarks.writer import Results

import hushsum as hs

FEATURES, COUNT_SHARE = 262_144, 1 / 3
SEEDS = range(2, 10)


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    contest = CONTESTS["pulsar_4"]()
    rows = []
    for seed in SEEDS:
        tally = hs.fourier_features(contest.kernel, features=FEATURES, seed=seed).add(contest.records)
        own = _without_noise(tally, contest, len(contest.records)) - contest.truth
        f = tally.release(epsilon=1.0, delta=DELTA, count_share=COUNT_SHARE)
        error = float(np.abs(f(contest.queries) - contest.truth).mean())
        rows.append({"seed": seed, "own": float(np.abs(own).mean()), "error": error})
        print(rows[-1], flush=True)
    errors = np.array([row["error"] for row in rows])
    results = {
        "seeds": rows,
        "mean": float(errors.mean()),
        "standard_error": float(errors.std(ddof=1) / len(errors) ** 0.5),
    }
    Results("seed_spread").write(results)
    print(f"{results['mean']:.2e} ± {results['standard_error']:.1e}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
