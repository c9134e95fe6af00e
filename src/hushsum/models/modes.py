"""Modes of a released density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import ColumnKernel
from hushsum.kernels.registry import COLUMNS
from hushsum.models.density_tables import KERNELS
from hushsum.models.mode_partitions import Partitions, intersect, solve
from hushsum.models.mode_search import HeldOut, climb, distinct_modes, separated, spread_points
from hushsum.models.parameters import INTEGER, NUMBER, TEXT, Parameter
from hushsum.models.table_model import KERNEL_PARAMETERS, TableModel
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable

METHODS: Final = ("search", "intersection", "linear-program")
_KERNELS: Final = tuple(name for name in KERNELS if name in COLUMNS.kernels())
"""Modes are points in a box."""
_SPREAD: Final = 2048
_STARTS: Final = 32


class PrivateModes(TableModel):
    """Where the records are densest: the modes of one released kernel sum, their number and their heights.

    Works in few dimensions, and in many if the modes are wide. Two modes closer than about one bandwidth are
    one, and a bump that does not stand out of the noise is none; the position of a mode is as fuzzy as the
    kernel is wide, and the noise large. Nothing here is looked for in the records.

    Attributes
    ----------
    modes_ : array of shape (n_modes, n_features)
        Highest first; only after the release.
    heights_, height_errors_ : array of shape (n_modes,)
        The mean kernel value at each mode and its standard error.

    Privacy
    -------
    One release of one sketch; the search, the heights and every prediction are computed from it and spend
    nothing. Unit, relation and arithmetic are those of the claim.

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4, and its preprint. The standard error of an answer holds for
    queries chosen without regard to the hash functions. A mode is chosen by them, and a height read off the
    same rows is too high and its error too small. Rows are independent, so a part of them that was held out
    knows nothing of the search.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([c + 0.05 * random.standard_normal((5000, 1)) for c in (-0.5, 0.4)])
    >>> model = PrivateModes(bandwidth=0.2, random_state=0).fit(X)
    >>> model.predict([[-0.6], [-0.4], [0.5]]).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    >>> model.modes_.shape
    (2, 1)
    """

    COMMAND = "modes"
    DEFAULT_BANDWIDTH = 0.25
    PARAMETERS = (
        Parameter(
            "method",
            TEXT,
            "Climb the released function from many starts (search); or intersect the cells of one hash row "
            "after the other; or find by linear programming the points that lie in the fullest cells of "
            "most rows. The first is the fastest and the most exact; the others are for the Euclidean and "
            "Manhattan kernels.",
            choices=METHODS,
        ),
        *(replace(each, choices=_KERNELS) if each.name == "kernel" else each for each in KERNEL_PARAMETERS),
        Parameter(
            "n_modes",
            INTEGER,
            "At most so many, the highest first.",
            at_least=1,
            optional=True,
        ),
        Parameter(
            "prominence",
            NUMBER,
            "How many standard errors a mode must stand above the lowest point on the straight line to "
            "every higher one.",
            at_least=0,
        ),
        Parameter(
            "holdout",
            NUMBER,
            "The part of the hash rows that takes no part in the search and is read at the modes alone, so "
            "that heights have valid standard errors. With 0 there are none, nor where there are no hash "
            "rows.",
            at_least=0,
            below=1,
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        method: str = "search",
        kernel: Any = "euclidean",
        bandwidth: float | str | None = None,
        scale: str | None = None,
        power: int = 2,
        n_modes: int | None = None,
        prominence: float = 3.0,
        holdout: float = 0.25,
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
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scale = scale
        self.power = power
        self.n_modes = n_modes
        self.prominence = prominence
        self.holdout = holdout
        self.rows = rows
        self.width = width
        self.bounds = bounds
        self.public = public
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def predict(self, X: object) -> NDArray[np.int64]:
        """The number of the nearest mode, 0 for the highest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        queries = self._queries(X)
        modes = self.modes_
        units = self._units()
        distances = [(((queries - mode) / units) ** 2).sum(axis=1) for mode in modes]
        nearest: NDArray[np.int64] = np.argmin(distances, axis=0)
        return nearest

    def fit_predict(self, X: object, y: object = None) -> NDArray[np.int64]:
        """Fit, which releases, and give each record the number of its nearest mode, for the owner's eyes."""
        return self.fit(X, y).predict(X)

    @property
    def modes_(self) -> Floats:
        """The modes, highest first, shape (n_modes, n_features); only after the release."""
        return self.released_.arrays["modes"]

    @property
    def heights_(self) -> Floats:
        """The mean kernel value at each mode, shape (n_modes,); only after the release."""
        return self.released_.arrays["heights"]

    @property
    def height_errors_(self) -> Floats | None:
        """The standard errors of the heights, from held-out rows; None where none were held out."""
        return self.released_.arrays.get("height_errors")

    @property
    def n_modes_(self) -> int:
        """How many modes were found; only after the release."""
        return len(self.modes_)

    def _start(self, seed: int) -> Any:
        kernel = self._kernel()
        if not isinstance(kernel, ColumnKernel):
            raise UsageError(
                parameter="kernel",
                rule="must compare columns of numbers, because modes are points in a box",
                got=f"the {kernel.name} kernel",
                remedy="use euclidean",
            )
        if self.method != "search":
            Partitions.check(kernel)
        return super()._start(seed)

    def _open(self, bundle: Bundle) -> Any:
        modes, heights = bundle.arrays["modes"], bundle.arrays["heights"]
        errors = bundle.arrays.get("height_errors", heights)
        alike = heights.shape == errors.shape == modes.shape[:1]
        if modes.ndim != 2 or modes.shape[1] != self.n_features_in_ or not alike:
            raise ValueError("modes")
        return super()._open(bundle)

    def _derived(self, sketch: NoisyTable) -> dict[str, NDArray[Any]]:
        units = self._units()
        low, high = np.array(self.column_bounds()).T / units
        split = HeldOut.of(sketch, self.holdout)
        searched = split.searched

        def f(places: Floats) -> Floats:
            return searched(places * units)

        places = self._candidates(searched, f, low, high)
        points = places * units
        values = f(places)
        kept = distinct_modes(
            f,
            places,
            values,
            distance=self._reach / 2.0,
            prominence=self.prominence * searched.query(points).stderr,
            most=self.n_modes,
        )
        modes, heights = points[kept], values[kept]
        if split.rows == 0:
            return {"modes": modes, "heights": heights}
        heights, errors = split.heights(modes)
        order = np.argsort(-heights, kind="stable")
        return {"modes": modes[order], "heights": heights[order], "height_errors": errors[order]}

    @property
    def _reach(self) -> float:
        """How far a mode reaches: the bandwidth of the kernel, or half of a radian for directions."""
        kernel = self._kernel()
        return kernel.bandwidth / float(self._units().min()) if isinstance(kernel, ColumnKernel) else 0.5

    def _units(self) -> Floats:
        """What columns are divided by for distances: 1, but where they have units of their own."""
        kernel = self._kernel()
        if not isinstance(kernel, ColumnKernel):
            return np.ones(self.n_features_in_)
        widths = np.array(kernel.column_bandwidths())
        return np.ones(len(widths)) if (widths == widths[0]).all() else widths

    def _candidates(
        self, table: NoisyTable, f: Callable[[Floats], Floats], low: Floats, high: Floats
    ) -> Floats:
        """Where each method says that modes may be, in units of the columns, before they are separated."""
        seed, reach = self._state.seed, self._reach
        # Cells of hash rows are for kernels whose columns have the same unit.
        parts = None if self.method == "search" else Partitions.of(table, low, high)
        if parts is not None and self.method == "linear-program":
            found = solve(parts, most=_STARTS // 2 if self.n_modes is None else 2 * self.n_modes, seed=seed)
            return found if len(found) else (low + high)[None] / 2.0
        cloud = spread_points(low, high, _SPREAD, seed)
        starts = cloud[separated(cloud, f(cloud), reach, _STARTS)]
        if parts is not None:
            return intersect(parts, starts, reach=reach, size=reach / 20.0, seed=seed)
        return climb(f, starts, low, high, step=reach / 2.0, seed=seed)[0]
