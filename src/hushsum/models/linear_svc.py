"""Private linear classification of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.models.classification_model import ClassificationModel
from hushsum.models.linear_methods import (
    KEEPING,
    SKETCH_ROWS,
    LinearMethod,
    claim_of,
    classification_method,
    classification_theta,
    unit_ball,
)
from hushsum.models.parameters import CLASSES, NUMBER, TEXT, Parameter
from hushsum.privacy.claim import Claim, Promise
from hushsum.records.norm_clipping import UnitBall
from hushsum.releases.bundle import Bundle

METHODS = ("sketch", "objective")


class PrivateLinearSVC(ClassificationModel):
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
    classes). Objective perturbation is proven for real numbers, and its claim says so.

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
    PARAMETERS = (
        Parameter(
            "method",
            TEXT,
            "The surrogate margin loss of the private RACE sketch, minimised without derivatives; or "
            "logistic regression by objective perturbation, which keeps pure ε even where delta is given.",
            choices=METHODS,
        ),
        CLASSES,
        Parameter(
            "radius",
            NUMBER,
            "How far a record may lie from the centre of bounds, in half widths and with 1 for the "
            "constant; records beyond are shortened. Declared.",
            above=0,
            optional=True,
        ),
        SKETCH_ROWS,
        Parameter(
            "ridge",
            NUMBER,
            "Of objective: regularisation beyond what privacy needs.",
            at_least=0,
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        method: str = "sketch",
        classes: Sequence[Any] | None = None,
        bounds: Any = (-1, 1),
        public: Any = None,
        radius: float | None = None,
        rows: int = 4000,
        ridge: float = 0.0,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.classes = classes
        self.bounds = bounds
        self.public = public
        self.radius = radius
        self.rows = rows
        self.ridge = ridge
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _linear_method(self) -> LinearMethod:
        return classification_method(self.method, rows=self.rows, ridge=self.ridge)

    def _ball(self, bounds: Any, radius: Any) -> UnitBall:
        return unit_ball(self._box(bounds), (-1.0, 1.0), radius)

    def _part_columns(self) -> dict[str, int]:
        # A constant beside the features.
        return dict.fromkeys(("class 0", "class 1"), self.n_features_in_ + 1)

    def _kept_per_record(self, n_features: int) -> int:
        return n_features + 1 if self.method in KEEPING else 0

    def _start(self, seed: int) -> Any:
        return self._linear_method().start(self._ball(self.effective("bounds"), self.radius), seed)

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        self._linear_method().count(
            secret, self._ball(self.effective("bounds"), self.radius), np.column_stack((X, 2.0 * y - 1.0))
        )

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        drawn = self._linear_method().draw(secret, promise)
        return self._bundle(promise, parts=drawn.parts, arrays=drawn.arrays)

    def _claim(self, promise: Promise, n_features: int | None) -> Claim:
        return claim_of(self._linear_method(), promise, self._assumptions())

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if self.method in KEEPING:
            return []
        better = "PrivateClassifier" if not promise.pure else "PrivateClassifier or method='objective'"
        return [f"a sketch serves many uses, and as a classifier it is less accurate than {better}"]

    def _open(self, bundle: Bundle) -> tuple[Floats, float]:
        ball = self._ball(self._fitted("bounds"), self._fitted("radius"))
        return ball.model(classification_theta(bundle, ball))

    @property
    def coef_(self) -> Floats:
        """The normal of the plane, shape (1, n_features); only after the release."""
        normal: Floats = self._reading()[0][np.newaxis]
        return normal

    @property
    def intercept_(self) -> Floats:
        """The decision function where every column is zero, shape (1,); only after the release."""
        return np.array([self._reading()[1]])

    def decision_function(self, X: object) -> Floats:
        """On which side of the plane each point lies, and how far, shape (n_queries,)."""
        queries = self._queries(X)
        normal, intercept = self._reading()
        values: Floats = queries @ normal + intercept
        return values

    def predict(self, X: object) -> NDArray[Any]:
        """The class of each point, shape (n_queries,)."""
        second = self.decision_function(X) > 0.0
        labels: NDArray[Any] = self.classes_[second.astype(np.int64)]
        return labels
