"""The mechanisms whose claims may be debited, and which kind of claim is proven for each.

A ledger that accepted any name would add numbers that are not proven. So names are registered with the kinds
of claim their proof gives, and everything else is refused.
"""

from __future__ import annotations

from enum import StrEnum

from hushsum.errors import ClaimError
from hushsum.privacy.claim import Claim


class ClaimKind(StrEnum):
    """What a promise is made of."""

    PURE = "pure epsilon"
    APPROXIMATE = "epsilon and delta"
    CONCENTRATED = "rho"

    @classmethod
    def of(cls, claim: Claim) -> ClaimKind:
        """The kind of a claim."""
        if claim.promise.rho is not None:
            return cls.CONCENTRATED
        return cls.PURE if claim.promise.pure else cls.APPROXIMATE


_AND = " + "
_KNOWN: dict[str, frozenset[ClaimKind]] = {}


def register_mechanism(name: str, *kinds: ClaimKind) -> None:
    """Make a mechanism known, with the kinds of claim that are proven for it.

    Raises
    ------
    ValueError
        if the name is known with other kinds: two proofs must not share a name.
    """
    if _KNOWN.setdefault(name, frozenset(kinds)) != frozenset(kinds):
        raise ValueError(f"mechanism {name!r} is registered with other kinds")


def known_mechanisms() -> list[str]:
    """The registered names, sorted.

    >>> "discrete laplace" in known_mechanisms()
    True
    """
    return sorted(_KNOWN)


def check_mechanism(claim: Claim) -> None:
    """Refuse a claim of a mechanism that is unknown, or of a kind that is not proven for it.

    Raises
    ------
    ClaimError
        in both cases.
    """
    kinds = _kinds(claim.mechanism)
    if kinds is None:
        raise ClaimError(
            rule=f"the claim's mechanism must be one of {', '.join(known_mechanisms())}",
            got=f"{claim.mechanism!r}",
            remedy="what it spends is not known, so it cannot be debited",
        )
    if ClaimKind.of(claim) not in kinds:
        proven = " or ".join(sorted(kinds))
        raise ClaimError(
            rule=f"a claim of the mechanism {claim.mechanism!r} must be in {proven}",
            got=ClaimKind.of(claim),
            remedy="release with a mechanism that gives it",
        )


def together(*mechanisms: str) -> str:
    """The name of mechanisms that one release runs one after the other, for one claim over all of them.

    >>> together("discrete laplace", "permute and flip")
    'discrete laplace + permute and flip'
    """
    return _AND.join(mechanisms)


def _kinds(mechanism: str) -> frozenset[ClaimKind] | None:
    """The kinds proven for a mechanism, or for all of several that one release runs; None if one is unknown.

    Pure ε adds to (ε, δ) as it is, so steps of either kind give the latter.
    """
    steps = [_KNOWN.get(each) for each in mechanism.split(_AND)]
    known = [kinds for kinds in steps if kinds is not None]
    if len(known) < len(steps):
        return None
    proven = frozenset.intersection(*known)
    either = {ClaimKind.PURE, ClaimKind.APPROXIMATE}
    if ClaimKind.PURE not in proven and all(kinds & either for kinds in known):
        proven |= {ClaimKind.APPROXIMATE}
    return proven


register_mechanism("discrete laplace", ClaimKind.PURE)
register_mechanism("gamma radius", ClaimKind.PURE)
register_mechanism("discrete gaussian", ClaimKind.APPROXIMATE, ClaimKind.CONCENTRATED)
# Moments of the loss, in `hushsum.privacy.accounting.binomial`.
register_mechanism("binomial", ClaimKind.APPROXIMATE)
# Moments of the loss, in `hushsum.privacy.accounting.skellam`.
register_mechanism("skellam", ClaimKind.APPROXIMATE, ClaimKind.CONCENTRATED)
register_mechanism("factorised discrete gaussian", ClaimKind.APPROXIMATE, ClaimKind.CONCENTRATED)
register_mechanism("interval sums discrete laplace", ClaimKind.PURE)
register_mechanism("exponential", ClaimKind.PURE)
register_mechanism("permute and flip", ClaimKind.PURE)
register_mechanism("random stopping", ClaimKind.PURE)
# Noise on a function, proven in `hushsum.privacy.functional_perturbation`; the last two in `hushsum.methods`.
register_mechanism("discrete gaussian on coefficients", ClaimKind.APPROXIMATE, ClaimKind.CONCENTRATED)
register_mechanism("gaussian process path", ClaimKind.APPROXIMATE, ClaimKind.CONCENTRATED)
register_mechanism("gaussian process path, as-published", ClaimKind.APPROXIMATE)
register_mechanism("objective perturbation", ClaimKind.PURE)
register_mechanism("one posterior sample", ClaimKind.PURE, ClaimKind.APPROXIMATE)
# Gaussian noise on real numbers by the analytic formula: `ReleaseNoise.gaussian`.
register_mechanism("gaussian", ClaimKind.APPROXIMATE)
# Constants of Wang (2018), which spend less than they claim: `PublishedNoise.spent_delta`, checked before a
# debit in `hushsum.methods.sufficient_statistics`.
register_mechanism("gaussian, as-published", ClaimKind.APPROXIMATE)
# Answers that are each drawn afresh, composed over a number fixed beforehand, in
# `hushsum.served.output_perturbation`.
register_mechanism("gaussian, fresh for each answer", ClaimKind.APPROXIMATE)
register_mechanism("laplace, fresh for each answer", ClaimKind.PURE, ClaimKind.APPROXIMATE)
