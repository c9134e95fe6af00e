"""Private linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from hushsum.errors import UsageError
from hushsum.models.base import Floats, PrivateModel
from hushsum.models.declared_target import declared_target
from hushsum.models.linear_ways import Way, claimed, regression_theta, regression_way
from hushsum.models.regression_choice import METHODS, choose_method
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.relation import Relation
from hushsum.records.bounds import Bounds
from hushsum.records.unit_ball import UnitBall
from hushsum.releases.bundle import Bundle

CALIBRATIONS = ("tight", "as-published")


class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """A linear model of a target, released once.

    Works well where records × ε is well above columns²; below that it is close to the mean of the target, or
    to the middle of its bounds. Columns are best scaled so that ``bounds`` fit them tightly on both sides.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the one release. With ``delta=None`` pure ε, which every method but ``"adaops"`` keeps.
    method : {"auto", "adassp", "ssp", "sketch", "objective", "ops", "adaops"}
        ``"adassp"``: perturbed sums Σφφᵀ and Σvφ in whole numbers, and a ridge chosen from them; streams.
        ``"ssp"``: the same without a ridge. ``"sketch"``: the private RACE sketch through its surrogate loss;
        streams, and the sketch answers other questions too. ``"objective"``: objective perturbation.
        ``"ops"``, ``"adaops"``: one sample from a posterior. The last three keep the clipped records, in
        secret, until the release. ``"auto"``: the one with the least predicted error, from declared
        quantities alone.
    bounds, target_bounds : (low, high), or for columns a list of one pair each
        Declared, never read off the data; records and targets are clipped to it.
    radius : float, optional
        How far a record may lie from the centre of ``bounds``, in half widths and with 1 for the constant;
        records beyond are shortened. A radius below the default √(columns + 1) means less noise. Declared.
    records : int, optional
        About how many records there will be, as far as that is public; helps ``"auto"`` alone.
    theta_bound : float
        Of ``"objective"`` and ``"ops"``: how long the parameter vector may be in units of the unit ball.
    rows : int
        Of the sketch, of which pure ε publishes as many as suit it.
    calibration : {"tight", "as-published"}
        Of ``"ssp"`` and ``"adassp"``: the constants of the paper, to reproduce it; they need ``delta``.
    random_state : int, RandomState or None
        Seeds hash functions, never the noise.
    budget, idempotency_key
        As for ``Tally.release``.

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

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        method: str = "auto",
        bounds: Any = (-1, 1),
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
        self.target_bounds = target_bounds
        self.radius = radius
        self.records = records
        self.theta_bound = theta_bound
        self.rows = rows
        self.calibration = calibration
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _records(self, X: object, y: object, *, reset: bool) -> tuple[Floats, NDArray[Any] | None]:
        records, target = self._checked(X, y, reset=reset)
        if reset:
            self._settle()
        return records, np.asarray(target, np.float64)

    def _settle(self) -> None:
        """Choose the method, from declared quantities alone."""
        if self.method not in ("auto", *METHODS):
            raise UsageError(
                f"method must be 'auto' or one of {', '.join(METHODS)}, got {self.method!r}; choose one"
            )
        if self.calibration not in CALIBRATIONS:
            raise UsageError(
                f"calibration must be one of {', '.join(CALIBRATIONS)}, got {self.calibration!r}; choose one"
            )
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        self.method_ = (
            choose_method(
                promise,
                columns=self.n_features_in_,
                records=self.records,
                theta_bound=self.theta_bound,
            )
            if self.method == "auto"
            else self.method
        )
        if self._way().needs_delta and promise.pure:
            raise UsageError(
                f"method {self.method_!r} with this calibration needs delta, got none; give delta=1e-6"
            )

    def _way(self) -> Way:
        return regression_way(
            self.method_,
            rows=self.rows,
            theta_bound=self.theta_bound,
            published=self.calibration == "as-published",
        )

    def _ball(self, bounds: Any, target_bounds: Any, radius: Any) -> UnitBall:
        target = declared_target(target_bounds)
        box = [*self._box(bounds), (target.low[0], target.high[0])]
        whole = Bounds.of(box, len(box))
        assert whole is not None
        return UnitBall(whole, radius)

    def _now(self) -> UnitBall:
        return self._ball(self.bounds, self.target_bounds, self.radius)

    def _start(self, seed: int) -> Any:
        return self._way().start(self._now(), seed)

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        self._way().count(secret, self._now(), np.column_stack((X, y)))

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        drawn = self._way().draw(secret, promise)
        return self._bundle(promise, parts=drawn.parts, arrays=drawn.arrays)

    def _facts(self) -> dict[str, Any]:
        return {"method": self.method_}

    def _restore(self, facts: dict[str, Any]) -> None:
        if facts["method"] not in METHODS:
            raise ValueError("method")
        self.method_ = facts["method"]

    def _claim(self, promise: Promise) -> Claim:
        kept, mechanism, arithmetic = claimed(self._way(), promise)
        return Claim(
            promise=kept,
            unit="record",
            records_per_unit=1,
            relation=Relation.ADD_REMOVE,
            mechanism=mechanism,
            arithmetic=arithmetic,
            secure=True,
            assumptions=tuple(self._assumptions()),
        )

    def _open(self, bundle: Bundle) -> tuple[Floats, float]:
        ball = self._ball(*(self._fitted(name) for name in ("bounds", "target_bounds", "radius")))
        return ball.model(regression_theta(bundle, ball))

    @property
    def coef_(self) -> Floats:
        """The slope of each column, shape (n_features,); only after the release."""
        slopes: Floats = self._open(self.released_)[0]
        return slopes

    @property
    def intercept_(self) -> float:
        """The model's value where every column is zero; only after the release."""
        return self._open(self.released_)[1]

    def predict(self, X: object) -> Floats:
        """The target at each point, shape (n_queries,), within ``target_bounds``."""
        queries = self._queries(X)
        slopes, intercept = self._reading()
        low, high = self._fitted("target_bounds")
        values: Floats = np.clip(queries @ slopes + intercept, low, high)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The few hundred records of scikit-learn's checks lie far outside the default bounds.
        tags.regressor_tags.poor_score = True
        return tags
