"""A whole run in one process: for trials, tests and owners that share a machine."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from hushsum.errors import ClaimError, UsageError
from hushsum.privacy.accounting import zcdp_rho
from hushsum.privacy.claim import exact
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.messages import FRESH, THRESHOLD, RunTerms
from hushsum.summarize.owner import OwnerState
from hushsum.summarize.result import Summary, summary_of
from hushsum.summarize.target import release_target

DEFAULT_RULE = THRESHOLD
VALIDATION_SHARE = 0.6
"""The noise of both releases meets in one direction, where it counts by one over the number of records: a
validation set is the smaller one, and is released once."""
DEFAULT_REACH = 3
"""Points sent for each point of the summary: with two, one noisy direction early on shows in the end."""
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
            parameter="cap",
            rule=f"must be at least rounds × batch = {rounds * batch} under the rule fresh",
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
        raise ClaimError(
            parameter="validation_share",
            rule="must be between 0 and 1",
            got=f"{validation_share:g}",
            remedy="try 0.6",
        )
    whole = Fraction(zcdp_rho(epsilon, delta))
    of_validation = whole * Fraction(validation_share)
    return whole - of_validation, of_validation


def summarize(
    owners: Mapping[str, ArrayLike],
    validation: ArrayLike,
    size: int,
    *,
    bandwidth: float,
    epsilon: float,
    delta: float,
    features: int = 500,
    seed: int = 0,
    rule: str = DEFAULT_RULE,
    rounds: int | None = None,
    reach: int | None = None,
    cap: int | None = None,
    rate: float | Fraction | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    validation_share: float = VALIDATION_SHARE,
    hashed: bool = False,
    insecure_noise_seed: int | None = None,
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
        Of the Gaussian kernel that compares points.
    epsilon, delta : float
        Spent by all messages, the validation set's release included.
    features, seed : int
        Pairs of Fourier features, and their public seed.
    rule : {"threshold", "fresh", "auction"}
        The default has the best match for the points it sees.
    extra : mapping of names to array-like of shape (n_records, n_extra), optional
        What goes with the points, such as labels.
    hashed : bool
        Owners send hashes instead of points.

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
        raise UsageError(
            parameter="owners",
            rule="must map names to tables of records",
            got="none or no table",
            remedy="give at least one",
        )
    mine = {} if extra is None else {name: np.asarray(extra[name], np.float64) for name in owners}
    columns = {1 if each.ndim == 1 else each.shape[1] for each in mine.values()} or {0}
    if len(columns) > 1:
        raise UsageError(
            parameter="extra", rule="must have the same columns for every owner", remedy="align them"
        )
    compared = SummaryFeatures(sizes[0][1], bandwidth, features, seed)
    of_owners, of_validation = split_budget(epsilon, delta, validation_share)
    terms = plan_terms(
        compared,
        tuple(owners),
        size,
        of_owners,
        rule=rule,
        rounds=rounds,
        reach=reach,
        cap=cap,
        rate=rate,
        extra=columns.pop(),
        hashed=hashed,
    )
    target = release_target(compared, validation, of_validation, insecure_noise_seed=insecure_noise_seed)
    curator = CuratorState(terms, target, insecure_noise_seed=insecure_noise_seed)
    states = {
        name: OwnerState(
            name,
            records,
            terms,
            extra=mine.get(name),
            features=compared if hashed else None,
            insecure_noise_seed=None if insecure_noise_seed is None else insecure_noise_seed + number + 1,
        )
        for number, (name, records) in enumerate(owners.items())
    }
    while not curator.done:
        curator.advance()
        for name, broadcast in curator.outgoing().items():
            curator.take(states[name].answer(broadcast))
    return summary_of(curator, validation)
