"""The claims of a run, its summary, its terms, and the whole protocol in one process."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.declaration import check_fields, picked, request, required, setting
from hushsum.errors import ClaimError, UsageError
from hushsum.parties._runtime import Result
from hushsum.privacy import Claim, Mechanism, Promise, Relation, exact
from hushsum.privacy.accounting import zcdp_epsilon, zcdp_rho

from ._features import MAX_WIDTH, PUBLIC_SEED, SummaryFeatures
from ._greedy_choice import greedy_choice
from ._messages import AUCTION, FRESH, MAX_ROUNDS, RULES, THRESHOLD, RunTerms
from ._states import CuratorState, OwnerState, release_target


@dataclass(frozen=True, slots=True)
class SummaryClaims(Result):
    """What the messages of one run cost, over all rounds; known before the first.

    ``owners`` is what any coalition of owners learns about one record of another owner. ``validation`` is
    what all owners learn about one record of the validation set. ``together`` holds for someone who may have
    one record in each.
    """

    owners: Claim
    validation: Claim
    together: Claim

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
            "claims": self.claims.as_json(),
        }


def owners_claim(terms: RunTerms, *, secure: bool = True) -> Claim:
    """What any coalition of owners learns about one record of another, known from the terms alone.

    Raises
    ------
    UsageError
        if the terms promise nothing.
    """
    if terms.rho is None:
        raise UsageError("the terms promise nothing", got="no rho")
    return _claim(terms.rho, terms, secure=secure)


def target_claim(rho: Fraction, *, secure: bool = True) -> Claim:
    """What the release of a validation set reveals about one of its records, whatever the run."""
    return _claim(rho, None, secure=secure)


def _claim(rho: Fraction, terms: RunTerms | None, *, secure: bool) -> Claim:
    """The claim of a release, or of all messages of a run on these terms."""
    rule = None if terms is None else terms.rule
    return Claim(
        promise=Promise.of(rho=rho),
        unit="record",
        records_per_unit=1,
        relation=Relation.ADD_REMOVE,
        mechanism=Mechanism.of("factorised discrete gaussian" if rule == THRESHOLD else "discrete gaussian"),
        # The auction's coins have rounded probabilities; everything else is exact.
        arithmetic="real arithmetic" if rule == AUCTION else "exact integers",
        secure=secure,
        assumptions=("the curator follows the protocol and sends owners nothing but its broadcasts",),
    )


def claims_of(curator: CuratorState) -> SummaryClaims:
    """The claims of a run, from its terms and its target."""
    terms, target = curator.terms, curator.target
    owners = owners_claim(terms, secure=curator.secure)
    assert terms.rho is not None
    return SummaryClaims(
        owners=owners,
        validation=target_claim(target.rho, secure=curator.secure),
        together=_claim(terms.rho + target.rho, terms, secure=curator.secure),
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
        raise UsageError("the run is not over")
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


DEFAULT_RULE = THRESHOLD
VALIDATION_SHARE = 0.6
"""The noise of both releases meets in one direction, where it counts by one over the number of records: a
validation set is the smaller one, and is released once."""
DEFAULT_REACH = 3
"""Points sent for each point of the summary.

