"""The error of random Fourier features, before any data are seen: noise exactly, chance for a given density.

Letters: m pairs, N records, K the mean of k(x, x') over pairs of records, which is the mean density at a
record; ω_j the frequencies and φ(ω) the mean of e^{iω·x} over the records.

A row estimates g_j = Re(φ(ω_j)·e^{−iω_j·q}), whose mean is f(q) and whose variance is ``(K + B(q))/2 −
f(q)²``, with B(q) = E Re(φ(ω)²·e^{−2iω·q}), the mean of k(x + x', 2q) over pairs. Since |g_j| ≤ |φ(ω_j)|, and
E|φ(ω)|² = K, the variance is at most ``K − f²`` at every query.

With the records divided among P groups of rows by a pairwise independent hash, a row sees about N/P records
and its answer is multiplied by P. In place of K stands the mean of P·k(x, x') over pairs that share a group,
which is K + (P − 1)/N: groups cost next to nothing while P is far below N·K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushsum import _native
from hushsum.errors import UsageError
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.privacy.integer_noise import IntegerNoise

AMPLITUDE = _native.WAVE_AMPLITUDE
LENGTH = _native.WAVE_LENGTH
TYPICAL_PAIR_VARIANCE = 0.037
"""Variance of one pair's answer over N². Of normal records in many columns it is K·(1 − K)²/2 at a mean
density K: from 0.018 to its largest value 0.074 for every K from 0.04 to 0.68, of which this is the middle.
The optimum is flat: a factor of two in this number costs a twentieth of the error.
"""


def feature_sensitivity(pairs: int, relation: Relation) -> Sensitivity:
    """Every row moves by a vector no longer than L, or 2L where a record is replaced.

    ‖v‖₁ ≤ √2·‖v‖₂ in the plane, so Δ1 is at most ⌊√2·L⌋ per row.

    >>> feature_sensitivity(10, Relation.ADD_REMOVE)
    Sensitivity(l1=14480, l2_squared=10485760, largest=1024)
    """
    length = LENGTH if relation is Relation.ADD_REMOVE else 2 * LENGTH
    square = length**2
    return Sensitivity(l1=pairs * math.isqrt(2 * square), l2_squared=pairs * square, largest=length)


def pairs_for_laplace(
    records: float, epsilon: float, capacity: int, variance: float = TYPICAL_PAIR_VARIANCE
) -> int:
    """The pairs a pure-ε release should publish, without looking at anything private but a paid count.

    The variance v·N²/m + 4m/ε² is smallest at m = N·ε·√v/2, with v the variance of a pair.

    >>> pairs_for_laplace(records=100_000, epsilon=0.1, capacity=4000)
    962
    """
    best = records * epsilon * math.sqrt(variance) / 2.0
    return max(1, min(capacity, math.ceil(best)))


def pair_variance(density: float, dim: int) -> float:
    """The variance of one pair's answer over N², on average over queries from the data, for normal data.

    With variance a·h² in every column, ``K = (1 + 2a)^{−d/2}``, the mean of B is ``(1 + 6a)^{−d/2}`` and
    that of f² is ``((1 + a)(1 + 3a))^{−d/2}``; K and d give a. In high dimension this is K/2.

    >>> round(pair_variance(density=0.05, dim=54), 4)
    0.0225
    """
    if not 0.0 < density <= 1.0:
        raise UsageError(
            parameter="density",
            rule="must be above 0 and at most 1",
            got=f"{density}",
            remedy="give the mean similarity",
        )
    a: float = (math.pow(density, -2.0 / dim) - 1.0) / 2.0
    moved = math.pow(1.0 + 6.0 * a, -dim / 2.0)
    squared = math.pow((1.0 + a) * (1.0 + 3.0 * a), -dim / 2.0)
    return max((density + moved) / 2.0 - squared, 0.0)


def chance_error(*, records: int, dim: int, pairs: int, density: float, groups: int = 1) -> float:
    """The mean absolute error of the mean kernel value that independent random frequencies leave."""
    variance = (pair_variance(density, dim) + (groups - 1) / (2.0 * records)) / pairs
    return math.sqrt(2.0 / math.pi * variance)


@dataclass(frozen=True, slots=True)
class FeatureError:
    """Predicted mean absolute errors of the mean kernel value, at queries from the data.

    ``noise`` is that of the claim, ``chance`` that of the random frequencies; ``total`` has both.
    """

    noise: float
    chance: float
    total: float


def predicted_error(
    *, records: int, dim: int, pairs: int, noise: IntegerNoise, density: float, groups: int = 1
) -> FeatureError:
    """The error of a release with ``pairs`` pairs, from declared quantities alone.

    ``noise`` is that of the table's cells (`hushsum.privacy.calibration.calibrate`); the error of the noisy
    number of records is left out. ``density`` is the mean similarity of two records, which a publisher
    declares or guesses; chance is that of independent frequencies, which orthogonal ones undercut. ``groups``
    is the number of groups of pairs, of which a record is counted in one.

    >>> from hushsum.privacy.calibration import UnitChange, calibrate
    >>> from hushsum.privacy.claim import Promise
    >>> moved = feature_sensitivity(4000, Relation.ADD_REMOVE)
    >>> record = UnitChange.of_records(moved, None, Relation.ADD_REMOVE)
    >>> noise = calibrate(Promise.of(epsilon=1.0, delta=1e-6), record, cells=8000).table
    >>> error = predicted_error(records=581_000, dim=54, pairs=4000, noise=noise, density=0.05)
    >>> f"{error.noise:.1e} {error.chance:.1e} {error.total:.1e}"
    '5.9e-06 1.9e-03 1.9e-03'
    """
    variance = groups**2 * noise.variance / (pairs * AMPLITUDE**2) / records**2
    of_noise = math.sqrt(2.0 / math.pi * variance)
    chance = chance_error(records=records, dim=dim, pairs=pairs, density=density, groups=groups)
    return FeatureError(noise=of_noise, chance=chance, total=math.hypot(of_noise, chance))
