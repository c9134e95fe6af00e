"""How much noise each rule needs for its promise, with the sensitivity that its proof gives.

Proofs are in the documentation, *Private summarization*; neighbours differ by one record of one owner that is
present or absent.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hushsum.bases.fourier_feature_errors import AMPLITUDE
from hushsum.errors import ClaimError
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.messages import AUCTION, FRESH, THRESHOLD, RunTerms
from hushsum.summarize.running_sums import FactoredSums

COUNT_WEIGHT = 0.5
"""A record adds its features, of norm 1, and this much to a cell that counts."""


def count_step(features: SummaryFeatures) -> int:
    """What one record adds to the counting cell, in integer steps."""
    return max(1, round(COUNT_WEIGHT * AMPLITUDE * math.sqrt(features.features)))


def record_squared(features: SummaryFeatures) -> int:
    """The squared length of what one record adds: features and count."""
    return features.length_squared + count_step(features) ** 2


def releases_of(terms: RunTerms) -> int:
    """How often the running sum is released: before every round but the first, when it is empty."""
    return terms.rounds - 1


def sum_squared(terms: RunTerms) -> int:
    """Δ² of all releases of the running sum together.

    Threshold: one record changes one increment, and with a cap a second one: four times. Fresh, and the
    auction: the sums differ by one point for another, in every release.
    """
    if terms.rule == THRESHOLD:
        changed = 1 if terms.cap is None else 4
        return (
            changed * record_squared(terms.features) * FactoredSums.column_squared(max(releases_of(terms), 1))
        )
    return 4 * terms.features.length_squared * releases_of(terms)


def answers_rho(terms: RunTerms) -> Fraction:
    """What the auction's answers tell all other owners together: (K − 1)·rate²/8 a round.

    One record moves one owner's rank, and each other owner by one rank at most; a coin whose log-odds move
    by ``rate`` is rate²/8-zCDP, since the second derivative of log(1 + eˣ) is at most 1/4.
    """
    if terms.rule != AUCTION or terms.rate is None:
        return Fraction(0)
    return terms.rounds * (len(terms.owners) - 1) * terms.rate**2 / 8


def sum_variance(terms: RunTerms) -> Fraction:
    """The variance of the discrete Gaussian noise on the running sum.

    Raises
    ------
    ClaimError
        if the answers alone spend what was promised.
    """
    if terms.rho is None:
        raise ClaimError(
            rule=f"the rule {terms.rule} keeps no promise", remedy=f"take {THRESHOLD} or {FRESH}"
        )
    left = terms.rho - answers_rho(terms)
    if left <= 0:
        raise ClaimError(
            parameter="rate",
            rule=f"must leave something of rho = {float(terms.rho):g} for the sums",
            remedy="take a smaller rate",
        )
    return Fraction(max(sum_squared(terms), 1)) / (2 * left)


def target_variance(features: SummaryFeatures, rho: Fraction) -> Fraction:
    """The variance of the noise on the validation set's sum and count."""
    return Fraction(record_squared(features)) / (2 * rho)
