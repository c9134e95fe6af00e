"""Linear models: regression, and a plane between two classes, by several methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum import methods
from hushsum._types import Floats
from hushsum.declaration import setting
from hushsum.errors import Argument, UsageError
from hushsum.methods import NoisyMoments
from hushsum.privacy import GAUSSIAN, LAPLACE, PURE_NOISE, REAL_ARITHMETIC, Claim, Mechanism, Promise
from hushsum.privacy.accounting import float_below
from hushsum.records import Bounds, UnitBall, clipping_allowed
from hushsum.releases import Bundle
from hushsum.tables import Moments
from hushsum.tally import Tally

from ._accuracy import MODEL_COUNT_SHARE, enough_records, part_of, rho_of, terms_of
from ._base import (
    DELTA,
    ClassificationModel,
    Drawn,
    KeptRecords,
    PrivateModel,
    RegressionModel,
    declared,
    refuse_pure,
    require,
)
from ._column_scaling import FENCE_SHARE, fences, histograms_are_useful

KEEPING = ("auto", "objective", "ops", "adaops")
"""Methods that keep, or may keep, the clipped records."""
# A regression falls back below this many standard errors of its count, at ε = 1 some 300 records: fewer
# cannot tell a slope, and what looks like one would be noise.
_STANDARD_ERRORS = {"moments": 20.0, "level": 10.0}

_FENCES = "fences"
BOUNDS, QUANTILES = "bounds", "quantiles"
SCALINGS = (BOUNDS, QUANTILES)

# The part of each release that pays for that count; the moments of the target alone serve little else.
_COUNT_SHARE = {"moments": 0.1, "level": 0.5}

LEVEL_SHARE = Fraction(1, 10)
"""The part of a sketch's budget that pays for the count and the mean of the target."""


class FromMoments:
    """From records to θ of v ≈ θ·φ in the unit ball, by perturbed sums in integers.

    Every method counts records, with the target in the last column, into something secret, and then spends
    the whole promise at once.
    """

    pure_noise: ClassVar[Mechanism] = PURE_NOISE
    """The integer noise under pure ε."""

    def start(self, ball: UnitBall, seed: int) -> Any:
        """An empty tally of moments."""
        return Tally(Moments(ball))

    def count(self, secret: Any, ball: UnitBall, records: Floats) -> None:
        """Add to the sums."""
        secret.add(records)

    def draw(self, secret: Any, promise: Promise) -> Drawn:
        """One release of all sums."""
        released = secret.release(**terms_of(promise), count_share=_COUNT_SHARE["moments"])
        return Drawn({"moments": released})

    def claim(self, claim: Claim, each: Promise) -> Claim:
        """The claim of a model by this method, which may be stronger than the requested claim.

        Raises ClaimError if the method cannot keep the promise ``each`` of one record.
        """
        return replace(claim, mechanism=self.pure_noise if claim.promise.pure else Mechanism.of(GAUSSIAN))


@dataclass(frozen=True, slots=True)
class FromSketch(FromMoments):
    """The surrogate loss of a sketch, and the target's mean."""

    rows: int
    query_radius: float | None = None
    pure_noise: ClassVar[Mechanism] = Mechanism.of(LAPLACE) + PURE_NOISE

    def start(self, ball: UnitBall, seed: int) -> tuple[Tally, Tally]:
        """An empty sketch, and empty moments of the target alone."""
        low, high = ball.bounds.low[-1], ball.bounds.high[-1]
        level = Tally(Moments(UnitBall(Bounds((low,), (high,)))))
        sketch = methods.surrogate_tally(
            ball.features + 1, rows=self.rows, seed=seed, query_radius=self.query_radius
        )
        return sketch, level

    def count(self, secret: tuple[Tally, Tally], ball: UnitBall, records: Floats) -> None:
        """Add to both."""
        features, target = ball.of_records(records)
        secret[0].add(methods.regression_records(features, target, ball.length))
        secret[1].add(records[:, -1:])

    def draw(self, secret: tuple[Tally, Tally], promise: Promise) -> Drawn:
        """The target's moments first; their noisy count decides how many rows of the sketch are published."""
        sketch, level = secret
        first, second = part_of(promise, LEVEL_SHARE), part_of(promise, 1 - LEVEL_SHARE)
        released = level.release(**terms_of(first), count_share=_COUNT_SHARE["level"])
        rows = self.rows
        if second.epsilon is not None:
            rows = methods.rows_for_moments(released.count, float(second.epsilon), self.rows)
        return Drawn({"level": released, "sketch": sketch.release(**terms_of(second), rows=rows)})


