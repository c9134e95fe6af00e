"""Private linear regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, UsageError
from hushsum.models.linear_methods import (
    KEEPING,
    SKETCH_ROWS,
    LinearMethod,
    claim_of,
    regression_method,
    regression_theta,
    unit_ball,
)
from hushsum.models.parameters import INTEGER, NUMBER, TARGET_BOUNDS, TEXT, Parameter
from hushsum.models.regression_model import RegressionModel, declared_target
from hushsum.privacy.accounting import zcdp_rho
from hushsum.privacy.claim import Claim, Promise
from hushsum.records.norm_clipping import UnitBall
from hushsum.releases.bundle import Bundle

CALIBRATIONS = ("tight", "as-published")
METHODS = ("adassp", "ssp", "sketch", "objective", "ops", "adaops")

_MOST_NOISE = 1.0
_MOST_PURE_NOISE = 0.1
_MOST_SPREAD = 0.15
_FEW_COLUMNS = 30


def moment_noise(promise: Promise, columns: int) -> float:
    """The error of Σuuᵀ that ``"adassp"`` has, for columns u between −1 and 1; public.

    The noise of an entry in the unit ball, whose square radius columns + 1 the columns were divided by.
    """
    size = columns + 1
    if promise.pure:
        assert promise.epsilon is not None
        l1 = (size + 1) / 2.0 + math.sqrt(size) + 0.25
        return size * math.sqrt(2.0) * l1 / float(promise.epsilon)
    assert promise.epsilon is not None
    l2_squared = (1.0 + 1.0 / size) / 2.0 + 1.0 + 1.0 / 16.0
    return size * math.sqrt(l2_squared / (2.0 * zcdp_rho(promise.epsilon, promise.delta)))


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


class PrivateRegressor(RegressionModel):
    """A linear model of a target, released once.

    Works well where records × ε is well above columns²; below that it is close to the mean of the target, or
    to the middle of its bounds. Columns are best scaled so that ``bounds`` fit them tightly on both sides.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    method_ : str
        The method that was taken; after ``fit``.
    claim_, released_
        What was spent, and for what. These and the coefficients are there only after the release.

    Privacy
    -------
    Unit: one record with its target; neighbours: add/remove. Sums and sketches take exact integer noise.
    ``"objective"``, ``"ops"`` and ``"adaops"`` are proven for real numbers, and their claims say so;
    ``"objective"`` and ``"ops"`` keep pure ε even where ``delta`` is given, and claim that.

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

    method_: str

    COMMAND = "regressor"
    PARAMETERS = (
        Parameter(
            "method",
            TEXT,
            "adassp: perturbed sums of products in whole numbers, and a ridge chosen from them; streams. "
            "ssp: the same without a ridge. sketch: the private RACE sketch through its surrogate loss; "
            "streams, and the sketch answers other questions too. objective: objective perturbation. ops, "
            "adaops: one sample from a posterior. The last three keep the clipped records, in secret, until "
            "the release. auto: the one with the least predicted error, from declared quantities alone.",
            choices=("auto", *METHODS),
        ),
        TARGET_BOUNDS,
        Parameter(
            "radius",
            NUMBER,
            "How far a record may lie from the centre of bounds, in half widths and with 1 for the "
            "constant; records beyond are shortened. A radius below the default √(columns + 1) means less "
            "noise. Declared.",
            above=0,
            optional=True,
        ),
        Parameter(
            "records",
            INTEGER,
            "About how many records there will be, as far as that is public; helps method auto alone.",
            at_least=1,
            optional=True,
        ),
        Parameter(
            "theta_bound",
            NUMBER,
            "Of objective and ops: how long the parameter vector may be in units of the unit ball.",
            above=0,
        ),
        SKETCH_ROWS,
        Parameter(
            "calibration",
            TEXT,
            "Of ssp and adassp: the constants of the paper, to reproduce it; they need delta.",
            choices=CALIBRATIONS,
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        method: str = "auto",
        bounds: Any = (-1, 1),
        public: Any = None,
        target_bounds: tuple[float, float] = (-1, 1),
        radius: float | None = None,
        records: int | None = None,
        theta_bound: float = 2.0,
        rows: int = 4000,
        calibration: str = "tight",
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.bounds = bounds
        self.public = public
        self.target_bounds = target_bounds
        self.radius = radius
        self.records = records
        self.theta_bound = theta_bound
        self.rows = rows
        self.calibration = calibration
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Floats, NDArray[Any] | None]:
        """Records and targets as the model counts them, checked."""
        checked = super().check_records(X, y, reset=reset)
        if reset:
            self.method_ = self._chosen_method(None)
        return checked

    def _chosen_method(self, n_features: int | None) -> str:
        """The method, from declared quantities alone."""
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        method = self.method
        if method == "auto":
            method = choose_method(
                promise,
                columns=self._width(n_features),
                records=self.records,
                theta_bound=self.theta_bound,
            )
        if self._linear_method(method).needs_delta and promise.pure:
            raise UsageError(
                parameter="delta",
                rule=("must be above 0 for ", Argument("method", method), " with this calibration"),
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )
        return method

    def _part_columns(self) -> dict[str, int]:
        # Columns with a constant and the target.
        return {"moments": self.n_features_in_ + 2, "sketch": self.n_features_in_ + 2, "level": 2}

    def _kept_per_record(self, n_features: int) -> int:
        # Which method "auto" takes is not known before the columns are.
        keeps = self.method in KEEPING or (self.method != "sketch" and self.calibration != "tight")
        return n_features + 1 if keeps else 0

    def _linear_method(self, method: str) -> LinearMethod:
        return regression_method(
            method,
            rows=self.rows,
            theta_bound=self.theta_bound,
            published=self.calibration == "as-published",
        )

    def _ball(self, bounds: Any, target_bounds: Any, radius: Any) -> UnitBall:
        target = declared_target(target_bounds)
        return unit_ball(self._box(bounds), (target.low[0], target.high[0]), radius)

    def _now(self) -> UnitBall:
        return self._ball(self.effective("bounds"), self.target_bounds, self.radius)

    def _start(self, seed: int) -> Any:
        return self._linear_method(self.method_).start(self._now(), seed)

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        self._linear_method(self.method_).count(secret, self._now(), np.column_stack((X, y)))

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        drawn = self._linear_method(self.method_).draw(secret, promise)
        return self._bundle(promise, parts=drawn.parts, arrays=drawn.arrays)

    def _facts(self) -> dict[str, Any]:
        return {"method": self.method_}

    def _restore(self, facts: dict[str, Any]) -> None:
        if facts["method"] not in METHODS:
            raise ValueError("method")
        self.method_ = facts["method"]

    def _claim(self, promise: Promise, n_features: int | None) -> Claim:
        method = self._linear_method(self._chosen_method(n_features))
        return claim_of(method, promise, self._assumptions())

    def _open(self, bundle: Bundle) -> tuple[Floats, float]:
        ball = self._ball(*(self._fitted(name) for name in ("bounds", "target_bounds", "radius")))
        return ball.model(regression_theta(bundle, ball))

    @property
    def coef_(self) -> Floats:
        """The slope of each column, shape (n_features,); only after the release."""
        slopes: Floats = self._reading()[0]
        return slopes

    @property
    def intercept_(self) -> float:
        """The model's value where every column is zero; only after the release."""
        return float(self._reading()[1])

    def predict(self, X: object) -> Floats:
        """The target at each point, shape (n_queries,), within ``target_bounds``."""
        queries = self._queries(X)
        slopes, intercept = self._reading()
        low, high = self._fitted("target_bounds")
        values: Floats = np.clip(queries @ slopes + intercept, low, high)
        return values
