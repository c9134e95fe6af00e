"""The terms of a summarization from what a person chooses, and the claims that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho
from hushsum.privacy.calibration import GAUSSIAN
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.draws import EXACT_INTEGERS
from hushsum.privacy.relation import Relation
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.messages import AUCTION, PUBLISHED_AUCTION, RULES, Terms


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What a run promises and how long it is; nothing here is read off private records.

    ``epsilon`` and ``delta`` hold for a record of an owner, over all rounds, and ``validation_epsilon`` with
    the same δ for a record of the validation set.
    """

    size: int
    epsilon: float
    delta: float
    bandwidth: float
    rule: str = "threshold"
    validation_epsilon: float | None = None
    rounds: int = 40
    features: int = 256
    seed: int = 0
    cap: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UsageError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r:.40}; take threshold")
        if self.size < 1:
            raise UsageError(f"size must be at least 1, got {self.size}; 2000 is a common choice")
        if self.rounds < 1:
            raise UsageError(f"rounds must be at least 1, got {self.rounds}; 40 is a common choice")
        if not 0.0 < self.delta < 1.0:
            raise ClaimError(f"delta must be above 0 and below 1, got {self.delta:g}; try 1e-6")

    @property
    def validation_rho(self) -> Fraction:
        """ρ of the validation set's release."""
        epsilon = self.epsilon if self.validation_epsilon is None else self.validation_epsilon
        return Fraction(zcdp_rho(epsilon, self.delta))

    def terms(self, run: str, owners: tuple[str, ...], dim: int, extra: int) -> Terms:
        """The public agreement of the run with this name."""
        auction = self.rule in (AUCTION, PUBLISHED_AUCTION)
        rounds = min(self.rounds, self.size)
        rho = None if self.rule == PUBLISHED_AUCTION else Fraction(zcdp_rho(self.epsilon, self.delta))
        return Terms(
            run=run,
            rule=self.rule,
            features=SummaryFeatures(
                dim=dim, bandwidth=self.bandwidth, features=self.features, seed=self.seed
            ),
            owners=owners,
            size=self.size,
            rounds=rounds,
            batch=-(-self.size // rounds),
            cap=self.cap,
            rho=rho,
            rate=_rate(self.rate) if auction else None,
            extra=extra,
        )


def _rate(rate: float | None) -> Fraction:
    if rate is None or rate <= 0:
        raise UsageError("an auction needs a rate above 0, the fall of the log-odds a rank; give --rate")
    return Fraction(rate)


def owner_claim(terms: Terms, delta: float | None) -> Claim | None:
    """What any coalition of owners learns about one record of another, over all rounds; None if nothing is
    promised.

    In ρ, or in ε at a δ.
    """
    return None if terms.rho is None else _claim(terms.rho, delta)


def validation_claim(rho: Fraction, delta: float | None, *, secure: bool = True) -> Claim:
    """What the owners learn about one record of the validation set."""
    return _claim(rho, delta, secure=secure)


def _epsilon(rho: Fraction, delta: float) -> float:
    """ε at a δ; the short number that ρ was made from, where that holds, instead of one a bit above it."""
    found = zcdp_epsilon(rho, delta)
    short = round(found, 9)
    return short if zcdp_delta(rho, short) <= delta else found


def _claim(rho: Fraction, delta: float | None, *, secure: bool = True) -> Claim:
    promise = Promise.of(rho=rho)
    if delta is not None:
        promise = Promise.of(epsilon=_epsilon(rho, delta), delta=delta)
    return Claim(
        promise=promise,
        unit="record",
        records_per_unit=1,
        relation=Relation.ADD_REMOVE,
        mechanism=GAUSSIAN,
        arithmetic=EXACT_INTEGERS,
        secure=secure,
    )
