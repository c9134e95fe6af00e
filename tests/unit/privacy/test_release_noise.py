"""The draws of one release: calibrated from a sensitivity and a share, from one key, over at the end."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest

from hushsum.errors import ClaimError, SecretRefused
from hushsum.privacy import (
    EXPONENTIAL,
    LAPLACE,
    IntegerNoise,
    Question,
    ReleaseNoise,
    gaussian_sigma,
    release_noise,
    rounded,
    standard_normal,
)
from hushsum.privacy.accounting import gaussian_delta
from hushsum.privacy.noise import NoiseSource

ONE = Fraction(1)
SMALL = Fraction(1, 10**6)


def test_laplace_noise_has_the_scale_of_the_sensitivity_over_epsilon() -> None:
    with release_noise(1) as noise:
        noisy, drawn = noise.laplace(np.zeros((100, 500), np.int64), 7, Fraction(1, 2))
    assert drawn == IntegerNoise(LAPLACE, Fraction(14))
    assert noisy.shape == (100, 500)
    assert noisy.dtype == np.int64
    # 50,000 draws; the fourth moment is six variances squared, so the standard error is √(5/50,000).
    assert noisy.var() == pytest.approx(drawn.variance, rel=6 * np.sqrt(5 / 50_000))


def test_gaussian_noise_has_the_standard_deviation_that_keeps_the_promise() -> None:
    with release_noise(2) as noise:
        noisy, sigma = noise.gaussian(np.full(50_000, 3.0), 0.5, ONE, SMALL)
    assert gaussian_delta(1.0, 0.5 / sigma) <= 1e-6
    assert gaussian_delta(1.0, 0.5 / (0.999 * sigma)) > 1e-6
    assert noisy.std() == pytest.approx(sigma, rel=6 / np.sqrt(2 * 50_000))
    assert kstest((noisy - 3.0) / sigma, "norm").pvalue > 1e-6


def test_normal_numbers_are_normal_and_on_no_lattice() -> None:
    """What is left beside multiples of 2⁻³⁰ is uniform, and so are its bits as far down as doubles go."""
    numbers = standard_normal(200_000, NoiseSource.insecure(3))
    assert kstest(numbers, "norm").pvalue > 1e-6
    residues = numbers * 2.0**30 - np.rint(numbers * 2.0**30)
    assert kstest(residues + 0.5, "uniform").pvalue > 1e-6
    for bit in range(1, 20):
        ones = np.floor(residues * 2.0**bit) % 2.0
        assert abs(ones.mean() - 0.5) < 6 * 0.5 / np.sqrt(200_000), f"bit {bit} below the lattice is not fair"
    assert len(np.unique(numbers)) == 200_000


def test_normal_numbers_repeat_with_their_seed_and_take_streams_of_their_own() -> None:
    source = NoiseSource.insecure(3)
    first, second = standard_normal(100, source), standard_normal(100, source)
    assert np.array_equal(first, standard_normal(100, NoiseSource.insecure(3)))
    parts = [each * 2.0**30 - np.rint(each * 2.0**30) for each in (first, second)]
    assert not np.any(parts[0] == parts[1])


@pytest.mark.parametrize("moved", [0.0, 0.01])
def test_a_real_release_shows_no_lattice_around_the_exact_value(moved: float) -> None:
    """Steps of σ/2³⁰ from the value without the record are whole by chance alone, with and without it.

    Two in a thousand are within 10⁻³ of whole; 25 of 1000 are not seen in 10¹⁵ seeds, and one is fixed.
    """
    value = 0.123456789
    with release_noise(7) as noise:
        noisy, sigma = noise.gaussian(np.full(1000, value + moved), 0.01, Fraction(1, 10), SMALL)
    steps = (noisy - value) / (sigma * 2.0**-30)
    assert np.count_nonzero(np.abs(steps - np.rint(steps)) < 1e-3) < 25


def test_real_releases_are_multiples_of_a_public_step() -> None:
    with release_noise(8) as noise:
        noisy, sigma = noise.gaussian(np.linspace(0.0, 1e-3, 1000), 0.5, ONE, SMALL)
    step = 2.0 ** (np.floor(np.log2(sigma)) - 10)
    assert sigma / 2048 < step <= sigma / 1024
    assert np.array_equal(noisy / step, np.rint(noisy / step))
    assert np.array_equal(rounded(np.array([0.3, -5.0]), 1.0) * 1024, [307.0, -5120.0])


@pytest.mark.parametrize("mechanism", [EXPONENTIAL, "permute and flip"])
def test_choices_prefer_high_scores_at_the_calibrated_rate(mechanism: str) -> None:
    """Two candidates a rate of ln 3 apart: 400 choices within six standard deviations of their law."""
    question = Question([0, 11], Fraction(2), sensitivity=10)
    ratio = np.exp(-float(question.rate) * 11)
    chance = ratio / (1 + ratio) if mechanism == EXPONENTIAL else ratio / 2
    with release_noise(4) as noise:
        lower = [noise.choice(question, mechanism=mechanism) for _ in range(400)].count(0)
    assert abs(lower / 400 - chance) < 6 * np.sqrt(chance * (1 - chance) / 400)


def test_every_draw_of_a_release_is_a_new_one_and_seeds_repeat_it() -> None:
    zeros = np.zeros(50, np.int64)
    with release_noise(5) as noise:
        first, second = (noise.laplace(zeros, 100, ONE)[0] for _ in range(2))
    with release_noise(5) as noise:
        again = noise.laplace(zeros, 100, ONE)[0]
    assert not np.array_equal(first, second)
    assert np.array_equal(first, again)
    with release_noise(None) as noise:
        fresh = noise.laplace(zeros, 100, ONE)[0]
    assert not np.array_equal(first, fresh)


def test_a_seed_of_zero_is_a_seed() -> None:
    zeros = np.zeros(50, np.int64)
    found = []
    for _ in range(2):
        with release_noise(0) as noise:
            found.append(noise.laplace(zeros, 100, ONE)[0])
    assert np.array_equal(found[0], found[1])


def test_nothing_is_drawn_after_the_release() -> None:
    kept: list[ReleaseNoise] = []
    with release_noise(6) as noise:
        kept.append(noise)
    with pytest.raises(SecretRefused):
        kept[0].gaussian(np.zeros(1), 1.0, ONE, SMALL)


def test_no_sigma_without_a_delta() -> None:
    with pytest.raises(ClaimError):
        gaussian_sigma(1.0, ONE, Fraction(0))
