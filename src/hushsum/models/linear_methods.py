"""The methods for linear models: what each keeps in secret, where it adds noise, and how that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.bases.moments import Moments
from hushsum.methods import objective_perturbation, posterior_sampling
from hushsum.methods.sufficient_statistics import (
    PUBLISHED_GAUSSIAN,
    NoisyMoments,
    check_published,
    fit_as_published,
    solve_adaptive,
    solve_plain,
)
from hushsum.methods.surrogate_loss import (
    fit_classifier,
    fit_regression,
    regression_records,
    rows_for_moments,
    surrogate_tally,
)
from hushsum.models.enough_records import COUNT_SHARE, enough_records
from hushsum.models.model_state import KeptRecords
from hushsum.models.parameters import INTEGER, Parameter
from hushsum.privacy.accounting import zcdp_rho
from hushsum.privacy.accounting.parameters import float_below
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.integer_noise import GAUSSIAN, LAPLACE
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_noise import EXACT_INTEGERS, REAL_ARITHMETIC
from hushsum.privacy.release_request import PURE_NOISE
from hushsum.records.bounds import Bounds
from hushsum.records.norm_clipping import UnitBall
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

SKETCH_ROWS = Parameter(
    "rows", INTEGER, "Of the sketch, of which a release with pure ε publishes as many as suit it.", at_least=1
)
KEEPING = ("auto", "objective", "ops", "adaops")
"""Methods that keep, or may keep, the clipped records."""
_STANDARD_ERRORS = {"moments": 20.0, "level": 10.0}
"""A regression falls back below so many standard errors of its count, at ε = 1 some 300 records: fewer cannot
tell a slope, and what looks like one would be noise.
"""

_COUNT_SHARE = {"moments": 0.1, "level": 0.5}
"""The part of each release that pays for that count; the moments of the target alone serve little else."""

LEVEL_SHARE = Fraction(1, 10)
"""The part of a sketch's budget that pays for the count and the mean of the target."""

_LAPLACE = Mechanism.of(LAPLACE)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a method released: functions, or the parameters themselves."""

    parts: dict[str, ReleasedFunction]
    arrays: dict[str, NDArray[Any]]


class LinearMethod(Protocol):
    """One method from records to θ of v ≈ θ·φ in the unit ball."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The claim's mechanism; None for the integer noise that the promise implies."""

    @property
    def pure_noise(self) -> Mechanism:
        """The integer noise under pure ε."""

    @property
    def pure(self) -> bool:
        """Whether the claim is pure ε even where δ was offered."""

    @property
    def needs_delta(self) -> bool:
        """Whether it cannot keep pure ε."""

    def start(self, ball: UnitBall, seed: int) -> Any:
        """Something empty and secret."""

    def count(self, secret: Any, ball: UnitBall, records: Floats) -> None:
        """Add records, the target in the last column."""

    def draw(self, secret: Any, promise: Promise) -> Drawn:
        """Spend the whole promise."""


@dataclass(frozen=True, slots=True)
class FromMoments:
    """Perturbed sums in whole numbers."""

    mechanism: Mechanism | None = None
    pure_noise: Mechanism = PURE_NOISE
    pure: bool = False
    needs_delta: bool = False

    def start(self, ball: UnitBall, seed: int) -> Tally:
        """An empty tally of moments."""
        return Tally(Moments(ball))

    def count(self, secret: Tally, ball: UnitBall, records: Floats) -> None:
        """Add to the sums."""
        secret.add(records)

    def draw(self, secret: Tally, promise: Promise) -> Drawn:
        """One release of all sums."""
        released = secret.release(**_parameters_of(promise), count_share=_COUNT_SHARE["moments"])
        return Drawn({"moments": released}, {})