def fenced(ball: UnitBall, ends: Floats, radius: float) -> UnitBall:
    """A ball of narrower ranges."""
    low, high = ends.tolist()
    return replace(ball, bounds=Bounds(tuple(low), tuple(high)), radius=radius)


@dataclass(frozen=True, slots=True)
class InFences(FromMoments):
    """Another method, in the ranges that private histograms suggest; records are kept for that.

    Privacy
    -------
    A tenth of the promise pays for the histograms (`Histograms.released`), which fix the ranges. Given these,
    which are public from then on, records are clipped to them one by one, and the other method keeps the rest
    of the promise for every declared range: adaptive composition.
    """

    method: FromMoments

    def start(self, ball: UnitBall, seed: int) -> tuple[KeptRecords, UnitBall, int]:
        """Nothing kept yet."""
        return KeptRecords(), ball, seed

    def count(self, secret: tuple[KeptRecords, UnitBall, int], ball: UnitBall, records: Floats) -> None:
        """Keep them, clipped, with the target in the last column."""
        secret[0].add(np.clip(records, ball.bounds.low, ball.bounds.high), records[:, -1])

    def draw(self, secret: tuple[KeptRecords, UnitBall, int], promise: Promise) -> Drawn:
        """The ranges, then the method in them."""
        kept, ball, seed = secret
        records, _ = kept.all()
        box = list(zip(ball.bounds.low, ball.bounds.high, strict=True))
        found, radius = fences(records, box, part_of(promise, FENCE_SHARE))
        tight = fenced(ball, found, radius)
        counted = self.method.start(tight, seed)
        with clipping_allowed(quiet=True):
            self.method.count(counted, tight, np.clip(records, *found))
        drawn = self.method.draw(counted, part_of(promise, 1 - FENCE_SHARE))
        return Drawn(drawn.parts, {_FENCES: found, "radius": np.array([radius])})

    def claim(self, claim: Claim, each: Promise) -> Claim:
        """Histograms and sums take the same kinds of noise."""
        return self.method.claim(claim, each)


@dataclass(frozen=True, slots=True)
class FromClassSketches(FromMoments):
    """One sketch for each class.

    A record is in the sketch of one class only, so each sketch takes the whole budget.
    """

    rows: int
    pure_noise: ClassVar[Mechanism] = Mechanism.of(LAPLACE)

    def start(self, ball: UnitBall, seed: int) -> list[Tally]:
        """Two empty sketches with the same hash functions."""
        return [methods.surrogate_tally(ball.features, rows=self.rows, seed=seed) for _ in range(2)]

    def count(self, secret: list[Tally], ball: UnitBall, records: Floats) -> None:
        """Add each record to the sketch of its class, −1 or 1."""
        features, target = ball.of_records(records)
        for tally, members in zip(secret, (target < 0.0, target > 0.0), strict=True):
            if members.any():
                tally.add(features[members])

    def draw(self, secret: list[Tally], promise: Promise) -> Drawn:
        """Both, in parallel composition."""
        spent = {**terms_of(promise), "count_share": MODEL_COUNT_SHARE}
        return Drawn({f"class {i}": tally.release(**spent) for i, tally in enumerate(secret)})