With two, a noisy direction in an early round remains visible in the result.
"""
DEFAULT_ROUNDS = {FRESH: 10, THRESHOLD: 12}


def plan_terms(
    features: SummaryFeatures,
    owners: tuple[str, ...],
    size: int,
    rho: float | Fraction,
    *,
    rule: str = DEFAULT_RULE,
    rounds: int | None = None,
    reach: int | None = None,
    cap: int | None = None,
    rate: float | Fraction | None = None,
    extra: int = 0,
    hashed: bool = False,
) -> RunTerms:
    """The terms of a run with the defaults filled in, under a new name.

    ``rho`` is what owners may learn of each other over all rounds. ``cap`` is the most that one owner sends;
    the default never binds under *fresh*, whose quotas are fixed, and is ``reach`` under *threshold*.
    """
    if rule in DEFAULT_ROUNDS:
        rounds = min(DEFAULT_ROUNDS[rule], size) if rounds is None else rounds
        batch = math.ceil(size / rounds)
    else:
        batch = max(1, len(owners) // 2)
        rounds = math.ceil(size / batch) if rounds is None else rounds
    reach = DEFAULT_REACH * size if reach is None else reach
    if cap is None:
        cap = reach if rule == THRESHOLD else rounds * batch
    elif rule == FRESH and cap < rounds * batch:
        raise UsageError(
            "cap",
            f"must be at least rounds × batch = {rounds * batch} under the rule fresh",
            got=f"{cap}",
            remedy="an owner that drops out halfway would change what the claim rests on",
        )
    return RunTerms(
        run=secrets.token_hex(16),
        rule=rule,
        features=features,
        owners=owners,
        size=size,
        rounds=rounds,
        batch=batch,
        reach=reach,
        cap=cap,
        rho=Fraction(rho),
        rate=None if rate is None else exact("rate", rate),
        extra=extra,
        hashed=hashed,
    )


def split_budget(
    epsilon: float, delta: float, validation_share: float = VALIDATION_SHARE
) -> tuple[Fraction, Fraction]:
    """(ρ of the owners' messages, ρ of the validation set) that together keep (ε, δ).

    >>> owners, validation = split_budget(2.0, 1e-5)
    >>> round(float(owners + validation), 4)
    0.1083
    """
    if not 0.0 < validation_share < 1.0:
        raise ClaimError("validation_share", "must be between 0 and 1", got=f"{validation_share:g}")
    whole = Fraction(zcdp_rho(epsilon, delta))
    of_validation = whole * Fraction(validation_share)
    return whole - of_validation, of_validation


@request
class Comparison:
    """What a run and the release of its validation set have in common; nothing is read off private records.

    ``epsilon`` and ``delta`` are spent by all messages together; ``validation_share`` of the ρ behind them by
    the release of the validation set.
    """

    epsilon: float = required("ε of all messages of the run together.", above=0, at_most=1e3)
    delta: float = required("δ, below 1/(10 × number of records).", above=0, below=1)
    bandwidth: float = required("Scale of the Gaussian kernel in the units of the data; public.", above=0)
    features: int = setting(500, "Number of random frequencies.", at_least=1, at_most=MAX_WIDTH // 2)
    validation_share: float = setting(
        VALIDATION_SHARE, "Fraction of the budget for the release of the validation set.", above=0, below=1
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def compared(self, dim: int, seed: int = PUBLIC_SEED) -> SummaryFeatures:
        """The features as the curator may know them."""
        return SummaryFeatures(dim=dim, bandwidth=self.bandwidth, features=self.features, seed=seed)

    def split(self) -> tuple[Fraction, Fraction]:
        """ρ of the owners' messages, and ρ of the validation set's release."""
        return split_budget(self.epsilon, self.delta, self.validation_share)


@request
class RunSpec:
    """What a run promises and how long it is. ``hashes``: owners send hashes under a secret seed."""

    comparison: Comparison
    size: int = required("Number of points of the summary.", at_least=1)
    rule: str = setting(DEFAULT_RULE, "threshold, fresh or auction.", choices=RULES)
    rounds: int | None = setting(
        None, "Number of rounds. [default: depends on the rule]", at_least=1, at_most=MAX_ROUNDS
    )
    reach: int | None = setting(
        None, "Total number of points to be sent. [default: 3 × the size]", at_least=1
    )
    seed: int = setting(0, "Public seed of the features.")
    cap: int | None = setting(None, "Maximum number of points from one owner.", at_least=1)
    rate: float | None = setting(None, "Decrease of the log-odds per rank, for the auction.", above=0)
    hashes: bool = setting(
        False, "Owners send hashes; --validation is a file from hushsum summarize validation."
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def compared(self, dim: int) -> SummaryFeatures:
        """The features as the curator may know them."""
        return self.comparison.compared(dim, PUBLIC_SEED if self.hashes else self.seed)

    def terms(self, run: str | None, owners: tuple[str, ...], dim: int, extra: int) -> RunTerms:
        """The public agreement of the run with this name; of a new one by default."""
        settings = {name: getattr(self, name) for name in ("rule", "rounds", "reach", "cap", "rate")}
        planned = plan_terms(
            self.compared(dim),
            owners,
            self.size,
            self.comparison.split()[0],
            extra=extra,
            hashed=self.hashes,
            **settings,
        )
        return planned if run is None else replace(planned, run=run)


def summarize(
    owners: Mapping[str, ArrayLike],
    validation: ArrayLike,
    size: int,
    *,
    extra: Mapping[str, ArrayLike] | None = None,
    insecure_noise_seed: int | None = None,
    **keywords: Any,
) -> Summary:
    """Collect a summary of ``size`` points whose distribution matches the validation set.

    What owners learn, of each other's records and of the validation set together, is (ε, δ)-private over all
    rounds. The curator sees the points it is sent.

    Parameters
    ----------
    owners : mapping of names to array-like of shape (n_records, dim)
    validation : array-like of shape (n_validation, dim)
    size : int
    bandwidth : float
        Bandwidth of the Gaussian kernel that compares points.
    epsilon, delta : float
        Spent by all messages, the validation set's release included.
    features, seed : int
        Pairs of Fourier features, and their seed, which is public unless hashes are sent.
    rule : {"threshold", "fresh", "auction"}
        The default has the best match for the points it sees.
    extra : mapping of names to array-like of shape (n_records, n_extra), optional
        What goes with the points, such as labels.
    hashes : bool
        Owners send hashes instead of points.
    **keywords
        See `RunSpec` and `Comparison`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(0.0, 1.0, (400, 2)), rng.normal(4.0, 1.0, (400, 2))
    >>> summary = summarize({"a": near, "b": far}, rng.normal(0.0, 1.0, (200, 2)), 50, bandwidth=1.0,
    ...     epsilon=2.0, delta=1e-5, features=100, insecure_noise_seed=1)
    >>> len(summary.points), summary.values["a"] > 0.5
    (50, True)
    """
    sizes = [np.asarray(records).shape for records in owners.values()]
    if not sizes or any(len(shape) != 2 for shape in sizes):
        raise UsageError("owners", "must map names to tables of records", got="none or no table")
    mine = {} if extra is None else {name: np.asarray(extra[name], np.float64) for name in owners}
    columns = {1 if each.ndim == 1 else each.shape[1] for each in mine.values()} or {0}
    if len(columns) > 1:
        raise UsageError("extra", "must have the same columns for every owner")
    own = {name: given for name, given in keywords.items() if name not in Comparison.__dataclass_fields__}
    run = RunSpec(comparison=picked(Comparison, keywords), size=size, **own)
    compared = run.comparison.compared(sizes[0][1], run.seed)
    terms = run.terms(None, tuple(owners), sizes[0][1], columns.pop())
    target = release_target(
        compared, validation, run.comparison.split()[1], insecure_noise_seed=insecure_noise_seed
    )
    curator = CuratorState(terms, target, insecure_noise_seed=insecure_noise_seed)
    states = {
        name: OwnerState(
            name,
            records,
            terms,
            extra=mine.get(name),
            features=compared if run.hashes else None,
            insecure_noise_seed=None if insecure_noise_seed is None else insecure_noise_seed + number + 1,
        )
        for number, (name, records) in enumerate(owners.items())
    }
    while not curator.done:
        curator.advance()
        for name, broadcast in curator.outgoing().items():
            curator.take(states[name].answer(broadcast))
    return summary_of(curator, validation)