@dataclass(frozen=True, slots=True)
class FromSketch:
    """The surrogate loss of a sketch, and the target's mean."""

    rows: int
    mechanism: Mechanism | None = None
    pure_noise: Mechanism = _LAPLACE + PURE_NOISE
    pure: bool = False
    needs_delta: bool = False

    def start(self, ball: UnitBall, seed: int) -> tuple[Tally, Tally]:
        """An empty sketch, and empty moments of the target alone."""
        low, high = ball.bounds.low[-1], ball.bounds.high[-1]
        level = Tally(Moments(UnitBall(Bounds((low,), (high,)))))
        return surrogate_tally(ball.features + 1, rows=self.rows, seed=seed), level

    def count(self, secret: tuple[Tally, Tally], ball: UnitBall, records: Floats) -> None:
        """Add to both."""
        features, target = ball.of_records(records)
        secret[0].add(regression_records(features, target, ball.length))
        secret[1].add(records[:, -1:])

    def draw(self, secret: tuple[Tally, Tally], promise: Promise) -> Drawn:
        """The target's moments first; their noisy count decides how many rows of the sketch are published."""
        sketch, level = secret
        first, second = _split(promise, LEVEL_SHARE)
        released = level.release(**_parameters_of(first), count_share=_COUNT_SHARE["level"])
        rows = self.rows
        if second.epsilon is not None:
            rows = rows_for_moments(released.count, float(second.epsilon), self.rows)
        return Drawn({"level": released, "sketch": sketch.release(**_parameters_of(second), rows=rows)}, {})


@dataclass(frozen=True, slots=True)
class FromClassSketches:
    """One sketch of each class. A record is in one of them, so each takes the whole budget."""

    rows: int
    mechanism: Mechanism | None = None
    pure_noise: Mechanism = _LAPLACE
    pure: bool = False
    needs_delta: bool = False

    def start(self, ball: UnitBall, seed: int) -> tuple[Tally, Tally]:
        """Two empty sketches with the same hash functions."""
        first, second = (surrogate_tally(ball.features, rows=self.rows, seed=seed) for _ in range(2))
        return first, second

    def count(self, secret: tuple[Tally, Tally], ball: UnitBall, records: Floats) -> None:
        """Add each record to the sketch of its class, −1 or 1."""
        features, target = ball.of_records(records)
        for tally, members in zip(secret, (target < 0.0, target > 0.0), strict=True):
            if members.any():
                tally.add(features[members])

    def draw(self, secret: tuple[Tally, Tally], promise: Promise) -> Drawn:
        """Both, in parallel composition."""
        parts = {
            f"class {i}": tally.release(**_parameters_of(promise), count_share=COUNT_SHARE)
            for i, tally in enumerate(secret)
        }
        return Drawn(dict(parts), {})


@dataclass(frozen=True, slots=True)
class FromRecords:
    """A fit on all records at once, with noise on real numbers."""

    mechanism: Mechanism
    fit: Callable[[Floats, Floats, Promise], Floats]
    pure: bool
    check: Callable[[Promise], None] = lambda _: None
    """Refuses a promise that the fit cannot keep, before a budget is debited."""
    pure_noise: Mechanism = _LAPLACE

    @property
    def needs_delta(self) -> bool:
        """Whether it cannot keep pure ε, which is all that a pure one claims."""
        return not self.pure

    def start(self, ball: UnitBall, seed: int) -> KeptRecords:
        """Nothing kept yet."""
        return KeptRecords()

    def count(self, secret: KeptRecords, ball: UnitBall, records: Floats) -> None:
        """Keep them, clipped and scaled."""
        secret.add(*ball.of_records(records))

    def draw(self, secret: KeptRecords, promise: Promise) -> Drawn:
        """θ itself."""
        return Drawn({}, {"theta": self.fit(*secret.all(), promise)})


def regression_method(method: str, *, rows: int, theta_bound: float, published: bool) -> LinearMethod:
    """The method of that name."""
    if published and method in ("ssp", "adassp"):
        return FromRecords(
            Mechanism.of(PUBLISHED_GAUSSIAN),
            lambda features, target, promise: fit_as_published(
                features,
                target,
                epsilon=_epsilon(promise),
                delta=float_below(promise.delta),
                adaptive=method == "adassp",
            ),
            pure=False,
            check=lambda promise: check_published(
                _epsilon(promise), float(promise.delta), adaptive=method == "adassp"
            ),
        )
    methods: dict[str, LinearMethod] = {
        "ssp": FromMoments(),
        "adassp": FromMoments(),
        "sketch": FromSketch(rows),
        "objective": FromRecords(
            objective_perturbation.MECHANISM,
            lambda features, target, promise: objective_perturbation.fit_squares(
                features, target, epsilon=_epsilon(promise), theta_bound=theta_bound
            ),
            pure=True,
        ),
        "ops": FromRecords(
            posterior_sampling.MECHANISM,
            lambda features, target, promise: posterior_sampling.fit_ops(
                features, target, epsilon=_epsilon(promise), theta_bound=theta_bound
            ),
            pure=True,
        ),
        "adaops": FromRecords(
            posterior_sampling.MECHANISM,
            lambda features, target, promise: posterior_sampling.fit_adaops(
                features, target, epsilon=_epsilon(promise), delta=float_below(promise.delta)
            ),
            pure=False,
        ),
    }
    return methods[method]


