"""The bound on δ against exact sums, dp_accounting, and the Gaussian mechanism over the reals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.errors import ClaimError
from hushsum.privacy import accounting as discrete_gaussian
from hushsum.privacy.accounting import discrete_gaussian_delta, gaussian_delta

fixed = settings(deadline=None, derandomize=True)

mp.mp.dps = 50


@cache
def exact_masses(variance: float, reach: int) -> tuple[tuple[int, mp.mpf], ...]:
    weights = [(z, mp.exp(-(mp.mpf(z) ** 2) / (2 * mp.mpf(variance)))) for z in range(-reach, reach + 1)]
    total = mp.fsum(weight for _, weight in weights)
    return tuple((z, weight / total) for z, weight in weights)


@cache
def exact_pairs(variances: tuple[float, ...]) -> list[tuple[mp.mpf, mp.mpf]]:
    """The probability of every noise vector under both neighbours, to 50 digits."""
    laws = [dict(exact_masses(v, 8 + math.ceil(9 * math.sqrt(v)))) for v in variances]
    return [
        (
            mp.fprod(law[z] for law, z in zip(laws, point, strict=True)),
            mp.fprod(law.get(z + 1, mp.mpf(0)) for law, z in zip(laws, point, strict=True)),
        )
        for point in itertools.product(*laws)
    ]


def exact_delta(epsilon: float, cells: int, variance: float, count_variance: float | None = None) -> mp.mpf:
    """Σ max(0, P − e^ε Q) over every noise vector, from the two laws themselves."""
    variances = (variance,) * cells + (() if count_variance is None else (count_variance,))
    factor = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(mp.mpf(0), here - factor * moved) for here, moved in exact_pairs(variances))


TINY_CASES = [
    (1, 0.09, None),
    (1, 0.49, None),
    (1, 2.0, None),
    (1, 25.0, None),
    (2, 0.25, None),
    (2, 0.49, None),
    (2, 1.7, None),
    (3, 0.49, None),
    (1, 0.6, 0.4),
    (1, 2.0, 9.0),
    (2, 0.8, 1.5),
]


@pytest.mark.parametrize(("cells", "variance", "count_variance"), TINY_CASES)
def test_is_above_the_exact_delta_and_close_to_it(
    cells: int, variance: float, count_variance: float | None
) -> None:
    looseness = math.exp(3 * discrete_gaussian.log_sum_excess(cells, variance)) * (1 + 1e-8)
    for epsilon in (0.05, 0.3, 1.0, 2.5, 6.0):
        exact = exact_delta(epsilon, cells, variance, count_variance)
        bound = discrete_gaussian_delta(
            epsilon, cells=cells, variance=variance, count_variance=count_variance
        )
        # enumeration leaves out noise beyond 9σ + 8
        assert exact * (1 - mp.mpf("1e-9")) - mp.mpf("1e-18") <= bound
        assert bound <= exact * looseness + mp.mpf("1e-15")


def test_without_the_excess_of_sums_it_would_be_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Callable[[int, float], float] = lambda cells, variance: 0.0  # noqa: E731
    monkeypatch.setattr(discrete_gaussian, "log_sum_excess", nothing)
    falls_short = [
        discrete_gaussian_delta(epsilon, cells=2, variance=0.25) < exact_delta(epsilon, 2, 0.25)
        for epsilon in (0.05, 0.3, 1.0, 2.5, 6.0)
    ]
    assert any(falls_short)


@pytest.mark.parametrize("variance", [0.05, 0.3, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("cells", [2, 3, 7])
def test_a_sum_of_discrete_gaussians_stays_within_its_excess(cells: int, variance: float) -> None:
    reach = 12 + math.ceil(10 * math.sqrt(variance))
    one = np.array([float(mass) for _, mass in exact_masses(variance, reach)])
    law = one
    for _ in range(cells - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    near = np.arange(-reach, reach + 1)
    total = mp.nsum(lambda s: mp.exp(-s * s / (2 * cells * variance)), [-mp.inf, mp.inf])
    target = np.exp(-(near**2) / (2 * cells * variance)) / float(total)
    kept = target > 1e-200
    excess = float(np.max(np.log(law[middle + near][kept] / target[kept])))
    bound = discrete_gaussian.log_sum_excess(cells, variance)
    assert excess <= bound + 1e-12
    if cells == 2:
        assert excess == pytest.approx(bound, abs=1e-10)  # attained by even sums


@pytest.mark.parametrize("variance", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("cells", [2, 10, 1000, 100_000])
def test_the_excess_of_sums_sharpens_the_published_one(cells: int, variance: float) -> None:
    k = np.arange(1.0, cells)
    published = 10 * float(np.sum(np.exp(-2 * math.pi**2 * variance * k / (k + 1))))
    assert 0 < discrete_gaussian.log_sum_excess(cells, variance) <= published + 1e-9


def exact_shift_delta(epsilon: float, variance: float, shift: int) -> mp.mpf:
    """δ of shifting N_Z(0, variance) by ``shift``, summed term by term from the threshold on."""
    v, e = mp.mpf(variance), mp.mpf(epsilon)
    first = int(mp.floor(e * v / shift - mp.mpf(shift) / 2)) + 1
    terms = (
        mp.exp(-(mp.mpf(s) ** 2) / (2 * v)) * -mp.expm1(e - shift * mp.mpf(shift + 2 * s) / (2 * v))
        for s in range(first, first + math.ceil(16 * math.sqrt(variance)))
    )
    return mp.fsum(terms) / (mp.sqrt(2 * mp.pi * v) * mp.jtheta(3, 0, mp.exp(-2 * mp.pi**2 * v)))


@pytest.mark.parametrize(
    ("variance", "shift", "epsilon"),
    [(3e5, 1, 0.005), (3e5, 40, 0.3), (3e5, 3000, 12.0), (1e6, 1000, 4.0), (2.0**18, 100, 1.0)],
)
def test_large_variances_are_exact_to_six_digits(variance: float, shift: int, epsilon: float) -> None:
    exact = exact_shift_delta(epsilon, variance, shift)
    bound = float(discrete_gaussian.DiscreteGaussian(variance).divergence(np.array([epsilon]), shift)[0])
    assert exact <= bound <= exact * (1 + mp.mpf("1e-6"))


@pytest.mark.parametrize(("variance", "shift"), [(50.0, 1), (50.0, 30), (3000.0, 2), (3000.0, 200), (2e5, 7)])
def test_the_expansion_lies_just_above_the_direct_sum(
    variance: float, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilon = np.linspace(0.0, 6 * shift / math.sqrt(variance), 101)
    direct = discrete_gaussian.DiscreteGaussian(variance).divergence(epsilon, shift)
    monkeypatch.setattr(discrete_gaussian, "DIRECT_BELOW", 0.0)
    expanded = discrete_gaussian.DiscreteGaussian(variance).divergence(epsilon, shift)
    remainder = 40 * (1 + 6.0**5) / (190 * shift * variance**1.5)
    assert np.all(expanded >= direct * (1 - 1e-7))
    assert np.all(expanded <= direct * (1 + 1e-7 + remainder))


@cache
def one_cell(sigma: float, pessimistic: bool) -> pld.PrivacyLossDistribution:
    step = min(1e-4, 1e-3 / sigma**2)
    return pld.from_discrete_gaussian_mechanism(
        sigma=sigma, sensitivity=1, value_discretization_interval=step, pessimistic_estimate=pessimistic
    )


@pytest.mark.parametrize(
    ("sigma", "cells"),
    [
        (0.7, 1), (3.0, 1), (25.0, 1), (3.0, 10), (25.0, 10), (0.7, 100), (3.0, 100),
        pytest.param(0.7, 10, marks=pytest.mark.slow), pytest.param(25.0, 100, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_agrees_with_privacy_loss_distributions(sigma: float, cells: int) -> None:
    above, below = (one_cell(sigma, pessimistic).self_compose(cells) for pessimistic in (True, False))
    rho = cells / (2 * sigma**2)
    slack = math.exp(3 * discrete_gaussian.log_sum_excess(cells, sigma**2)) * (1 + 1e-6)
    for epsilon in (0.1, rho, rho + 2 * math.sqrt(2 * rho), rho + 4 * math.sqrt(2 * rho)):
        bound = discrete_gaussian_delta(epsilon, cells=cells, variance=sigma**2)
        assert below.get_delta_for_epsilon(epsilon) <= bound * (1 + 1e-9)
        assert bound <= above.get_delta_for_epsilon(epsilon) * slack


@pytest.mark.parametrize(
    ("cells", "sigma", "count_sigma", "tolerance"),
    [(10, 8.0, 20.0, 0.02), (1, 3.0, 3.0, 0.01), (1, 30.0, 200.0, 0.05)],
)
def test_a_count_agrees_with_privacy_loss_distributions(
    cells: int, sigma: float, count_sigma: float, tolerance: float
) -> None:
    def composed(pessimistic: bool) -> pld.PrivacyLossDistribution:
        def one(deviation: float) -> pld.PrivacyLossDistribution:
            return pld.from_discrete_gaussian_mechanism(
                sigma=deviation,
                sensitivity=1,
                value_discretization_interval=1e-5,
                pessimistic_estimate=pessimistic,
            )

        return one(sigma).self_compose(cells).compose(one(count_sigma))

    above, below = composed(True), composed(False)
    separation = math.sqrt(cells / sigma**2 + 1 / count_sigma**2)
    for epsilon in (0.5 * separation, 2 * separation, 4 * separation):
        bound = discrete_gaussian_delta(
            epsilon, cells=cells, variance=sigma**2, count_variance=count_sigma**2
        )
        low, high = below.get_delta_for_epsilon(epsilon), above.get_delta_for_epsilon(epsilon)
        assert high < low * (1 + tolerance)  # or the comparison would say little
        assert low <= bound * (1 + 1e-9)
        assert bound <= high * (1 + 1e-6)


@pytest.mark.parametrize("cells", [100, 1000, 10**6])
@pytest.mark.parametrize("count_share", [None, 0.02, 0.5])
@pytest.mark.parametrize("separation", [0.002, 0.05, 0.4])
def test_many_cells_come_close_to_the_gaussian_mechanism_over_the_reals(
    cells: int, count_share: float | None, separation: float
) -> None:
    share = count_share or 0.0
    variance = cells / (separation**2 * (1 - share))
    count_variance = None if count_share is None else 1 / (separation**2 * share)
    for deviations in (0.5, 2.0, 5.0):
        epsilon = deviations * separation
        bound = discrete_gaussian_delta(
            epsilon, cells=cells, variance=variance, count_variance=count_variance
        )
        assert bound == pytest.approx(gaussian_delta(epsilon, separation), rel=1e-3)


def test_a_useless_count_costs_nothing_and_a_bare_one_everything() -> None:
    alone = discrete_gaussian_delta(1.0, cells=50, variance=900.0)
    assert discrete_gaussian_delta(1.0, cells=50, variance=900.0, count_variance=1e14) == pytest.approx(
        alone, rel=1e-4
    )
    assert discrete_gaussian_delta(1.0, cells=50, variance=900.0, count_variance=1e-6) > 0.999


def test_hardly_any_noise_gives_one_and_plenty_gives_next_to_nothing() -> None:
    assert discrete_gaussian_delta(1.0, cells=1000, variance=1e-9) == 1.0
    assert discrete_gaussian_delta(1.0, cells=3, variance=1e-90, count_variance=1e-90) == 1.0
    assert 0 < discrete_gaussian_delta(1.0, cells=1, variance=1e90) <= 1e-290
    assert 0 < discrete_gaussian_delta(1.0, cells=1, variance=1e90, count_variance=1e90) <= 1e-290
    assert 0 < discrete_gaussian_delta(1e6, cells=10, variance=5.0, count_variance=5.0) < 1e-100


def test_more_variance_can_be_less_private_for_a_single_cell() -> None:
    """A property of the lattice, not of the bound: whoever rounds a variance up must check it again."""
    less, more = (exact_shift_delta(5.926, variance, 1) for variance in (2.856, 2.907))
    assert more > less * 1.1


PARAMETERS = {
    "epsilon": st.floats(0.01, 20.0),
    "cells": st.integers(1, 5000),
    "variance": st.floats(0.6, 1e7),
    "count_variance": st.none() | st.floats(0.6, 1e7),
}


@fixed
@given(**PARAMETERS, factor=st.floats(1.001, 3.0))
def test_falls_with_epsilon(
    epsilon: float, cells: int, variance: float, count_variance: float | None, factor: float
) -> None:
    def delta(value: float) -> float:
        return discrete_gaussian_delta(value, cells=cells, variance=variance, count_variance=count_variance)

    assert 0 < delta(epsilon * factor) <= delta(epsilon) * (1 + 1e-6) <= 1 + 1e-6


@fixed
@given(**PARAMETERS, more=st.integers(1, 50))
def test_grows_with_the_cells(
    epsilon: float, cells: int, variance: float, count_variance: float | None, more: int
) -> None:
    fewer, plenty = (
        discrete_gaussian_delta(epsilon, cells=number, variance=variance, count_variance=count_variance)
        for number in (cells, cells + more)
    )
    loose = math.exp(3 * discrete_gaussian.log_sum_excess(cells, variance))
    assert fewer <= plenty * loose * (1 + 1e-4)


@fixed
@given(**PARAMETERS)
def test_a_count_never_helps(
    epsilon: float, cells: int, variance: float, count_variance: float | None
) -> None:
    alone = discrete_gaussian_delta(epsilon, cells=cells, variance=variance)
    both = discrete_gaussian_delta(epsilon, cells=cells, variance=variance, count_variance=count_variance)
    assert alone <= both * (1 + 1e-6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"cells": 0}, "cells"),
        ({"cells": 2.0}, "cells"),
        ({"cells": 2**60}, "cells"),
        ({"variance": -1.0}, "variance"),
        ({"variance": 1e200}, "variance"),
        ({"count_variance": 0}, "count_variance"),
        ({"count_variance": math.nan}, "count_variance"),
    ],
)
def test_refuses_what_is_no_parameter(arguments: dict[str, float], name: str) -> None:
    given_arguments = {"epsilon": 1.0, "cells": 4, "variance": 2.0} | arguments
    with pytest.raises(ClaimError, match=rf"^{name} must .*got .*; "):
        discrete_gaussian_delta(**given_arguments)  # type: ignore[arg-type]
