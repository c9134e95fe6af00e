"""Every kind of released function, and every method, is compared or refused in one sentence."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.methods import method_named, tally_methods
from hushsum.releases import NoisyTable
from tests.contract.test_kernels_and_methods import SIZES
from tests.contract.test_released_functions import released
from tests.released_cases import RELEASES

REFUSALS = (
    "must have the same",
    "must be different releases",
    "has no error estimate",
    "at must be given",
    "share records and noise",
)
LINE = np.random.default_rng(5).normal(0.5, 0.1, (1500, 1))
POINTS = np.linspace(0.1, 0.9, 24)[:, None]


def check(result: hs.analysis.Comparison) -> None:
    assert np.isfinite(result.p_value)
    assert 0.0 <= result.p_value <= 1.0
    found = result.difference(result.points, simultaneous=True)
    np.testing.assert_allclose(
        found.value, result.f(result.points) - result.g(result.points), rtol=1e-6, atol=1e-9
    )
    assert (found.stderr >= 0.0).all()
    assert (found.lower <= found.value).all()
    assert "test" in dict(result.describe())
    assert result.as_json()["p_value"] == result.p_value


@pytest.mark.parametrize(("one", "other"), list(combinations_with_replacement(RELEASES, 2)))
def test_every_pair_of_kinds_is_compared_or_refused(one: str, other: str) -> None:
    f, g = released(one), released(other)
    at = None if f.kernel != g.kernel or f.dim != 1 else POINTS
    try:
        result = hs.compare(f, g, at=at)
    except UsageError as refused:
        assert any(words in str(refused) for words in REFUSALS), str(refused)  # noqa: PT017
    else:
        check(result)


@pytest.mark.parametrize("name", tally_methods())
def test_two_releases_of_every_counting_method_are_compared(name: str) -> None:
    way = method_named(name)
    kernels: tuple[Kernel, ...] = (
        hs.GaussianKernel(dim=1, bandwidth=0.1),
        hs.EuclideanKernel(dim=1, bandwidth=0.2),
        hs.kernels.DotProductKernel(dim=1),
    )
    kernel = next(each for each in kernels if way.role.test(each))
    f, g = (
        way.release(
            LINE + shift,
            kernel,
            bounds=(0, 1) if isinstance(kernel, hs.kernels.ColumnKernel) else None,
            epsilon=4.0,
            delta=None if way.pure else 1e-6,
            relation=way.relations[0],
            insecure_noise_seed=seed,
            **SIZES.get(name, {}),
        )
        for seed, shift in enumerate((0.0, 0.1))
    )
    result = hs.compare(f, g, at=POINTS)
    check(result)
    # A histogram is released as points, whose errors are known one by one.
    assert (result.test.method == "principal coordinates") == isinstance(f, NoisyTable)
    assert result.differ
