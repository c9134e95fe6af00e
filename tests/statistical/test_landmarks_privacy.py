"""Audits of the steps of landmarks: the shape of a tree against its exact law; and of whole releases, of
landmarks and of adaptive grids, against ε.

Rate of false alarms: that of `audit_choice` for the tree, 10⁻⁸ for the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv

import hushsum as hs
from hushsum.auditing import audit_choice
from hushsum.methods import adaptive_grid, landmarks
from hushsum.methods._landmarks import TREE_SHARE, PlaceSearch, private_leaves
from hushsum.privacy import ReleaseNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.records import Bounds

EPSILON = 4.0
LINE = Bounds((0.0,), (1.0,))
KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.1)
LEVEL = 1e-8


def path_law(count: int, epsilon: float) -> list[float]:
    """The probabilities that none, one and two of the boxes around a place with all records are halved."""
    scale = 3.0 / (float(TREE_SHARE) * epsilon)
    q, penalty = math.exp(-1.0 / scale), math.ceil(scale * math.log(2.0))

    def halved(depth: int) -> float:
        score = max(count - depth * penalty, -penalty)
        return 1.0 - q**score / (1 + q) if score > 0 else q ** (1 - score) / (1 + q)

    first, second = halved(0), halved(1)
    return [1.0 - first, first * (1.0 - second), first * second]


def path_lengths(count: int, epsilon: float, source: NoiseSource) -> Callable[[int], NDArray[np.int64]]:
    """How often boxes around the place were halved, in trees over boxes of 1, ½ and ¼."""
    rows = np.full((count, 1), -0.5, np.float32)
    noise = ReleaseNoise(source)

    def one() -> int:
        leaves = private_leaves(rows, PlaceSearch(LINE, [0.5], Fraction(epsilon), 1, noise, 10.0))
        around = int(np.argmin(leaves.low[:, 0]))
        return round(-math.log2(float(leaves.high[around, 0] - leaves.low[around, 0])))

    return lambda size: np.array([one() for _ in range(size)], np.int64)


def tree_audit(epsilon: float, seed: int) -> bool:
    """Whether trees drawn with this ε hold what is claimed for `EPSILON`."""
    source = NoiseSource.insecure(seed)
    audit = audit_choice(
        path_lengths(1, epsilon, source),
        path_lengths(0, epsilon, source),
        EPSILON,
        lambda at: (path_law(1, at), path_law(0, at)),
        what="tree of boxes",
        seed=seed,
    )
    return audit.holds


@pytest.mark.slow
def test_a_tree_holds_and_one_with_a_fifth_less_noise_is_caught() -> None:
    assert tree_audit(EPSILON, seed=1)
    assert not tree_audit(EPSILON / 0.8, seed=2)


@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_the_law_of_a_path(count: int) -> None:
    drawn = path_lengths(count, EPSILON, NoiseSource.insecure(3))(2000)
    law = np.array(path_law(count, EPSILON))
    found = np.bincount(drawn, minlength=3) / len(drawn)
    # Five standard deviations at three places: a false alarm in half a million runs.
    assert (np.abs(found - law) <= 5.0 * np.sqrt(law * (1 - law) / len(drawn)) + 1e-3).all()


Release = Callable[[list[list[float]], float, int], hs.ReleasedFunction]


def of_landmarks(X: list[list[float]], epsilon: float, seed: int) -> hs.ReleasedFunction:
    """With public places."""
    places = [[0.1], [0.9]]
    return landmarks(X, KERNEL, bounds=(0, 1), epsilon=epsilon, public=places, insecure_noise_seed=seed)


def of_boxes(X: list[list[float]], epsilon: float, seed: int) -> hs.ReleasedFunction:
    return adaptive_grid(X, KERNEL, bounds=(0, 1), epsilon=epsilon, insecure_noise_seed=seed)


def found_epsilon(release: Release, epsilon: float, number: int) -> float:
    """A lower bound of the loss, from the answer at a lone record that is there or not."""
    crowd, place = [[0.1]] * 20, [[0.9]]

    def above(X: list[list[float]], first: int) -> int:
        answers = (release(X, epsilon, first + i).sum(place)[0] for i in range(number))
        return sum(answer > 0.5 for answer in answers)

    often, seldom = above([*crowd, *place], 0), above(crowd, number)
    low = betaincinv(often, number - often + 1, LEVEL / 2) if often else 0.0
    high = betaincinv(seldom + 1, number - seldom, 1 - LEVEL / 2) if seldom < number else 1.0
    return math.log(low / high) if low else -math.inf


@pytest.mark.slow
@pytest.mark.parametrize("release", [of_landmarks, of_boxes])
def test_a_release_holds_and_one_with_eight_times_the_budget_is_caught(release: Release) -> None:
    assert found_epsilon(release, 1.0, 400) <= 1.0
    assert found_epsilon(release, 8.0, 400) > 1.0