def classification_method(method: str, *, rows: int, ridge: float) -> LinearMethod:
    """The method of that name for a linear classifier; targets are −1 and 1."""
    methods: dict[str, LinearMethod] = {
        "sketch": FromClassSketches(rows),
        "objective": FromRecords(
            objective_perturbation.MECHANISM,
            lambda features, target, promise: objective_perturbation.fit_logistic(
                features, target, epsilon=_epsilon(promise), ridge=ridge
            ),
            pure=True,
        ),
    }
    return methods[method]


def classification_theta(bundle: Bundle, ball: UnitBall) -> Floats:
    """θ of sign(θ·φ), from what any of the methods released; post-processing.

    Zero, which is the first class, where the counts of records are within the noise.
    """
    if "theta" in bundle.arrays:
        return _theta(bundle, ball)
    parts = bundle.parts
    if not enough_records(parts.values()):
        return np.zeros(ball.features)
    return fit_classifier(parts["class 0"], parts["class 1"], ball.length, seed=bundle.about["seed"])


def regression_theta(bundle: Bundle, ball: UnitBall) -> Floats:
    """θ of v ≈ θ·φ, from what any of the methods released; post-processing.

    Zero, the middle of the target's bounds, where the count of records is within the noise.
    """
    if "theta" in bundle.arrays:
        return _theta(bundle, ball)
    name = "level" if "sketch" in bundle.parts else "moments"
    counted: Any = bundle.parts[name]
    if counted.count < _STANDARD_ERRORS[name] * counted.count_stderr:
        return np.zeros(ball.features)
    if "sketch" in bundle.parts:
        return fit_regression(bundle.parts["sketch"], bundle.parts["level"], ball.length)
    solve = solve_plain if bundle.about["method"] == "ssp" else solve_adaptive
    return solve(NoisyMoments.of(bundle.parts["moments"]))


def _theta(bundle: Bundle, ball: UnitBall) -> Floats:
    theta: Floats = bundle.arrays["theta"]
    if theta.shape != (ball.features,):
        raise ValueError("theta")
    return theta


def unit_ball(box: Box, target: tuple[float, float], radius: float | None) -> UnitBall:
    """The ball of columns with these bounds and of a target between these ends."""
    whole = Bounds.of([*box, target], len(box) + 1)
    assert whole is not None
    return UnitBall(whole, radius)


def claim_of(chosen: LinearMethod, promise: Promise, assumptions: Sequence[str]) -> Claim:
    """What a method claims, which may be less than the promise; ClaimError if it cannot keep it."""
    kept = Promise(promise.epsilon, Fraction(0), None) if chosen.pure else promise
    if isinstance(chosen, FromRecords):
        chosen.check(kept)
    exact = chosen.pure_noise if kept.pure else Mechanism.of(GAUSSIAN)
    return Claim(
        promise=kept,
        unit="record",
        records_per_unit=1,
        relation=Relation.ADD_REMOVE,
        mechanism=exact if chosen.mechanism is None else chosen.mechanism,
        arithmetic=EXACT_INTEGERS if chosen.mechanism is None else REAL_ARITHMETIC,
        secure=True,
        assumptions=tuple(assumptions),
    )


def _epsilon(promise: Promise) -> float:
    assert promise.epsilon is not None
    return float_below(promise.epsilon)


def _parameters_of(promise: Promise) -> dict[str, Any]:
    """A promise as the arguments of a release."""
    if promise.rho is not None:
        return {"rho": promise.rho}
    return {"epsilon": promise.epsilon, "delta": promise.delta or None}


def _split(promise: Promise, share: Fraction) -> tuple[Promise, Promise]:
    """Two promises that together keep the given one: parts of ε, or of the ρ that gives (ε, δ)."""
    assert promise.epsilon is not None
    if promise.pure:
        first = promise.epsilon * share
        return Promise.of(epsilon=first), Promise.of(epsilon=promise.epsilon - first)
    rho = Fraction(zcdp_rho(promise.epsilon, promise.delta))
    return Promise.of(rho=rho * share), Promise.of(rho=rho * (1 - share))