@dataclass(frozen=True, slots=True)
class FromRecords:
    """A fit on all records at once, with noise on real numbers. One that is pure keeps pure ε, and claims
    that, even where δ is given; the others need δ.
    """

    mechanism: Mechanism
    fit: Callable[..., Floats]
    pure: bool
    check: Callable[..., None] | None = None
    """Refuses a promise that the fit cannot keep, before a budget is debited."""

    def start(self, ball: UnitBall, seed: int) -> KeptRecords:
        """Nothing kept yet."""
        return KeptRecords()

    def count(self, secret: KeptRecords, ball: UnitBall, records: Floats) -> None:
        """Keep them, clipped and scaled."""
        secret.add(*ball.of_records(records))

    def draw(self, secret: KeptRecords, promise: Promise) -> Drawn:
        """θ itself."""
        delta = {} if self.pure else {"delta": float_below(promise.delta)}
        return Drawn(arrays={"theta": self.fit(*secret.all(), epsilon=_epsilon(promise), **delta)})

    def claim(self, claim: Claim, each: Promise) -> Claim:
        """The claim of this method, which is proven for real numbers."""
        if self.check is not None:
            self.check(_epsilon(each), float(each.delta))
        kept = Promise(claim.promise.epsilon, Fraction(0), None) if self.pure else claim.promise
        return replace(claim, promise=kept, mechanism=self.mechanism, arithmetic=REAL_ARITHMETIC)


LinearMethod = FromMoments | FromRecords


def _epsilon(promise: Promise) -> float:
    assert promise.epsilon is not None
    return float_below(promise.epsilon)


CALIBRATIONS = ("tight", "as-published")
UNDECLARED = 10_000
"""The number of records that ranges are chosen for where none is declared."""
_ON_RECORDS = ("objective", "ops", "adaops")
REGRESSION_METHODS = ("adassp", "ssp", "sketch", "surrogate", "objective", "ops", "adaops")
_SKETCHED = ("sketch", "surrogate")

_MOST_NOISE = 1.0
_MOST_PURE_NOISE = 0.1
_MOST_SPREAD = 0.15
_FEW_COLUMNS = 30


def moment_noise(promise: Promise, columns: int) -> float:
    """The error of Σuuᵀ that ``"adassp"`` has, for columns u between −1 and 1; public.

    The noise of an entry in the unit ball, whose square radius columns + 1 the columns were divided by.
    """
    size = columns + 1
    assert promise.epsilon is not None
    if promise.pure:
        l1 = (size + 1) / 2.0 + math.sqrt(size) + 0.25
        return size * math.sqrt(2.0) * l1 / float(promise.epsilon)
    l2_squared = (1.0 + 1.0 / size) / 2.0 + 1.0 + 1.0 / 16.0
    return size * math.sqrt(l2_squared / (2.0 * float(rho_of(promise))))


def sample_spread(promise: Promise, columns: int, theta_bound: float) -> float:
    """The squared error that one posterior sample adds to predictions, times the number of records."""
    assert promise.epsilon is not None
    return (columns + 1) * (1.0 + theta_bound) ** 2 / (2.0 * float(promise.epsilon))


def choose_method(promise: Promise, *, columns: int, records: int | None, theta_bound: float = 2.0) -> str:
    """The method of the least predicted error; it never sees a record.

    Perturbed sums have the least error while their noise, per record, is small beside what columns between −1
    and 1 contribute. With pure ε it grows with the square of the columns, and a posterior sample, whose error
    grows with their number, takes over. Where neither can tell a slope from noise, the sketch does least
    harm: it releases the mean of the target apart. The thresholds were measured on public data. Without
    ``records`` there are taken to be enough.

    >>> choose_method(Promise.of(epsilon=1.0, delta=1e-6), columns=16, records=10_000)
    'adassp'
    >>> choose_method(Promise.of(epsilon=1.0), columns=128, records=5_000)
    'ops'
    >>> choose_method(Promise.of(epsilon=0.1), columns=128, records=5_000)
    'sketch'
    """
    if records is None:
        return "adassp" if not promise.pure or columns <= _FEW_COLUMNS else "ops"
    number = max(records, 1)
    most = _MOST_PURE_NOISE if promise.pure else _MOST_NOISE
    if moment_noise(promise, columns) / number < most:
        return "adassp"
    if promise.pure and sample_spread(promise, columns, theta_bound) / number < _MOST_SPREAD:
        return "ops"
    return "sketch"


