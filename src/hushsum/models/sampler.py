"""Synthetic records and diverse choices from a released function."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.models.parameters import INTEGER, NUMBER, TEXT, Parameter
from hushsum.models.record_checks import generator_of
from hushsum.models.table_model import KERNEL_PARAMETERS, TableModel, reach_of
from hushsum.models.weighted_sampling import by_chain, by_rejection, diverse_choice, from_grid, from_list
from hushsum.privacy.claim import Promise

METHODS: Final = ("chain", "grid", "rejection")
MOST_ADVISED: Final = 3
"""Columns up to which a kernel sum resolves the joint density of usual data."""


class PrivateSampler(TableModel):
    """Records that look like the private ones, drawn from one released kernel sum.

    Synthetic records follow the data *smoothed by the kernel*: they are wider than the data by about a
    bandwidth, and what is finer than it is lost. In more than three columns the kernel sum says little about
    the joint density: use `PrivateSynthesizer` there, which also takes categories and missing values, or
    choose among public candidates.

    Privacy
    -------
    One release of one sketch; every draw and choice is computed from it and spends nothing. Synthetic records
    carry the claim of the sketch, not a promise that none of them resembles a private one.

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4, and its preprint, which names diversity sampling.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(0.5, 0.05, (5000, 1))
    >>> model = PrivateSampler(bandwidth=0.1, random_state=0).fit(X)
    >>> bool(0.3 < np.median(model.sample(1000, random_state=1)) < 0.7)
    True
    >>> candidates = np.array([[0.5], [0.51], [0.45], [-0.9]])
    >>> 3 in model.select(candidates, 2)
    False
    """

    COMMAND = "sampler"
    DEFAULT_BANDWIDTH = 0.05
    PARAMETERS = (
        Parameter(
            "method",
            TEXT,
            "How sample draws inside the bounds: Metropolis chains, in any number of columns; the cells of "
            "a grid, in up to three; or rejection, exact and slow.",
            choices=METHODS,
        ),
        Parameter(
            "floor",
            NUMBER,
            "A weight below this many of its standard errors counts as 0, so that noise in empty space "
            "draws no records.",
            at_least=0,
        ),
        Parameter(
            "steps",
            INTEGER,
            "Of each chain.",
            at_least=1,
        ),
        *KERNEL_PARAMETERS,
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        method: str = "chain",
        floor: float = 2.0,
        steps: int = 50,
        kernel: Any = "gaussian",
        bandwidth: float | str | None = None,
        scale: str | None = None,
        power: int = 1,
        rows: int = 1000,
        width: int = 1000,
        bounds: Any = (-1, 1),
        public: Any = None,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.floor = floor
        self.steps = steps
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scale = scale
        self.power = power
        self.rows = rows
        self.width = width
        self.bounds = bounds
        self.public = public
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def decision_function(self, X: object) -> Floats:
        """The weight of each candidate: its mean kernel value, 0 where that is within the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public candidates.
        """
        return self._weights(self._queries(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Synthetic records inside the bounds, shape (n_samples, n_features). Spends nothing beyond the one
        release.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            Of the draws; with an integer they are the same every time.

        Raises
        ------
        UsageError
            if the released function nowhere stands out of its noise.
        """
        number = _positive_integer("n_samples", n_samples)
        kernel = self._reading().kernel
        low, high = np.array(self._box(self._fitted("bounds"))).T
        random = _generator(random_state)
        if self.method == "grid":
            return from_grid(self._weights, low, high, number, random)
        if self.method == "rejection":
            return by_rejection(self._weights, low, high, number, random)
        return by_chain(
            self._weights, low, high, number, random, step=reach_of(kernel, len(low)), steps=self.steps
        )

    def select(
        self, candidates: object, n_samples: int, *, diverse: bool = True, random_state: Any = None
    ) -> NDArray[np.int64]:
        """Positions of public candidates where the data are; at most ``n_samples``, none twice.

        Parameters
        ----------
        candidates : array-like of shape (n_candidates, n_features)
        n_samples : int
        diverse : bool
            True picks heavy candidates that are unlike one another, deterministically: the greedy mode of a
            determinantal point process. False draws them at random by weight.
        random_state : int, RandomState or None
            Of random draws.
        """
        number = _positive_integer("n_samples", n_samples)
        points = self._queries(candidates)
        weights = self.decision_function(points)
        if not diverse:
            return from_list(weights, number, _generator(random_state))
        kernel = self._reading().kernel
        size = kernel.size_bound()
        return diverse_choice(
            weights, lambda i: kernel.similarity(points[i : i + 1], points)[0] / size, number
        )

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if n_features <= MOST_ADVISED:
            return []
        return [
            f"in {n_features} columns a kernel sum says little about the joint density; the synthesizer "
            "model keeps the dependences of all pairs of columns"
        ]

    def _weights(self, points: Floats) -> Floats:
        answers = self._reading().query(points)
        return np.where(answers.value > self.floor * answers.stderr, np.maximum(answers.value, 0.0), 0.0)


def _positive_integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UsageError(
            parameter=name, rule="must be a positive integer", got=shown(value), remedy="try 100"
        )
    return int(value)


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(int(generator_of(random_state).randint(np.iinfo(np.int32).max)))
