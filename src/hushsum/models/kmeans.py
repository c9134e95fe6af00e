"""Private k-means."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.models.cluster_model import AUTO, CLUSTER_SCALE, ClusterModel, Frame, most_clusters
from hushsum.models.parameters import INTEGER, Parameter
from hushsum.models.predicted_error import PredictedError
from hushsum.models.private_cells import (
    FIRST,
    MEANS,
    SQUARES,
    PromiseParts,
    split_cells,
)
from hushsum.models.refined_centres import refined_centres
from hushsum.privacy.claim import Promise
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tasks.cell_kmeans import cluster_cells, number_of_clusters, sizes_and_spread
from hushsum.tasks.cells import Cells, nearest_centres
from hushsum.tasks.released_cells import released_cells

SPLITTING: Final = Fraction(9, 20)
REFINING_STEPS: Final = 2
MOST_CLUSTERS: Final = 64


class PrivateKMeans(ClusterModel):
    """k-means of private records, or of a function that was already released.

    Works well if every cluster has some thousand records at ε = 1: the noise of a centre is in proportion to
    the width of its cluster, to the number of clusters and to 1/(ε·records). A cluster with fewer than about
    a hundred records per unit of 1/ε is not distinguished from noise, and its records count to a neighbour.
    Distances are Euclidean, in the units of the data or of the declared ranges (``scale``). There is no
    ``labels_``: labels of the records are private; ``fit_predict`` returns them to the owner.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Largest cluster first; only after the release.
    counts_ : array of shape (n_clusters,)
        Noisy numbers of records.
    inertia_ : float
        The sum of squared distances of records to their centre, estimated from what was released.
    n_clusters_ : int

    Privacy
    -------
    Unit: one record; neighbours: add/remove. ``fit`` releases, in steps, the number, the sum and the squares
    of the records of each cell of a public partition, with exact integer noise; every partition follows from
    tables released before. A tenth of the budget finds where the records are; 45 % cut cells in two, where
    they vary most; k-means of these cells is post-processing; 45 % move the centres twice to the noisy means
    of their records. The steps add up to the claim (`hushsum.models.private_cells`). Records are kept, in
    secret, until the release. ``fit_released`` spends nothing.

    Notes
    -----
    Su, Cao, Li, Bertino and Jin, CODASPY 2016, for noisy k-means; Chang and Kamath 2021 and Cohen et al. 2021
    for cells first and centres later; here cells are cut by measured variances.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([c + 0.05 * random.standard_normal((5000, 2)) for c in (-0.5, 0.4)])
    >>> model = PrivateKMeans(2, epsilon=1.0, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_[:, 0].round(1).tolist())
    [-0.5, 0.4]
    >>> bool(model.predict([[-0.6, -0.5]])[0] != model.predict([[0.5, 0.4]])[0])
    True
    """

    COMMAND = "kmeans"
    PARAMETERS = (
        Parameter(
            "n_clusters",
            INTEGER,
            "How many clusters; 'auto': chosen from what was released, by the jump criterion.",
            choices=(AUTO,),
            at_least=1,
            at_most=MOST_CLUSTERS,
        ),
        most_clusters("max_clusters", "clusters"),
        CLUSTER_SCALE,
    )

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        max_clusters: int = 20,
        scale: str | None = None,
        bounds: Any = (-1, 1),
        public: Any = None,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.max_clusters = max_clusters
        self.scale = scale
        self.bounds = bounds
        self.public = public
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def predict(self, X: object) -> NDArray[np.int64]:
        """The number of the nearest centre, shape (n_queries,); 0 is the largest cluster."""
        frame, queries = self._frame_of_queries(X)
        return nearest_centres(queries, frame.places(self._reading()))[0]

    def distances(self, X: object) -> Floats:
        """The distance to every centre, shape (n_queries, n_clusters); with ``scale`` bounds, in declared
        ranges. What scikit-learn calls ``transform``, which would make a pipeline fit, and spend, again.
        """
        frame, queries = self._frame_of_queries(X)
        centres = frame.places(self._reading())
        apart = np.stack([np.square(queries - centre).sum(axis=1) for centre in centres], axis=1)
        return np.asarray(frame.length * np.sqrt(apart))

    def score(self, X: object, y: object = None) -> float:
        """Minus the sum of squared distances of points to their centres."""
        frame, queries = self._frame_of_queries(X)
        return -float(frame.length**2 * nearest_centres(queries, frame.places(self._reading()))[1].sum())

    @property
    def cluster_centers_(self) -> Floats:
        """The centres, largest cluster first; only after the release."""
        return self.released_.arrays["centers"]

    @property
    def counts_(self) -> Floats:
        """Noisy numbers of records of the clusters; only after the release."""
        return self.released_.arrays["counts"]

    @property
    def inertia_(self) -> float:
        """The sum of squared distances of records to their centres, estimated; only after the release."""
        return float(self.released_.arrays["inertia"][0])

    @property
    def n_clusters_(self) -> int:
        """How many clusters there are; only after the release."""
        return len(self.cluster_centers_)

    def _frame_of_queries(self, X: object) -> tuple[Frame, Floats]:
        queries = self._queries(X)
        frame = self._frame()
        return frame, frame.places(queries)

    @property
    def centres(self) -> Floats:
        """The same as ``cluster_centers_``."""
        return self.cluster_centers_

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        return SQUARES, MEANS

    def _number(self) -> int:
        return self.max_clusters if isinstance(self.n_clusters, str) else int(self.n_clusters)

    def _centres(self, cells: Cells, seed: int) -> Floats:
        number = self._number()
        if isinstance(self.n_clusters, str):
            number = number_of_clusters(cells, number, seed=seed)
        return cluster_cells(cells, number, seed=seed)

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        cells = split_cells(rows, frame.half_widths, self._number(), parts, SPLITTING, SQUARES)
        centres = self._centres(cells, seed)
        found = refined_centres(rows, cells, centres, parts, REFINING_STEPS)
        return _arrays(found.centres, found.counts, found.inertia, frame)

    def _of_function(self, function: ReleasedFunction, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        box = list(zip(frame.low, frame.high, strict=True))
        found = released_cells(function, self._number(), box, seed=seed)
        cells = found.in_units(1.0 / frame.unit, -frame.centre / frame.unit)
        centres = np.clip(self._centres(cells, seed), -frame.half_widths, frame.half_widths)
        return _arrays(centres, sizes_and_spread(cells, centres)[0], cells.inertia(centres), frame)

    def _open(self, bundle: Bundle) -> Floats:
        centres, counts = bundle.arrays["centers"], bundle.arrays["counts"]
        if centres.ndim != 2 or centres.shape[1] != self.n_features_in_ or counts.shape != centres.shape[:1]:
            raise ValueError("centers")
        if not 1 <= len(centres) <= MOST_CLUSTERS or bundle.arrays["inertia"].shape != (1,):
            raise ValueError("clusters")
        return np.asarray(centres, np.float64)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        share = (1 - FIRST - SPLITTING) / REFINING_STEPS
        return self._error_of_centres(records, n_features, promise, share, MEANS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


def _arrays(centres: Floats, counts: Floats, inertia: float, frame: Frame) -> dict[str, NDArray[Any]]:
    """What is stored: centres in the units of the data, largest cluster first."""
    order = np.argsort(-counts, kind="stable")
    return {
        "centers": frame.centre + frame.unit * centres[order],
        "counts": np.maximum(counts[order], 0.0),
        "inertia": np.array([frame.length**2 * inertia]),
    }