@declared
class LinearModel(PrivateModel):
    """A slope for each column and an intercept, by one of several methods from records to θ.

    A subclass says which method (:meth:`_linear_method`), the range of the target (:meth:`_target`), and how
    θ follows from tables that were released (:meth:`_theta`).
    """

    radius: float | None = setting(
        None,
        "How far a record may lie from the center of bounds, in half widths and with 1 for the constant; "
        "records beyond are shortened. A radius below the default √(columns + 1) means less noise. Declared.",
        above=0,
    )
    rows: int = setting(
        4000,
        "Rows of the sketch; a release with pure ε publishes the number with the least error.",
        at_least=1,
    )

    def _linear_method(self, n_features: int | None = None) -> LinearMethod:
        """The method, from declared quantities alone."""
        raise NotImplementedError

    def _target(self) -> tuple[float, float]:
        """Between which ends targets are."""
        raise NotImplementedError

    def _theta(self, bundle: Bundle, ball: UnitBall) -> Floats:
        """θ from released tables: post-processing. Zero where the counts of records are within the noise."""
        raise NotImplementedError

    def _ball(self) -> UnitBall:
        box, (low, high) = self.bounds_of_columns(), self._target()
        return UnitBall(Bounds((*box.low, low), (*box.high, high)), self.radius)

    def _start(self, seed: int) -> Any:
        chosen = self._linear_method()
        return chosen, chosen.start(self._ball(), seed)

    def _count(self, secret: Any, X: Floats, y: Any) -> None:
        chosen, counted = secret
        chosen.count(counted, self._ball(), np.column_stack((X, y)))

    def _draw(self, secret: Any, promise: Promise) -> Drawn:
        chosen, counted = secret
        drawn: Drawn = chosen.draw(counted, promise)
        return drawn

    def _claim(self, n_features: int | None) -> Claim:
        return self._linear_method(n_features).claim(super()._claim(n_features), self._promise())

    def _open(self, bundle: Bundle) -> tuple[Floats, float, Bounds]:
        ball = self._ball()
        if _FENCES in bundle.arrays:
            found, radius = bundle.arrays[_FENCES], bundle.arrays.get("radius", np.zeros(0))
            require(found.shape == (2, ball.bounds.dim) and np.isfinite(found).all(), _FENCES)
            low, high = found
            inside = (ball.bounds.low <= low).all() and (high <= ball.bounds.high).all()
            require(inside and (low < high).all(), _FENCES)
            require(radius.shape == (1,) and 1.0 < radius[0] < math.inf, "radius")
            ball = fenced(ball, found, float(radius[0]))
        theta = bundle.arrays["theta"] if "theta" in bundle.arrays else self._theta(bundle, ball)
        require(theta.shape == (ball.features,), "theta")
        return (*ball.model(theta), ball.bounds)

    def _values(self, X: object) -> Floats:
        """slopes·x + intercept at each query, within the ranges that private histograms suggested."""
        queries = self._queries(X)
        slopes, intercept, bounds = self._reading()
        if _FENCES in self.released_.arrays:
            queries = np.clip(queries, bounds.low[:-1], bounds.high[:-1])
        return np.asarray(queries @ slopes + intercept)


