"""Rounded cells: smaller files, no bias, and error bars that know of it."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.releases import TableFunction

KERNEL = hs.EuclideanKernel(dim=1, bandwidth=1.0)
RECORDS = np.random.default_rng(1).normal(size=(3000, 1))


def released(**options: Any) -> Any:
    tally = hs.race(KERNEL, rows=400, width=200).add(RECORDS)
    return tally.release(epsilon=1.0, delta=1e-6, insecure_noise_seed=3, **options)


def size(function: Any) -> int:
    stream = io.BytesIO()
    function.save(stream)
    return len(stream.getvalue())


def test_cells_are_the_nearest_multiples() -> None:
    f = released()
    g = f.rounded(21)
    assert g.step == 21
    assert not (g.table % 21).any()
    assert np.abs(g.table - f.table).max() == 10
    # The remainder of noise of deviation 84 is uniform: 80,000 of them have the mean 0 ± 0.13 (6 sigma).
    assert abs((g.table - f.table).mean()) < 0.13
    assert (g.table - f.table).var() == pytest.approx((21**2 - 1) / 12, rel=0.05)


def test_a_rounded_release_is_the_release_rounded() -> None:
    np.testing.assert_array_equal(released(rounded=True).table, released().rounded().table)


def test_the_default_adds_two_per_cent_of_variance() -> None:
    f = released()
    g = f.rounded()
    assert 1.01 < g.cell_variance / f.cell_variance <= 1.02
    assert f.claim == g.claim
    assert g.query([[0.0]], of="sum").bound > f.query([[0.0]], of="sum").bound


def test_the_file_is_small_and_holds_the_same() -> None:
    f = released()
    g = f.rounded()
    assert size(g) < 0.5 * size(f) < 0.5 * f.table.size * 2
    again = hs.load(io.BytesIO(_bytes(g)))
    assert isinstance(again, TableFunction)
    assert again.step == g.step
    np.testing.assert_array_equal(again.table, g.table)
    np.testing.assert_array_equal(again([[0.3]]), g([[0.3]]))
    assert again.query([[0.3]]).bound == g.query([[0.3]]).bound


def test_shifted_cells_are_saved_as_they_are() -> None:
    rounded = released().rounded()
    g = replace(rounded, cells=rounded.table + 1)
    assert (g.table % g.step).any()
    again = hs.load(io.BytesIO(_bytes(g)))
    assert isinstance(again, TableFunction)
    np.testing.assert_array_equal(again.table, g.table)
    assert again.step == g.step


@pytest.mark.parametrize("step", [0, -3, 2, 20, 201, 2.5])
def test_other_steps_are_refused(step: Any) -> None:
    with pytest.raises(UsageError, match="step must be odd"):
        released().rounded(step)


def test_cells_are_rounded_again_to_multiples_alone() -> None:
    f = released().rounded(3)
    assert f.rounded(9).step == 9
    assert f.rounded(3) is f
    assert f.rounded().step % 3 == 0
    with pytest.raises(UsageError, match="already"):
        f.rounded(5)


def test_little_noise_leaves_nothing_to_round() -> None:
    f: Any = hs.race(KERNEL, rows=1).add(RECORDS).release(epsilon=10.0)
    assert f.rounded() is f


def _bytes(function: Any) -> bytes:
    stream = io.BytesIO()
    function.save(stream)
    return stream.getvalue()
