"""Modes of a released density."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError, shown
from hushsum.models.base import Floats
from hushsum.models.held_out import HeldOut
from hushsum.models.mode_search import climb, distinct_modes, separated, spread_points
from hushsum.models.one_sketch import OneSketch
from hushsum.models.partitions import Partitions, intersect, solve
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable

METHODS: Final = ("search", "intersection", "linear-program")
_SPREAD: Final = 2048
_STARTS: Final = 32


class PrivateModes(OneSketch):
    """Where the records are densest: the modes of one released kernel sum, their number and their heights.

    Works in few dimensions, and in many if the modes are wide. Two modes closer than about one bandwidth are
    one, and a bump that does not stand out of the noise is none; the position of a mode is as fuzzy as the
    kernel is wide, and the noise large. Nothing here is looked for in the records.

    Parameters
    ----------
    epsilon : float
        ε of the one release.
    delta : float, optional
        δ of the one release; without it the claim is pure.
    method : {"search", "intersection", "linear-program"}
        Climb the released function from many starts; or intersect the cells of one hash row after the other;
        or find by linear programming the points that lie in the fullest cells of most rows. The first is the
        fastest and the most exact; the others are for the Euclidean and Manhattan kernels.
    kernel : {"euclidean", "manhattan", "gaussian", …} or Kernel
        With a hash kernel the records are counted into hash rows, with the Gaussian one into a grid (up to
        four columns) or random features, which have no heights with errors.
    bandwidth : float
        Scale of the kernel; chosen without looking at the records.
    power : int
        The kernel to that power, which falls off faster.
    n_modes : int, optional
        At most so many, the highest first.
    prominence : float
        How many standard errors a mode must stand above the lowest point on the straight way to every higher
        one.
    holdout : float
        The part of the hash rows that does not take part in the search and is read at the modes alone, so
        that heights have valid standard errors. With 0 there are none, nor where there are no hash rows.
    rows, width : int
        The size of the table; pure releases publish as many rows as suit ε.
    bounds : (low, high), or a list of them, one for each column
        Declared; records are clipped to it, and modes are looked for inside.
    random_state : int, RandomState or None
        Seeds the hash functions and the starts, never the noise.
    budget, idempotency_key : optional
        As for ``Tally.release``.

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

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        method: str = "search",
        kernel: Any = "euclidean",
        bandwidth: float = 0.5,
        power: int = 2,
        n_modes: int | None = None,
        prominence: float = 3.0,
        holdout: float = 0.25,
        rows: int = 1000,
        width: int = 1000,
        bounds: Any = (-1, 1),
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.power = power
        self.n_modes = n_modes
        self.prominence = prominence
        self.holdout = holdout
        self.rows = rows
        self.width = width
        self.bounds = bounds
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
        self.release()
        modes = self.modes_
        distances = [((queries - mode) ** 2).sum(axis=1) for mode in modes]
        nearest: NDArray[np.int64] = np.argmin(distances, axis=0)
        return nearest

    def fit_predict(self, X: object, y: object = None) -> NDArray[np.int64]:
        """Fit, release, and give each record the number of its nearest mode, for the owner's eyes."""
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
        if self.method not in METHODS:
            raise UsageError(
                f"method must be one of {', '.join(METHODS)}, got {shown(self.method)}; choose one"
            )
        if not 0.0 <= self.holdout < 1.0:
            raise UsageError(f"holdout must be at least 0 and below 1, got {shown(self.holdout)}; try 0.25")
        if self.n_modes is not None and not (isinstance(self.n_modes, int | np.integer) and self.n_modes > 0):
            raise UsageError(f"n_modes must be a positive integer or None, got {shown(self.n_modes)}; try 10")
        if not self.prominence >= 0.0:
            raise UsageError(f"prominence must be 0 or more, got {shown(self.prominence)}; try 3")
        kernel = self._kernel()
        if not kernel.bounded_columns:
            raise UsageError(
                f"modes are points in a box, which the {kernel.name} kernel has not; use euclidean"
            )
        if self.method != "search":
            Partitions.check(kernel)
        return super()._start(seed)

    def _derived(self, sketch: NoisyTable) -> dict[str, NDArray[Any]]:
        low, high = np.array(self._box()).T
        split = HeldOut.of(sketch, self.holdout)
        f = split.searched
        points = self._candidates(f, low, high)
        values = f(points)
        kept = distinct_modes(
            f,
            points,
            values,
            distance=self._reach / 2.0,
            prominence=self.prominence * f.query(points).stderr,
            most=self.n_modes,
        )
        modes, heights = points[kept], values[kept]
        if split.rows == 0:
            return {"modes": modes, "heights": heights}
        heights, errors = split.heights(modes)
        order = np.argsort(-heights, kind="stable")
        return {"modes": modes[order], "heights": heights[order], "height_errors": errors[order]}

    def _open(self, bundle: Bundle) -> Any:
        modes, heights = bundle.arrays["modes"], bundle.arrays["heights"]
        errors = bundle.arrays.get("height_errors", heights)
        alike = heights.shape == errors.shape == modes.shape[:1]
        if modes.ndim != 2 or modes.shape[1] != self.n_features_in_ or not alike:
            raise ValueError("modes")
        return super()._open(bundle)

    @property
    def _reach(self) -> float:
        """How far a mode reaches: the bandwidth of the kernel, or half of a radian for directions."""
        return float(getattr(self._kernel(), "bandwidth", 0.5))

    def _candidates(self, f: NoisyTable, low: Floats, high: Floats) -> Floats:
        """Where each method says that modes may be, before they are told apart."""
        seed, reach = self._state.seed, self._reach
        parts = None if self.method == "search" else Partitions.of(f, low, high)
        if parts is not None and self.method == "linear-program":
            found = solve(parts, most=_STARTS // 2 if self.n_modes is None else 2 * self.n_modes, seed=seed)
            return found if len(found) else (low + high)[None] / 2.0
        cloud = spread_points(low, high, _SPREAD, seed)
        starts = cloud[separated(cloud, f(cloud), reach, _STARTS)]
        if parts is not None:
            return intersect(parts, starts, reach=reach, size=reach / 20.0, seed=seed)
        return climb(f, starts, low, high, step=reach / 2.0, seed=seed)[0]
