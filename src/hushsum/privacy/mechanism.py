"""Mechanisms: the named algorithms that make releases private, which compose; and what is proven for each.

A ledger that accepted any name would add numbers that are not proven. So names are registered with the kinds
of promise that their proof gives, and everything else is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING

from hushsum.errors import ClaimError

if TYPE_CHECKING:
    from hushsum.privacy.claim import Claim

_AND = " + "
_OR = " or "


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What makes a release private: named mechanisms, several of which may run, or one of several.

    ``first + second`` runs both, one after the other or on different tables. ``first | second`` is one of the
    two, where a claim is made before it is known which; what is then drawn is one that the claim names.

    Attributes
    ----------
    alternatives : frozenset of tuples of str
        Each is a list of names that all run.

    Examples
    --------
    >>> choice, noise = Mechanism.of("permute and flip"), Mechanism.of("discrete laplace")
    >>> print(choice + noise)
    permute and flip + discrete laplace
    >>> print(noise | choice + noise)
    discrete laplace or permute and flip + discrete laplace
    >>> Mechanism.from_text(str(noise | choice + noise)) == noise | choice + noise
    True
    """

    alternatives: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, *names: str) -> Mechanism:
        """The mechanisms of these names, which all run; each is named once."""
        return cls(frozenset({tuple(dict.fromkeys(names))}))

    @classmethod
    def from_text(cls, text: str) -> Mechanism:
        """The mechanism whose text this is.

        Raises
        ------
        ValueError
            if no mechanism has this text.
        """
        found = cls(frozenset(tuple(dict.fromkeys(each.split(_AND))) for each in text.split(_OR)))
        if str(found) != text:
            raise ValueError("mechanism")
        return found

    def __add__(self, other: Mechanism) -> Mechanism:
        pairs = product(self.alternatives, other.alternatives)
        return Mechanism(frozenset(tuple(dict.fromkeys(first + second)) for first, second in pairs))

    def __or__(self, other: Mechanism) -> Mechanism:
        return Mechanism(self.alternatives | other.alternatives)

    def __contains__(self, drawn: Mechanism) -> bool:
        """Whether everything that the other mechanism may be is named here."""
        return drawn.alternatives <= self.alternatives

    def __str__(self) -> str:
        return _OR.join(sorted(_AND.join(each) for each in self.alternatives))

    def __repr__(self) -> str:
        return repr(str(self))

    @property
    def kinds(self) -> frozenset[PromiseKind] | None:
        """The kinds of promise that are proven for every alternative; None if a name is not registered."""
        proven = [_kinds(each) for each in self.alternatives]
        known = [each for each in proven if each is not None]
        return frozenset.intersection(*known) if len(known) == len(proven) else None


class PromiseKind(StrEnum):
    """What a promise is made of."""

    PURE = "pure epsilon"
    APPROXIMATE = "epsilon and delta"
    CONCENTRATED = "rho"

    @classmethod
    def of(cls, claim: Claim) -> PromiseKind:
        """The kind of a claim."""
        if claim.promise.rho is not None:
            return cls.CONCENTRATED
        return cls.PURE if claim.promise.pure else cls.APPROXIMATE


_KNOWN: dict[str, frozenset[PromiseKind]] = {}


def register_mechanism(name: str, *kinds: PromiseKind) -> Mechanism:
    """Make a mechanism known, with the kinds of promise that are proven for it.

    Raises
    ------
    ValueError
        if the name is known with other kinds: two proofs must not share a name.
    """
    if _AND in name or _OR in name:
        raise ValueError("a name of one mechanism")
    if _KNOWN.setdefault(name, frozenset(kinds)) != frozenset(kinds):
        raise ValueError(f"mechanism {name!r} is registered with other kinds")
    return Mechanism.of(name)


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
    kinds = claim.mechanism.kinds
    if kinds is None:
        raise ClaimError(
            rule=f"the claim's mechanism must be one of {', '.join(known_mechanisms())}",
            got=f"{claim.mechanism!r}",
            remedy="what it spends is not known, so it cannot be debited",
        )
    if PromiseKind.of(claim) not in kinds:
        proven = " or ".join(sorted(kinds))
        raise ClaimError(
            rule=f"a claim of the mechanism {claim.mechanism!r} must be in {proven}",
            got=PromiseKind.of(claim),
            remedy="release with a mechanism that gives it",
        )


def _kinds(names: tuple[str, ...]) -> frozenset[PromiseKind] | None:
    """The kinds proven for mechanisms that all run; None if one is unknown.

    Pure ε adds to (ε, δ) as it is, so steps of either kind give the latter.
    """
    steps = [_KNOWN.get(each) for each in names]
    known = [kinds for kinds in steps if kinds is not None]
    if len(known) < len(steps):
        return None
    proven = frozenset.intersection(*known)
    either = {PromiseKind.PURE, PromiseKind.APPROXIMATE}
    if PromiseKind.PURE not in proven and all(kinds & either for kinds in known):
        proven |= {PromiseKind.APPROXIMATE}
    return proven


register_mechanism("discrete laplace", PromiseKind.PURE)
register_mechanism("gamma radius", PromiseKind.PURE)
register_mechanism("discrete gaussian", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
# Moments of the loss, in `hushsum.privacy.accounting.binomial`.
register_mechanism("binomial", PromiseKind.APPROXIMATE)
# Moments of the loss, in `hushsum.privacy.accounting.skellam`.
register_mechanism("skellam", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("factorised discrete gaussian", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("interval sums discrete laplace", PromiseKind.PURE)
register_mechanism("exponential", PromiseKind.PURE)
register_mechanism("permute and flip", PromiseKind.PURE)
register_mechanism("random stopping", PromiseKind.PURE)
# Noise on a function, proven in `hushsum.privacy.functional_perturbation`; the last two in `hushsum.methods`.
register_mechanism("discrete gaussian on coefficients", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("gaussian process path", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("gaussian process path, as-published", PromiseKind.APPROXIMATE)
register_mechanism("objective perturbation", PromiseKind.PURE)
register_mechanism("one posterior sample", PromiseKind.PURE, PromiseKind.APPROXIMATE)
# Gaussian noise on real numbers by the analytic formula: `ReleaseNoise.gaussian`.
register_mechanism("gaussian", PromiseKind.APPROXIMATE)
# Constants of Wang (2018), which spend less than they claim: `PublishedNoise.spent_delta`, checked before a
# debit in `hushsum.methods.sufficient_statistics`.
register_mechanism("gaussian, as-published", PromiseKind.APPROXIMATE)
# Answers that are each drawn afresh, composed over a number fixed beforehand, in
# `hushsum.served.output_perturbation`.
register_mechanism("gaussian, fresh for each answer", PromiseKind.APPROXIMATE)
register_mechanism("laplace, fresh for each answer", PromiseKind.PURE, PromiseKind.APPROXIMATE)
