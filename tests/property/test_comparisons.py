"""Comparing is symmetric, and the difference is antisymmetric, for any two samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushsum as hs
from hushsum.releases import ReleasedFunction

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.5)
AT = np.linspace(-3.0, 3.0, 15)[:, None]


def released(mean: float, number: int, seed: int) -> ReleasedFunction:
    rows = np.random.default_rng(seed).normal(mean, 1.0, (number, 1))
    return hs.grid(KERNEL, bounds=(-4, 4)).add(rows).release(epsilon=1.0, insecure_noise_seed=seed)


@settings(max_examples=15, deadline=None)
@given(
    st.floats(-1.0, 1.0),
    st.floats(-1.0, 1.0),
    st.integers(20, 500),
    st.integers(20, 500),
    st.integers(0, 999),
)
def test_swapping_changes_signs_alone(one: float, other: float, few: int, many: int, seed: int) -> None:
    f, g = released(one, few, seed), released(other, many, seed + 1000)
    forth, back = hs.compare(f, g, at=AT), hs.compare(g, f, at=AT)
    assert forth.p_value == pytest.approx(back.p_value, rel=1e-6, abs=1e-12)
    assert 0.0 <= forth.p_value <= 1.0
    assert forth.mmd_squared is not None
    assert back.mmd_squared is not None
    assert forth.mmd_squared.value == pytest.approx(back.mmd_squared.value, rel=1e-6, abs=1e-12)
    there, again = forth.difference(AT), back.difference(AT)
    np.testing.assert_allclose(there.value, -again.value, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(there.stderr, again.stderr, rtol=1e-6)
    assert (forth.significant(AT) == -back.significant(AT)).all()
