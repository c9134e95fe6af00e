"""What a run gives the consumer: the points, who sent them, and what was claimed to whom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.privacy.accounting import zcdp_epsilon
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.mechanism import Mechanism
from hushsum.summarize.calibration import answers_rho
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.greedy_selection import greedy_choice
from hushsum.summarize.messages import AUCTION, THRESHOLD, RunTerms
from hushsum.summarize.published_auction import PublishedParameters


@dataclass(frozen=True, slots=True)
class SummaryClaims:
    """What the messages of one run cost, over all rounds; known before the first.

    ``owners`` is what any coalition of owners learns about one record of another owner. ``validation`` is
    what all owners learn about one record of the validation set. ``together`` holds for someone who may have
    one record in each. ``paper_epsilon`` and ``paper_validation_epsilon`` are the figures of the paper's own
    accounting at its parameters, for a run of this size: no claim.
    """

    owners: Claim
    validation: Claim
    together: Claim
    answers_rho: float
    paper_epsilon: float
    paper_validation_epsilon: float

    def epsilon(self, delta: float) -> float:
        """ε of all messages together, validation included, at a δ."""
        assert self.together.promise.rho is not None
        return zcdp_epsilon(self.together.promise.rho, delta)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """A finished run; confidential, for the consumer.

    ``seen`` is how many points the curator was sent, ``parsimony`` that number per point of the summary and
    validation set. ``values`` attributes the summary's worth to owners by the gains at which their points
    were taken. ``lost`` names owners that did not stay, with the round in which they left. None of these may
    be disclosed to an owner: they depend on everyone's records and are not paid for.
    """

    points: Floats
    extra: Floats
    owners: Integers
    seen: int
    parsimony: float
    values: dict[str, float]
    lost: dict[str, int]
    claims: SummaryClaims

    def __repr__(self) -> str:
        return f"<Summary CONFIDENTIAL claims={self.claims.together!r}>"

    def as_json(self) -> dict[str, Any]:
        """Everything but the points, for the consumer's own report."""
        return {
            "size": len(self.points),
            "seen": self.seen,
            "parsimony": self.parsimony,
            "values": self.values,
            "lost": self.lost,
            "claims": {
                "owners": self.claims.owners.in_numbers(),
                "validation": self.claims.validation.in_numbers(),
                "together": self.claims.together.in_numbers(),
                "paper_epsilon": self.claims.paper_epsilon,
                "paper_validation_epsilon": self.claims.paper_validation_epsilon,
            },
        }


def owners_claim(terms: RunTerms, *, secure: bool = True) -> Claim:
    """What any coalition of owners learns about one record of another, known from the terms alone.

    Raises
    ------
    UsageError
        if the terms promise nothing.
    """
    if terms.rho is None:
        raise UsageError(rule="the terms promise nothing", got="no rho", remedy="agree on one")
    return _claim(terms.rho, _sums(terms), _arithmetic(terms), secure=secure)


def target_claim(rho: Fraction, *, secure: bool = True) -> Claim:
    """What the release of a validation set reveals about one of its records, whatever the run."""
    return _claim(rho, "discrete gaussian", "exact integers", secure=secure)


def _sums(terms: RunTerms) -> str:
    return "factorised discrete gaussian" if terms.rule == THRESHOLD else "discrete gaussian"


def _arithmetic(terms: RunTerms) -> str:
    """The auction's coins have rounded probabilities; everything else is exact."""
    return "real arithmetic" if terms.rule == AUCTION else "exact integers"


def _claim(rho: Fraction, mechanism: str, arithmetic: str, *, secure: bool) -> Claim:
    return Claim(
        promise=Promise.of(rho=rho),
        unit="record",
        records_per_unit=1,
        relation=Relation.ADD_REMOVE,
        mechanism=Mechanism.of(mechanism),
        arithmetic=arithmetic,
        secure=secure,
        assumptions=("the curator follows the protocol and sends owners nothing but its broadcasts",),
    )


def claims_of(curator: CuratorState) -> SummaryClaims:
    """The claims of a run, from its terms and its target."""
    terms, target = curator.terms, curator.target
    owners = owners_claim(terms, secure=curator.secure)
    assert terms.rho is not None
    paper, paper_validation = PublishedParameters().composed(terms.size)
    return SummaryClaims(
        owners=owners,
        validation=target_claim(target.rho, secure=curator.secure),
        together=_claim(terms.rho + target.rho, _sums(terms), _arithmetic(terms), secure=curator.secure),
        answers_rho=float(answers_rho(terms)),
        paper_epsilon=paper,
        paper_validation_epsilon=paper_validation,
    )


def summary_of(curator: CuratorState, validation: ArrayLike | None = None) -> Summary:
    """Choose the summary from everything the curator was sent, greedily and without noise.

    Nothing of the choice goes back to an owner, so it costs nothing. ``validation`` is the exact validation
    set where the curator may see it; without it the noisy release guides the choice.

    Raises
    ------
    UsageError
        if the run is not over.
    """
    if not curator.done:
        raise UsageError(rule="the run is not over", remedy="hold all rounds first")
    terms, collected = curator.terms, curator.collected
    target = curator.target.mean()
    if validation is not None and not terms.hashed:
        target = terms.features.hashes(validation).mean(axis=0)
    places = greedy_choice(collected.hashes, target, terms.size, unit=terms.features.unit)
    count = len(np.asarray(validation)) if validation is not None else round(curator.target.count)
    gains = np.maximum(collected.gains[places].astype(np.float64), 0.0)
    owners = collected.owners[places]
    worth = np.bincount(owners, weights=gains, minlength=len(terms.owners))
    total = float(worth.sum()) or 1.0
    return Summary(
        points=collected.points[places],
        extra=collected.extra[places],
        owners=owners,
        seen=len(collected),
        parsimony=(len(collected) + count) / (len(places) + count),
        values={name: float(worth[i]) / total for i, name in enumerate(terms.owners)},
        lost=dict(curator.lost),
        claims=claims_of(curator),
    )
