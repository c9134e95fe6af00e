"""The terms of a summarization from what a person chooses, and how its claims are debited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from hushsum.privacy.accounting.zcdp import zcdp_delta, zcdp_epsilon
from hushsum.privacy.claim import Claim, Promise
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.hashed_target import PUBLIC_SEED
from hushsum.summarize.messages import RunTerms
from hushsum.summarize.run import DEFAULT_RULE, VALIDATION_SHARE, plan_terms, split_budget


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What a run promises and how long it is; nothing here is read off private records.

    ``epsilon`` and ``delta`` are spent by all messages together; ``validation_share`` of the ρ behind them by
    the release of the validation set. ``hashed``: owners send hashes under a secret seed.
    """

    size: int
    epsilon: float
    delta: float
    bandwidth: float
    rule: str = DEFAULT_RULE
    validation_share: float = VALIDATION_SHARE
    rounds: int | None = None
    reach: int | None = None
    features: int = 500
    seed: int = 0
    cap: int | None = None
    rate: float | None = None
    hashed: bool = False

    def compared(self, dim: int) -> SummaryFeatures:
        """The features as the curator may know them."""
        seed = PUBLIC_SEED if self.hashed else self.seed
        return SummaryFeatures(dim=dim, bandwidth=self.bandwidth, features=self.features, seed=seed)

    @property
    def validation_rho(self) -> Fraction:
        """ρ of the validation set's release."""
        return split_budget(self.epsilon, self.delta, self.validation_share)[1]

    def terms(self, run: str | None, owners: tuple[str, ...], dim: int, extra: int) -> RunTerms:
        """The public agreement of the run with this name; of a new one by default."""
        planned = plan_terms(
            self.compared(dim),
            owners,
            self.size,
            split_budget(self.epsilon, self.delta, self.validation_share)[0],
            rule=self.rule,
            rounds=self.rounds,
            reach=self.reach,
            cap=self.cap,
            rate=self.rate,
            extra=extra,
            hashed=self.hashed,
        )
        return planned if run is None else replace(planned, run=run)


def at_delta(claim: Claim, delta: float | None) -> Claim:
    """A claim in ρ as it is, or in ε at a δ."""
    rho = claim.promise.rho
    if rho is None or delta is None:
        return claim
    found = zcdp_epsilon(rho, delta)
    # The short number that ρ was made from, where it holds, instead of one a bit above it.
    short = round(found, 9)
    epsilon = short if zcdp_delta(rho, short) <= delta else found
    return replace(claim, promise=Promise.of(epsilon=epsilon, delta=delta))
