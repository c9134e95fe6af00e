"""Classification by comparing the released functions of the classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.methods.race import race
from hushsum.models.class_model import ClassModel
from hushsum.models.enough_records import COUNT_SHARE, enough_records
from hushsum.models.parameters import CLASSES, INTEGER, TEXT, Parameter
from hushsum.models.predicted_error import PLANNED, PredictedError, error_of_hash_rows
from hushsum.models.table_model import NEAR, POWER, WIDTH
from hushsum.privacy.claim import Promise
from hushsum.releases.bundle import Bundle
from hushsum.releases.table import TableFunction
from hushsum.tally.tally import Tally

RULES = ("likelihood", "map")
MOST_ROWS = 1000
_ROWS_AT_ONE = 150
"""Rows of a class at ε = 1. Decisions fall where the sums of the classes are alike and small beside the
noise, so fewer rows serve than elsewhere. Measured on pulsars, occupancy and RNA at ε from 0.1 to 10: the
best number grows about as √ε, and the optimum is flat.
"""
_DEEPEST = -30.0
_DISTINCT = 3.0
"""A class with so many standard errors of its count differs from an empty one."""
_FLOOR = 2.0
"""A class is divided by no fewer records than so many standard errors of its count."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The functions of the classes in the order of ``classes_``, how many records each has, by how much its
    sums are divided, the standard error that noise gives to them, and which classes take part.
    """

    functions: list[TableFunction]
    counts: Floats
    sizes: Floats
    noise: Floats
    known: NDArray[np.int64]

    @classmethod
    def of(cls, functions: list[Any]) -> _Reading:
        """A class whose count cannot be distinguished from 0 takes no part beside two that can.

        With fewer than two of those all take part, since a rare class and an empty one look alike. A count
        within the noise is taken as two standard errors, so that such a class weighs too little rather than
        its noise too much.
        """
        counts = np.array([each.count for each in functions])
        errors = np.array([each.count_stderr for each in functions])
        known = np.flatnonzero(counts >= _DISTINCT * errors)
        if not enough_records(functions):
            known = known[:0]
        elif len(known) < 2:
            known = np.arange(len(functions))
        return cls(
            functions=functions,
            counts=np.maximum(counts, 0.0),
            sizes=np.maximum(counts, _FLOOR * errors),
            noise=np.array([(each.noise.variance / each.rows) ** 0.5 for each in functions]),
            known=known,
        )

    def masses(self, queries: Floats, rule: str) -> Floats:
        """What each class weighs at each query, shape (n_queries, n_classes); positive."""
        if not len(self.known):
            return np.ones((len(queries), len(self.functions)))
        answers = np.stack([self.functions[code].sum(queries) for code in self.known], axis=1)
        noise = self.noise[self.known]
        if rule == "likelihood":
            answers, noise = answers / self.sizes[self.known], noise / self.sizes[self.known]
        in_noise = np.full((len(queries), len(self.functions)), _DEEPEST)
        in_noise[:, self.known] = np.maximum(answers / noise.max(), _DEEPEST)
        # Rises with the answer and is positive even where noise made that negative: ln(1 + eˣ), which is x
        # well above the noise.
        masses: Floats = np.logaddexp(0.0, in_noise)
        return masses


class PrivateClassifier(ClassModel):
    """Predicts which class's records are the most similar to a point, from one released sketch per class.

    Works well with a few columns (up to some tens) scaled to ``bounds``, where the bandwidth suits the
    distance between classes, and with more than about ``1000/ε`` records. Below about ``100/ε`` the private
    counts cannot be distinguished from noise: it then gives every class the same probability. A class
    of fewer than ``40/ε`` records takes no part where two others have more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_prior_ : array of shape (n_classes,)
        From the private counts; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record with its label; neighbours: add/remove. A record is in one class, so one record more
    changes one sketch: parallel composition over a declared list of classes, each sketch with the whole
    budget. Everything else is computed from what was released.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 3000, axis=0)
    >>> labels = np.repeat(["left", "right"], 3000)
    >>> model = PrivateClassifier(epsilon=1.0, classes=["left", "right"], random_state=0).fit(points, labels)
    >>> model.predict([[-0.6, 0.1], [0.6, 0.1]]).tolist()
    ['left', 'right']
    >>> model.claim_.epsilon
    1.0

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4: maximum likelihood and maximum a posteriori from one sketch
    per class.
    """

    COMMAND = "classifier"
    PARAMETERS = (
        CLASSES,
        Parameter(
            "rule",
            TEXT,
            "Compare the means f_c(q)/N_c, as if all classes were as frequent (likelihood), or the sums "
            "f_c(q), so that frequent classes weigh more (map). The tails of the kernel are long, so that "
            "the sums of a frequent class outweigh a rare one: the first is usually better even where "
            "frequencies differ.",
            choices=RULES,
        ),
        NEAR,
        POWER,
        Parameter(
            "rows",
            INTEGER,
            "Rows of each class's sketch; a release with pure ε publishes no more of them than suit the "
            "class. 'auto': 150·√ε, or 1000 with delta, whose noise does not grow with rows.",
            choices=("auto",),
            at_least=1,
        ),
        WIDTH,
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        classes: Sequence[Any] | None = None,
        rule: str = "likelihood",
        bandwidth: float = 1.0,
        power: int = 4,
        rows: int | str = "auto",
        width: int = 1000,
        bounds: Any = (-1, 1),
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.rule = rule
        self.bandwidth = bandwidth
        self.power = power
        self.rows = rows
        self.width = width
        self.bounds = bounds
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _start(self, seed: int) -> list[Tally]:
        kernel = EuclideanKernel(dim=self.n_features_in_, bandwidth=self.bandwidth, power=self.power)
        return [
            race(kernel, rows=self._rows(), width=self.width, seed=seed, bounds=self.column_bounds())
            for _ in self.classes_
        ]

    def _rows(self) -> int:
        if isinstance(self.rows, str):
            promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
            if not promise.pure or promise.epsilon is None:
                return MOST_ROWS
            return min(MOST_ROWS, max(1, math.ceil(_ROWS_AT_ONE * math.sqrt(promise.epsilon))))
        return self.rows

    def _count(self, secret: list[Tally], X: Floats, y: NDArray[Any] | None) -> None:
        for code, tally in enumerate(secret):
            members = X[y == code]
            if len(members):
                tally.add(members)

    def _draw(self, secret: list[Tally], promise: Promise) -> Bundle:
        parts = {
            f"class {code}": tally.release(epsilon=self.epsilon, delta=self.delta, count_share=COUNT_SHARE)
            for code, tally in enumerate(secret)
        }
        return self._bundle(promise, parts=parts)

    def _open(self, bundle: Bundle) -> _Reading:
        functions: list[Any] = [bundle.parts[f"class {code}"] for code in range(len(self.classes_))]
        return _Reading.of(functions)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        error = error_of_hash_rows(
            EuclideanKernel(dim=n_features, bandwidth=self.bandwidth, power=self.power),
            max(1, records // len(self.declared_classes())),
            promise,
            bounds=self.column_bounds(n_features),
            rows=self._rows(),
            width=self.width,
        )
        return PredictedError("mean kernel value of a class", error, records, PLANNED)

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes), by ``rule``.

        They follow the rule as it is stated, not a calibration: where the sums of all classes are below the
        noise they are near to one another.
        """
        queries = self._within_bounds(self._queries(X))
        reading: _Reading = self._reading()
        masses = reading.masses(queries, self._fitted("rule"))
        probabilities: Floats = masses / masses.sum(axis=1, keepdims=True)
        return probabilities

    def predict(self, X: object) -> NDArray[Any]:
        """The most probable class of each point, shape (n_queries,)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @property
    def class_prior_(self) -> Floats:
        """How frequent each class is, by the private counts; only after the release."""
        reading: _Reading = self._open(self.released_)
        counts = reading.counts if reading.counts.any() else np.ones(len(reading.counts))
        priors: Floats = counts / counts.sum()
        return priors