@declared
class PrivateRegressor(RegressionModel, LinearModel):
    """A linear model of a target, released once.

    Works well where records × ε is well above columns²; below that it is close to the mean of the target, or
    to the middle of its bounds. Where declared bounds may be wide, narrower ones are found privately; beyond
    them records and queries are clipped.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    method_, column_scaling_ : str
        The method that was taken, and the ranges that it works in; after ``fit``.
    claim_, released_
        What was spent, and for what. These and the coefficients are there only after the release.

    Privacy
    -------
    Unit: one record with its target; neighbours: add/remove. Sums and sketches take exact integer noise.
    Narrower ranges are released first, as histograms of all columns and the target, for a tenth of the
    budget (`InFences`). ``"objective"``, ``"ops"`` and ``"adaops"`` are proven for real numbers, and their
    claims say so; ``"objective"`` and ``"ops"`` keep pure ε even where ``delta`` is given, and claim that.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100_000, 2))
    >>> model = PrivateRegressor(epsilon=1.0, delta=1e-6).fit(X, 0.5 * X[:, 0] - 0.2 * X[:, 1] + 0.1)
    >>> model.predict([[1.0, 0.0]]).round(1)
    array([0.6])
    >>> model.coef_.round(1)
    array([ 0.5, -0.2])

    Notes
    -----
    Wang, *Revisiting differentially private linear regression*, UAI 2018; Coleman and Shrivastava, CCS 2021,
    section 4.
    """

    COMMAND = "regressor"
    CHOSEN: ClassVar = {"method_": REGRESSION_METHODS, "column_scaling_": SCALINGS}
    delta: float | None = setting(1e-6, DELTA)
    method: str = setting(
        "auto",
        "adassp: perturbed sums of products in integers, and a ridge chosen from them; streams. ssp: the "
        "same without a ridge. sketch: second moments that the private RACE sketch shows; streams, and the "
        "sketch answers other questions too. surrogate: the paper's loss on that sketch, minimised without "
        "derivatives. objective: objective perturbation. ops, adaops: one sample "
        "from a posterior. The last three keep the clipped records, in secret, until the release. auto: the "
        "one with the least predicted error, from declared quantities alone.",
        choices=("auto", *REGRESSION_METHODS),
    )
    records: int | None = setting(
        None, "Approximate number of records, as far as it is public; only method auto uses it.", at_least=1
    )
    column_scaling: str = setting(
        "auto",
        "The ranges that adassp, ssp, sketch and surrogate work in: the declared bounds, or (quantiles) "
        "narrower ones within them, by private quartiles of each column and of the target. A tenth of the "
        "budget pays for them, and records are kept, in secret, until the release. auto: quantiles, "
        "without a radius and where their noise is predicted to be small for the declared number of "
        "records, or 10,000; else bounds.",
        choices=("auto", *SCALINGS),
    )
    theta_bound: float = setting(
        2.0,
        "How long the parameter vector may be: of objective and ops in units of the unit ball, of "
        "surrogate for columns and a target between −1 and 1.",
        above=0,
    )
    calibration: str = setting(
        "tight",
        "Of ssp and adassp: the constants of the paper, to reproduce it; they need delta.",
        choices=CALIBRATIONS,
    )

    def check_records(self, X: object, y: object = None, *, reset: bool = True) -> tuple[Floats, Any]:
        """Records and targets as the model counts them, checked."""
        checked = super().check_records(X, y, reset=reset)
        if reset:
            self.method_ = self._chosen_method(None)
            self.column_scaling_ = self._scaling(None)
        return checked

    def _check_together(self, promise: Promise) -> None:
        if self.column_scaling != QUANTILES:
            return
        if self.method in _ON_RECORDS or self.calibration != "tight":
            rule = ("must be bounds or auto for ", Argument("method", self.method), " with this calibration")
            raise UsageError("column_scaling", rule, got=QUANTILES)
        if self.radius is not None:
            raise UsageError("radius", ("must be left out with ", Argument("column_scaling", QUANTILES)))

    def _scaling(self, n_features: int | None) -> str:
        """The ranges, from declared quantities alone."""
        if self.column_scaling != "auto":
            return self.column_scaling
        plain = self.radius is None and self.calibration == "tight"
        if not plain or self._chosen_method(n_features) in _ON_RECORDS:
            return BOUNDS
        columns, records = self._width(n_features) + 1, self.records or UNDECLARED
        promise = part_of(self._promise(), FENCE_SHARE)
        return QUANTILES if histograms_are_useful(columns, records, promise) else BOUNDS

    def _chosen_method(self, n_features: int | None) -> str:
        if self.method != "auto":
            return self.method
        columns, bound = self._width(n_features), self.theta_bound
        return choose_method(self._promise(), columns=columns, records=self.records, theta_bound=bound)

    def _linear_method(self, n_features: int | None = None) -> LinearMethod:
        method = self._chosen_method(n_features)
        chosen = self._method_named(method)
        if isinstance(chosen, FromRecords) and not chosen.pure:
            refuse_pure(self._promise(), "for ", Argument("method", method), " with this calibration")
        if isinstance(chosen, FromMoments) and self._scaling(n_features) == QUANTILES:
            return InFences(chosen)
        return chosen

    def _method_named(self, method: str) -> LinearMethod:
        if method in ("ssp", "adassp"):
            if self.calibration == "tight":
                return FromMoments()
            noise, adaptive = Mechanism.of(methods.PUBLISHED_GAUSSIAN), method == "adassp"
            check = partial(methods.check_published, adaptive=adaptive)
            return FromRecords(noise, partial(methods.fit_as_published, adaptive=adaptive), False, check)
        bound = self.theta_bound
        known: dict[str, LinearMethod] = {
            "sketch": FromSketch(self.rows),
            "surrogate": FromSketch(self.rows, math.hypot(bound, 1.0)),
            "objective": FromRecords(
                methods.OBJECTIVE_PERTURBATION, partial(methods.fit_squares, theta_bound=bound), True
            ),
            "ops": FromRecords(methods.POSTERIOR_SAMPLE, partial(methods.fit_ops, theta_bound=bound), True),
            "adaops": FromRecords(methods.POSTERIOR_SAMPLE, methods.fit_adaops, False),
        }
        return known[method]

    def _theta(self, bundle: Bundle, ball: UnitBall) -> Floats:
        sketched = "sketch" in bundle.parts
        name = "level" if sketched else "moments"
        counted: Any = bundle.parts[name]
        if counted.count < _STANDARD_ERRORS[name] * counted.count_stderr:
            return np.zeros(ball.features)
        if bundle.about["method"] == "surrogate":
            sketch, seed = bundle.parts["sketch"], bundle.about["seed"]
            return methods.fit_surrogate(sketch, counted, ball.length, self.theta_bound, seed=seed)
        if sketched:
            return methods.fit_regression(bundle.parts["sketch"], counted, ball.length)
        solve = methods.solve_plain if bundle.about["method"] == "ssp" else methods.solve_adaptive
        return solve(NoisyMoments.of(counted))

    def _part_columns(self) -> dict[str, int]:
        # Columns with a constant and the target.
        return {"moments": self.n_features_in_ + 2, "sketch": self.n_features_in_ + 2, "level": 2}

    def kept_per_record(self, n_features: int) -> int:
        return n_features + 1 if self._keeps(n_features) else 0

    def _keeps(self, n_features: int) -> bool:
        # Which method "auto" takes is not known before the columns are.
        if self.method in KEEPING or (self.method not in _SKETCHED and self.calibration != "tight"):
            return True
        return self._scaling(n_features) == QUANTILES

    @property
    def coef_(self) -> Floats:
        """The slope of each column, shape (n_features,); only after the release."""
        return np.asarray(self._reading()[0])

    @property
    def intercept_(self) -> float:
        """The model's value where every column is zero; only after the release."""
        return float(self._reading()[1])

    def predict(self, X: object) -> Floats:
        """The target at each point, shape (n_queries,), within ``target_bounds``."""
        values = self._values(X)
        return np.asarray(np.clip(values, *self._as_counted().target_bounds))


