"""Lists of releases that are fixed beforehand, composed as tightly as is proven.

δ = 0: the ε are added, exactly. δ > 0: privacy loss distributions (Google's ``dp-accounting``), which know
the shape of each mechanism's loss and not only its two numbers.

The list, and every parameter in it, must not depend on any of its results. A ledger decides release by
release, with parameters that may; it adds only what is proven for that (``hushsum.ledger``), and does not use
this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy._claim import Claim, check_mechanism

from ._parameters import at_least_one, float_above, float_below, positive, proper_delta

MOST_L1 = 10**6
"""The largest Δ₁ that is laid out: the work grows with it."""

_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class LaplaceTable:
    """Discrete Laplace noise of one ``scale`` on a table that one unit moves by at most ``l1`` in L1.

    It enters as a single cell that moves by ``l1``: among all ways to spread the move over cells this one
    is the easiest to distinguish, since the losses of cells that move less partly cancel.
    """

    scale: Fraction
    l1: int

    @property
    def epsilon(self) -> Fraction:
        """The pure ε of the table."""
        return Fraction(self.l1) / Fraction(self.scale)


@dataclass(frozen=True, slots=True)
class GaussianTable:
    """Discrete Gaussian noise of one ``variance`` on a table of which one unit moves ``cells`` cells by 1."""

    variance: Fraction
    cells: int


Release = Claim | LaplaceTable | GaussianTable


def compose(releases: Sequence[Release], *, delta: float | Fraction = 0) -> Fraction | float:
    """The ε that all releases of a fixed list have together, at the given δ; exact for δ = 0, else rounded
    up.

    Parameters
    ----------
    releases : sequence of Claim, LaplaceTable or GaussianTable
        A claim enters by its ε and δ alone, as the worst mechanism that has them; tables are tighter. All
        must be about one unit and one relation; convert them first.
    delta : float
        0, or the δ of the whole list.

    Raises
    ------
    ClaimError
        if a mechanism is unknown, claims differ in unit or relation, δ = 0 is requested of a mechanism
        without it, or no ε holds at this δ.
    UsageError
        if ``dp-accounting`` is needed and not installed.

    >>> compose([LaplaceTable(Fraction(1000), 100)] * 3)
    Fraction(3, 10)
    """
    if not releases:
        return Fraction(0)
    for each in releases:
        if isinstance(each, Claim):
            if not each.secure:
                raise ClaimError(
                    "a release with a noise seed protects nobody", remedy="it composes to nothing"
                )
            check_mechanism(each)
    claims = [each for each in releases if isinstance(each, Claim)]
    if len({(each.unit, each.records_per_unit, each.relation) for each in claims}) > 1:
        rule = "must be about one unit and one relation to compose"
        raise ClaimError("claims", rule, got="several", remedy="convert them first")
    pure = [own for each in releases if (own := _pure_epsilon(each)) is not None]
    if delta == 0:
        if len(pure) < len(releases):
            rule = "must be above 0 for a list with Gaussian noise or a delta, which has no pure epsilon"
            raise ClaimError("delta", rule, got=0)
        return sum(pure, Fraction(0))
    proper_delta(delta)
    total = None
    # Equal releases together, because one of them composed n times costs less than n.
    for each, times in Counter(releases).items():
        loss = _loss(each)
        loss = loss.self_compose(times) if times > 1 else loss
        total = loss if total is None else total.compose(loss)
    assert total is not None
    epsilon = float(total.get_epsilon_for_delta(float_below(delta)))
    if epsilon == math.inf:
        rule = "must be above what the releases use up themselves"
        raise ClaimError("delta", rule, got=f"{float(delta):.3g}", remedy="give a larger one")
    if len(pure) == len(releases):
        # The sum holds at every δ; with few releases the grid of the distributions may be coarser than it.
        epsilon = min(epsilon, float_above(sum(pure, Fraction(0))))
    return epsilon


def noise_allowed(
    done: Sequence[Release], *, epsilon: float | Fraction, delta: float | Fraction = 0, l1: int = 1
) -> Fraction | None:
    """The least Laplace scale that a further release may have, if it is fixed together with those ``done``.

    ``l1`` is how far one unit moves it. None if the others use up (ε, δ) themselves. The scale is exact for
    δ = 0, and within 0.1 % of the least one, never below it, otherwise.

    >>> noise_allowed([LaplaceTable(Fraction(1000), 500)], epsilon=1, l1=100)
    Fraction(200, 1)
    """
    whole = Fraction(positive("epsilon", epsilon, "give the total"))
    at_least_one("l1", l1, "it is how far one unit moves the table")
    if delta == 0:
        left = whole - Fraction(compose(done))
        return Fraction(l1) / left if left > 0 else None

    def fits(scale: Fraction) -> bool:
        return compose([*done, LaplaceTable(scale, l1)], delta=delta) <= whole

    # Beyond this scale the release has hardly an ε of its own.
    high = Fraction(l1) / whole * 1000
    if not fits(high):
        return None
    low = Fraction(l1) / whole / 1000
    while high > low * Fraction(1001, 1000):
        middle = Fraction(float(low * high) ** 0.5)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _pure_epsilon(release: Release) -> Fraction | None:
    """The pure ε of a release; None where it has none."""
    if isinstance(release, Claim):
        return release.promise.epsilon if release.promise.pure else None
    return release.epsilon if isinstance(release, LaplaceTable) else None


def _loss(release: Release) -> Any:
    """The privacy loss distribution of one release, never better than it is."""
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError:
        rule = "composition at a delta needs dp-accounting"
        raise UsageError(rule, remedy="install hushsum[ledger]") from None
    lattice = {"value_discretization_interval": _STEP, "use_connect_dots": True}
    if isinstance(release, LaplaceTable):
        if at_least_one("l1", release.l1, "it is how far one unit moves the table") > MOST_L1:
            rule = f"must be at most {MOST_L1} to be composed"
            raise ClaimError("l1", rule, got="more", remedy="compose at delta = 0")
        scale = Fraction(positive("scale", release.scale, "take that of the release"))
        return distributions.from_discrete_laplace_mechanism(
            float_above(1 / scale), sensitivity=release.l1, **lattice
        )
    if isinstance(release, GaussianTable):
        variance = float_below(positive("variance", release.variance, "take that of the release"))
        loss = distributions.from_discrete_gaussian_mechanism(variance**0.5 * (1 - 1e-15), **lattice)
        cells = at_least_one("cells", release.cells, "it is how many cells one unit moves")
        return loss.self_compose(cells) if cells > 1 else loss
    if release.promise.epsilon is None:
        rule = "a claim in rho has no loss distribution of its own"
        raise ClaimError(rule, remedy="give its GaussianTable instead")
    parameters = common.DifferentialPrivacyParameters(
        float_above(release.promise.epsilon), float_above(release.promise.delta)
    )
    return distributions.from_privacy_parameters(parameters, value_discretization_interval=_STEP)
