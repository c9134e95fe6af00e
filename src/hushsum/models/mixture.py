"""Private Gaussian mixtures."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.models.cluster_model import AUTO, CLUSTER_SCALE, ClusterModel, Frame, most_clusters
from hushsum.models.parameters import INTEGER, TEXT, Parameter
from hushsum.models.predicted_error import PredictedError
from hushsum.models.private_cells import FIRST, MOMENTS, SQUARES, PromiseParts, split_cells
from hushsum.models.record_checks import generator_of
from hushsum.privacy.claim import Promise
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tasks.cell_mixture import (
    COVARIANCE_TYPES,
    FULL,
    SPHERICAL,
    Mixture,
    fit_mixture,
    number_of_components,
    restricted,
)
from hushsum.tasks.cells import Cells
from hushsum.tasks.released_cells import released_cells

MOST_COMPONENTS: Final = 32
MOST_FULL_COLUMNS: Final = 32
"""Up to which covariances are measured in each cell; with more columns their noise hides them."""


class PrivateMixture(ClusterModel):
    """A Gaussian mixture of private records, or of a function that was already released.

    Works well if every component has some thousand records at ε = 1. Components are fitted to some dozens of
    cells, of which number, mean and covariance are known, so what is narrower than a cell is seen through
    the covariance of that cell only; a component with fewer than about a hundred records per unit of 1/ε is
    lost in the noise. Covariances between columns are measured with δ and in up to 32 columns; otherwise
    they come from the means of cells alone.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Largest first; only after the release.
    means_ : array of shape (n_components, n_features)
    covariances_ : array
        Of the shape (n_components, n_features, n_features), (n_components, n_features) for ``"diag"`` or
        (n_components,) for ``"spherical"``, as in scikit-learn.
    n_components_ : int

    Privacy
    -------
    Unit: one record; neighbours: add/remove. ``fit`` releases, in steps, the number, the sum and the squares
    or products of the records of each cell of a public partition, with exact integer noise; every partition
    follows from tables released before. The steps add up to the claim (`hushsum.models.private_cells`). The
    mixture is computed from the last table, and so are densities, samples and the number of components.
    Records are kept, in secret, until the release. ``fit_released`` spends nothing.

    Notes
    -----
    Dempster, Laird and Rubin 1977, on cells in place of records; Schwarz 1978 for the number of components;
    Keriven et al. 2018 for mixtures of released Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([c + 0.05 * random.standard_normal((5000, 2)) for c in (-0.5, 0.4)])
    >>> model = PrivateMixture(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X)
    >>> sorted(model.means_[:, 0].round(1).tolist())
    [-0.5, 0.4]
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    COMMAND = "mixture"
    PARAMETERS = (
        Parameter(
            "n_components",
            INTEGER,
            "How many components; 'auto': chosen from what was released, by the Bayesian information "
            "criterion.",
            choices=(AUTO,),
            at_least=1,
            at_most=MOST_COMPONENTS,
        ),
        most_clusters("max_components", "components"),
        Parameter(
            "covariance_type",
            TEXT,
            "What the covariance of a component may be: any, one variance for each column, or one for all.",
            choices=COVARIANCE_TYPES,
        ),
        CLUSTER_SCALE,
    )

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        max_components: int = 10,
        covariance_type: str = FULL,
        scale: str | None = None,
        bounds: Any = (-1, 1),
        public: Any = None,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.max_components = max_components
        self.covariance_type = covariance_type
        self.scale = scale
        self.bounds = bounds
        self.public = public
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def predict(self, X: object) -> NDArray[np.int64]:
        """The most probable component of each point, shape (n_queries,)."""
        likeliest: NDArray[np.int64] = np.argmax(self.predict_proba(X), axis=1)
        return likeliest

    def predict_proba(self, X: object) -> Floats:
        """The probability of each component for each point, shape (n_queries, n_components)."""
        return self._law().probabilities(self._queries(X))

    def score_samples(self, X: object) -> Floats:
        """The logarithm of the density at each point, shape (n_queries,)."""
        return self._law().log_densities(self._queries(X))

    def score(self, X: object, y: object = None) -> float:
        """The mean logarithm of the density at points."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Synthetic records inside the bounds, shape (n_samples, n_features). Spends nothing.

        Unlike scikit-learn's, it returns the records alone; :meth:`predict` says which component they
        resemble. What a component has beyond the bounds is moved to them, as records are.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            Of the draws; with an integer they are the same every time.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise UsageError(
                parameter="n_samples",
                rule="must be a positive integer",
                got=shown(n_samples),
                remedy="try 100",
            )
        law = self._law()
        random = np.random.default_rng(int(generator_of(random_state).randint(np.iinfo(np.int32).max)))
        chosen = random.choice(len(law.weights), int(n_samples), p=law.weights / law.weights.sum())
        roots = np.linalg.cholesky(law.covariances)
        normal = random.standard_normal((int(n_samples), law.means.shape[1]))
        drawn = law.means[chosen] + np.einsum("nij,nj->ni", roots[chosen], normal)
        return self._within_bounds(drawn)

    @property
    def weights_(self) -> Floats:
        """The part of the records in each component, largest first; only after the release."""
        return self.released_.arrays["weights"]

    @property
    def means_(self) -> Floats:
        """The means of the components; only after the release."""
        return self.released_.arrays["means"]

    @property
    def covariances_(self) -> Floats:
        """The covariances of the components, in scikit-learn's shape; only after the release."""
        whole = self.released_.arrays["covariances"]
        kind = self._fitted("covariance_type")
        if kind == FULL:
            return whole
        variances = np.diagonal(whole, axis1=1, axis2=2)
        return np.asarray(variances.mean(axis=1) if kind == SPHERICAL else variances.copy())

    @property
    def n_components_(self) -> int:
        """How many components there are; only after the release."""
        return len(self.weights_)

    def _law(self) -> Mixture:
        law: Mixture = self._reading()
        return law

    @property
    def centres(self) -> Floats:
        """The same as ``means_``."""
        return self.means_

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        return SQUARES, self._last_step(promise, self.n_features_in_)

    def _number(self) -> int:
        return self.max_components if isinstance(self.n_components, str) else int(self.n_components)

    def _fit_cells(self, cells: Cells, seed: int) -> Mixture:
        number = self._number()
        if isinstance(self.n_components, str):
            number = number_of_components(cells, number, kind=self.covariance_type, seed=seed)
        return fit_mixture(cells, number, kind=self.covariance_type, seed=seed)[0]

    def _last_step(self, promise: Promise, dim: int) -> str:
        full = self.covariance_type == FULL and not promise.pure and dim <= MOST_FULL_COLUMNS
        return MOMENTS if full else SQUARES

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        last = self._last_step(parts.promise, rows.shape[1])
        cells = split_cells(rows, frame.half_widths, self._number(), parts, 1 - FIRST, last)
        return self._arrays(self._fit_cells(cells, seed), frame)

    def _of_function(self, function: ReleasedFunction, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        box = list(zip(frame.low, frame.high, strict=True))
        found = released_cells(function, self._number(), box, seed=seed)
        cells = found.in_units(1.0 / frame.unit, -frame.centre / frame.unit)
        return self._arrays(self._fit_cells(cells, seed), frame)

    def _arrays(self, law: Mixture, frame: Frame) -> dict[str, NDArray[Any]]:
        means = np.clip(law.means, -frame.half_widths, frame.half_widths)
        law = Mixture(law.weights, means, law.covariances).in_units(frame.unit, frame.centre)
        covariances = np.stack([restricted(each, self.covariance_type) for each in law.covariances])
        return {"weights": law.weights, "means": law.means, "covariances": covariances}

    def _open(self, bundle: Bundle) -> Mixture:
        weights, means, covariances = (bundle.arrays[name] for name in ("weights", "means", "covariances"))
        dim = self.n_features_in_
        if weights.ndim != 1 or not 1 <= len(weights) <= MOST_COMPONENTS:
            raise ValueError("weights")
        if means.shape != (len(weights), dim) or covariances.shape != (len(weights), dim, dim):
            raise ValueError("components")
        if (weights < 0.0).any() or not 0.99 < float(weights.sum()) < 1.01:
            raise ValueError("weights")
        if not np.allclose(covariances, np.swapaxes(covariances, 1, 2)):
            raise ValueError("covariances")
        law = Mixture(weights, means, covariances)
        try:
            np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances") from None
        return law

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        kind = self._last_step(promise, n_features)
        return self._error_of_centres(records, n_features, promise, (1 - FIRST) / 6, kind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        return tags