CLASSIFICATION_METHODS = ("sketch", "objective")


@declared
class PrivateLinearSVC(ClassificationModel, LinearModel):
    """A plane between two classes, released once.

    Works well where a plane separates the classes and records × ε is well above the number of columns.
    ``"sketch"`` streams, and its error falls with rows; ``"objective"`` is the more accurate of the two with
    few columns, and keeps the clipped records, in secret, until the release.

    Attributes
    ----------
    classes_ : array of shape (2,)
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    claim_, released_
        What was spent, and for what. These and the coefficients are there only after the release.

    Privacy
    -------
    Unit: one record with its label; neighbours: add/remove. There is one sketch for each class, with exact
    integer noise; a record is in one, so each takes the whole budget (parallel composition over declared
    classes). Objective perturbation is proven for real numbers, and its claim states this.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "right", "left")
    >>> model = PrivateLinearSVC(epsilon=1.0, classes=["left", "right"], random_state=0).fit(X, y)
    >>> model.predict([[0.9, -0.9], [-0.9, 0.9]]).tolist()
    ['right', 'left']

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4; Chaudhuri, Monteleoni and Sarwate, JMLR 2011.
    """

    _fewest = 2
    _most = 2

    COMMAND = "linear-svc"
    method: str = setting(
        "sketch",
        "The surrogate margin loss of the private RACE sketch, minimised without derivatives; or logistic "
        "regression by objective perturbation, which keeps pure ε even where delta is given.",
        choices=CLASSIFICATION_METHODS,
    )
    ridge: float = setting(0.0, "Of objective: regularisation beyond what privacy needs.", at_least=0)

    def _linear_method(self, n_features: int | None = None) -> LinearMethod:
        if self.method == "sketch":
            return FromClassSketches(self.rows)
        return FromRecords(
            methods.OBJECTIVE_PERTURBATION, partial(methods.fit_logistic, ridge=self.ridge), True
        )

    def _target(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _count(self, secret: Any, X: Floats, y: Any) -> None:
        super()._count(secret, X, 2.0 * y - 1.0)

    def _theta(self, bundle: Bundle, ball: UnitBall) -> Floats:
        if not enough_records(bundle.parts.values()):
            return np.zeros(ball.features)
        first, second = (bundle.parts[f"class {i}"] for i in range(2))
        return methods.fit_classifier(first, second, ball.length, seed=bundle.about["seed"])

    def _part_columns(self) -> dict[str, int]:
        # A constant beside the features.
        return dict.fromkeys(("class 0", "class 1"), self.n_features_in_ + 1)

    def kept_per_record(self, n_features: int) -> int:
        return n_features + 1 if self.method in KEEPING else 0

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if self.method in KEEPING:
            return []
        better = "PrivateClassifier" if not promise.pure else "PrivateClassifier or method='objective'"
        return [f"a sketch serves many uses, and as a classifier it is less accurate than {better}"]

    @property
    def coef_(self) -> Floats:
        """The normal of the plane, shape (1, n_features); only after the release."""
        return np.asarray(self._reading()[0][np.newaxis])

    @property
    def intercept_(self) -> Floats:
        """The decision function where every column is zero, shape (1,); only after the release."""
        return np.array([self._reading()[1]])

    def decision_function(self, X: object) -> Floats:
        """On which side of the plane each point lies, and how far, shape (n_queries,)."""
        return self._values(X)

    def predict(self, X: object) -> NDArray[Any]:
        """The class of each point, shape (n_queries,)."""
        second = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[second.astype(np.int64)])
