"""Heights at found maxima: held-out rows are honest, the rows that were searched are not.

The records are spread evenly, so that every maximum is one of the hashes and the noise. All seeds are fixed:
the numbers are the same in every run. Over 40 releases the mean of standardised errors strays by 0.16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.models import spread_points
from hushsum.models._modes import HeldOut, climb

RELEASES = 40
LOW, HIGH = -np.ones(2), np.ones(2)


@pytest.fixture(scope="module")
def standardised() -> Any:
    """(estimate − truth)/stated error at the highest point found, from searched and from held-out rows."""
    X = spread_points(LOW, HIGH, 4096, 0)
    kernel = hs.EuclideanKernel(dim=2, bandwidth=0.3, power=2)
    searched, held_out = [], []
    for seed in range(RELEASES):
        tally = hs.race(kernel, rows=200, width=500, seed=seed).add(X)
        f: Any = tally.release(epsilon=1.0, rows=200, insecure_noise_seed=seed)
        split = HeldOut.of(f, 0.5)
        starts = spread_points(LOW, HIGH, 64, seed)
        points, values = climb(split.searched, starts, LOW, HIGH, step=0.2, seed=seed)
        best = points[[values.argmax()]]
        truth = kernel.exact_sum(X, best) / len(X)
        naive = split.searched.query(best)
        height, error = split.heights(best)
        searched.append(float((naive.value - truth)[0] / naive.stderr[0]))
        held_out.append(float((height - truth)[0] / error[0]))
    return np.array(searched), np.array(held_out)


def test_held_out_heights_are_unbiased_and_their_errors_hold(standardised: Any) -> None:
    _, held_out = standardised
    assert abs(held_out.mean()) < 4.0 / np.sqrt(RELEASES)
    assert 0.6 < held_out.std() < 1.5
    assert np.abs(held_out).max() < 4.5


def test_the_rows_that_were_searched_flatter_the_maximum(standardised: Any) -> None:
    """Why rows are held out at all: without that every height would be too high by standard errors."""
    searched, _ = standardised
    assert searched.mean() > 1.0
