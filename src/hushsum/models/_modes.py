"""Modes of a released function: where the records are densest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.declaration import setting
from hushsum.errors import UsageError
from hushsum.kernels import COLUMNS, ColumnKernel, HashPartitions, Kernel
from hushsum.releases import Bundle, NoisyTable, TableFunction
from hushsum.tables import HashRows

from ._base import declared, require
from ._table_model import KERNEL, KERNELS, TableModel, spread_points

Function = Callable[[Floats], Floats]

_HALVINGS: Final = 8
_MOST_ROUNDS: Final = 200
_MOST_DIRECTIONS: Final = 16
_ON_A_SEGMENT: Final = 17


def separated(points: Floats, values: Floats, distance: float, most: int) -> Integers:
    """Positions of the highest points of which no two are closer than ``distance``, highest first."""
    kept: list[int] = []
    for i in np.argsort(-values, kind="stable"):
        near = kept and (np.linalg.norm(points[kept] - points[i], axis=1) < distance).any()
        if not near:
            kept.append(int(i))
        if len(kept) == most:
            break
    return np.array(kept, np.int64)


def climb(
    f: Function, starts: Floats, low: Floats, high: Floats, *, step: float, seed: int
) -> tuple[Floats, Floats]:
    """Climb from every start by compass search; the points reached and the function there.

    Each round looks in both directions along a random orthogonal frame, goes to the highest point if it is
    higher, and halves its step otherwise, down to 2⁻⁸ of ``step``. All starts climb together, so a round is
    one batch of queries.

    Notes
    -----
    Kolda, Lewis, Torczon, *Optimization by direct search*, SIAM Review 2003. The released function is a sum
    of steps with noise: what is reached is a local maximum of that function, up to the last step.
    """
    random = np.random.default_rng(seed)
    points, values = starts.copy(), f(starts)
    sizes = np.full(len(points), step)
    dim = points.shape[1]
    for _ in range(_MOST_ROUNDS):
        active = np.flatnonzero(sizes > step * 2.0**-_HALVINGS)
        if not len(active):
            break
        frame = np.linalg.qr(random.standard_normal((dim, dim)))[0][:_MOST_DIRECTIONS]
        directions = np.concatenate([frame, -frame])
        trials = np.clip(points[active, None] + sizes[active, None, None] * directions, low, high)
        found = f(trials.reshape(-1, dim)).reshape(len(active), -1)
        best = found.argmax(axis=1)
        higher = found[np.arange(len(active)), best] > values[active]
        moved = active[higher]
        points[moved] = trials[higher, best[higher]]
        values[moved] = found[higher, best[higher]]
        sizes[active[~higher]] /= 2.0
    return points, values


def distinct_modes(
    f: Function, points: Floats, values: Floats, *, distance: float, prominence: Floats, most: int | None
) -> Integers:
    """Positions of the points that are modes of their own, highest first.

    A point is one if it is at least its ``prominence`` above 0, further than ``distance`` from every
    higher mode, and if on the straight way to each of them the function falls below it by at least its
    prominence. Two ends of a curved ridge count as two.
    """
    kept: list[int] = []
    fractions = np.linspace(0.0, 1.0, _ON_A_SEGMENT)[1:-1, None]
    for i in np.argsort(-values, kind="stable"):
        if most is not None and len(kept) == most:
            break
        if kept and values[i] < prominence[i]:
            continue
        for j in kept:
            if np.linalg.norm(points[i] - points[j]) < distance:
                break
            way = points[i] + fractions * (points[j] - points[i])
            if f(way).min() > values[i] - prominence[i]:
                break
        else:
            kept.append(int(i))
    return np.array(kept, np.int64)


# Fewer rows than this on either side, and their spread says too little: none are held out then.
_FEWEST_ROWS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A released table whose last ``rows`` rows are kept apart; ``searched`` answers from the others.

    The rows of a table are independent, hash functions and noise alike, so a query that was found with some
    of them was chosen without regard to the rest.
    """

    whole: NoisyTable
    searched: NoisyTable
    rows: int

    @classmethod
    def of(cls, function: NoisyTable, part: float) -> HeldOut:
        """Keep a part of the rows apart; whole blocks of them, where rows share random numbers. A grid or
        random features have no rows to hold out.
        """
        if not isinstance(function, TableFunction):
            return cls(function, function, 0)
        block = function.reading.basis.independent_rows
        blocks = function.rows // block
        apart = max(_FEWEST_ROWS, round(part * blocks)) if part > 0.0 else 0
        if apart == 0 or blocks - apart < _FEWEST_ROWS:
            return cls(function, function, 0)
        first = (blocks - apart) * block
        return cls(function, function.first_rows(first), function.rows - first)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean kernel values at points that were found by ``searched``, and their standard errors; from the
        rows that were held out.
        """
        f = self.whole
        assert isinstance(f, TableFunction)
        first = f.rows - self.rows
        cells = f.reading.basis.cells(f.basis.prepare_queries(points))[:, first:]
        counts = f.table[np.arange(first, f.rows), cells].astype(np.float64)
        block = f.reading.basis.independent_rows
        blocks = counts.shape[1] // block
        means = counts[:, : blocks * block].reshape(len(points), blocks, block).mean(axis=2)
        sums = f.reading.unfold(means.mean(axis=1), f.count)
        keep = 1.0 / (1.0 - f.reading.basis.fold_rate)
        variance = np.maximum(means.var(axis=1, ddof=1) / blocks, f.noise.variance / self.rows)
        # f̂/N̂ with both estimated, as in TableFunction.query.
        slope = keep * f.reading.basis.fold_rate + sums / f.count
        return sums / f.count, np.sqrt(keep**2 * variance + slope**2 * f.count_stderr**2) / f.count


_CLOUD: Final = 256
_STEPS: Final = 12
_ROWS_OF_A_PROGRAM: Final = 200
_REWEIGHTINGS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The slabs of the hash rows in a declared box, and what is counted where.

    ``f`` answers the released function; ``counts`` the noisy counts of each row's cell, shape (n, rows).
    ``origin`` is subtracted from a point before it is hashed.
    """

    slabs: HashPartitions
    f: Function
    counts: Function
    origin: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, function: NoisyTable, low: Floats, high: Floats) -> Partitions:
        """The partitions behind a released table.

        Raises
        ------
        UsageError
            if its hash rows are not slabs.
        """
        basis = function.basis
        assert isinstance(basis, HashRows)
        rows = np.arange(function.rows)

        def counts(points: Floats) -> Floats:
            return function.table[rows, basis.cells(basis.prepare_queries(points))].astype(np.float64)

        slabs = HashPartitions.of(function.kernel, rows=function.rows, seed=basis.seed)
        origin = np.zeros(len(low)) if basis.bounds is None else basis.bounds.centre
        return cls(slabs, function, counts, origin, low, high)

    @staticmethod
    def check(kernel: Kernel) -> None:
        """Raise UsageError for a kernel whose hash rows are not slabs."""
        HashPartitions.of(kernel, rows=1, seed=0)

    def positions(self, points: Floats, rows: slice = slice(None)) -> Floats:
        """Where points lie between the faces of some rows, shape (n, rows, power)."""
        chosen = HashPartitions(self.slabs.weights[rows], self.slabs.offsets[rows])
        return chosen.positions(points - self.origin)


def intersect(parts: Partitions, starts: Floats, *, reach: float, size: float, seed: int) -> Floats:
    """From each start, intersect one row's cells after the other with what is left of its surroundings.

    A region begins as the part of the box within ``reach`` of the start. Of the cells into which the next row
    cuts it, the one is kept that holds the highest total count met so far. The region is a polytope, sampled
    by hit-and-run, and ends when it is smaller than ``size`` or the rows are used up. Returns the middle of
    the fullest part of each region, shape (n, dim).

    Notes
    -----
    The intersection of all rows' cells at x has the total count R·f(x), so the fullest intersection is the
    mode (Coleman and Shrivastava, CCS 2021, section 4). Looking through all of them is exponential in the
    dimension; keeping one is not, and finds the mode in whose basin the first cells lie.
    """
    random = np.random.default_rng(seed)
    return np.array([_narrow(parts, start, reach, size, random) for start in starts])


def _narrow(
    parts: Partitions, start: Floats, reach: float, size: float, random: np.random.Generator
) -> Floats:
    weights, offsets = parts.slabs.weights, parts.slabs.offsets
    dim = len(start)
    normals = [np.eye(dim), -np.eye(dim)]
    limits = [np.minimum(parts.high, start + reach), -np.maximum(parts.low, start - reach)]
    cloud = _hit_and_run(np.vstack(normals), np.concatenate(limits), start[None], random)
    cloud[0] = start
    totals = parts.f(cloud)
    for row in range(len(weights)):
        best = cloud[totals.argmax()]
        # The fullest cell of this row is the one around the highest point.
        cell = np.floor(weights[row] @ (best - parts.origin) + offsets[row])
        shift = offsets[row] - weights[row] @ parts.origin
        inside = (np.floor(parts.positions(cloud, slice(row, row + 1))[:, 0]) == cell).all(axis=1)
        if inside.all():
            continue
        normals += [weights[row], -weights[row]]
        limits += [cell + 1.0 - shift, shift - cell]
        cloud, totals = cloud[inside], totals[inside]
        if np.ptp(cloud, axis=0).max() < size and len(cloud) >= _CLOUD // 8:
            break
        if len(cloud) < _CLOUD // 2:
            fresh = _hit_and_run(np.vstack(normals), np.concatenate(limits), cloud, random)
            cloud, totals = np.vstack([best, fresh]), np.concatenate([[totals.max()], parts.f(fresh)])
    return np.asarray(cloud[totals >= np.quantile(totals, 0.75)].mean(axis=0))


def _hit_and_run(normals: Floats, limits: Floats, seeds: Floats, random: np.random.Generator) -> Floats:
    """Points of the polytope ``normals·x ≤ limits``, from seeds inside it: each goes a random part of a
    random chord, a few times (Smith 1984).
    """
    points = seeds[random.integers(len(seeds), size=_CLOUD)]
    for _ in range(_STEPS):
        way = random.standard_normal(points.shape)
        speed = way @ normals.T
        room = limits - points @ normals.T
        with np.errstate(divide="ignore", invalid="ignore"):
            times = room / speed
        forward = np.where(speed > 1e-12, times, np.inf).min(axis=1)
        backward = np.where(speed < -1e-12, times, -np.inf).max(axis=1)
        length = backward + (forward - backward) * random.random(len(points))
        # A seed on a face, up to rounding, may have no room at all.
        length = np.where(forward > backward, length, 0.0)
        points = points + length[:, None] * way
    return points


def solve(parts: Partitions, *, most: int, seed: int) -> Floats:
    """The point that lies in, or nearest to, the fullest cells of the rows, by linear programming; then the
    next one, with the cells of the first taken out; ``most`` of them, shape (n, dim).

    Minimises Σ w·s over x in the box, where s ≥ 0 is how far x is outside a row's fullest slab and w how far
    its count stands out, then again with w/(s + ½), which lets go of slabs that belong to other modes
    (reweighted ℓ1, Candès, Wakin, Boyd 2008).

    Notes
    -----
    The linear-programming form of Coleman and Shrivastava's preprint, which gives no more than the idea: "to
    identify a point in a partition with the highest count values".
    """
    cloud = spread_points(parts.low, parts.high, 2048, seed)
    counts = parts.counts(cloud)
    slabs = np.floor(parts.positions(cloud))
    ordinary, spread = np.median(counts, axis=0), counts.std(axis=0) + 1e-12
    open_cells = np.ones(counts.shape, bool)
    rows = np.arange(counts.shape[1])
    found: list[Floats] = []
    for _ in range(most):
        masked = np.where(open_cells, counts, -np.inf)
        fullest = masked.argmax(axis=0)
        heavy = masked[fullest, rows]
        weight = np.where(np.isfinite(heavy), np.maximum(heavy - ordinary, 0.0) / spread, 0.0)
        chosen = np.argsort(-weight, kind="stable")[:_ROWS_OF_A_PROGRAM]
        chosen = chosen[weight[chosen] > 0.0]
        if not len(chosen):
            break
        x = _program(parts, chosen, slabs[fullest[chosen], chosen], weight[chosen])
        found.append(x)
        taken = np.floor(parts.positions(x[None])[0])
        open_cells &= (np.abs(slabs - taken) > 1.0).any(axis=2)
    return np.array(found).reshape(len(found), len(parts.low))


def _program(parts: Partitions, rows: Integers, slabs: Floats, weight: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    dim = len(parts.low)
    a = parts.slabs.weights[rows].reshape(-1, dim)
    b = (parts.slabs.offsets[rows] - parts.slabs.weights[rows] @ parts.origin).ravel()
    low = slabs.ravel() - b
    count = len(a)
    slack = -eye_array(count)
    matrix = vstack([hstack([csr_array(a), slack]), hstack([csr_array(-a), slack])], format="csr")
    limits = np.concatenate([low + 1.0, -low])
    box = [*zip(parts.low, parts.high, strict=True), *[(0.0, None)] * count]
    w = np.repeat(weight, a.shape[0] // len(rows))
    x = (parts.low + parts.high) / 2.0
    scale = w
    for _ in range(_REWEIGHTINGS):
        answer = linprog(np.concatenate([np.zeros(dim), scale]), matrix, limits, bounds=box, method="highs")
        if answer.x is None:
            break
        x, outside = answer.x[:dim], answer.x[dim:]
        scale = w / (outside + 0.5)
    return np.asarray(x, np.float64)


METHODS: Final = ("search", "intersection", "linear-program")
# Modes are points in a box.
_KERNELS: Final = tuple(name for name in KERNELS if name in COLUMNS.kernels())
_SPREAD: Final = 2048
_STARTS: Final = 32


@declared
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
    method: str = setting(
        "search",
        "Climb the released function from many starts (search); or intersect the cells of one hash row "
        "after the other; or find by linear programming the points that lie in the fullest cells of most "
        "rows. The first is the fastest and the most exact; the others are for the Euclidean and Manhattan "
        "kernels.",
        choices=METHODS,
    )
    kernel: Any = setting("euclidean", KERNEL, choices=_KERNELS)
    n_modes: int | None = setting(None, "Maximum number of modes; the highest are kept.", at_least=1)
    prominence: float = setting(
        3.0,
        "How many standard errors a mode must stand above the lowest point on the straight line to every "
        "higher one.",
        at_least=0,
    )
    holdout: float = setting(
        0.25,
        "The part of the hash rows that takes no part in the search and is read at the modes alone, so that "
        "heights have valid standard errors. With 0, or without hash rows, heights have no standard errors.",
        at_least=0,
        below=1,
    )

    def predict(self, X: object) -> Integers:
        """The number of the nearest mode, 0 for the highest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        queries, units = self._queries(X), self._units()
        distances = [(((queries - mode) / units) ** 2).sum(axis=1) for mode in self.modes_]
        return np.asarray(np.argmin(distances, axis=0))

    def fit_predict(self, X: object, y: object = None) -> Integers:
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
            rule = "must compare columns of numbers, because modes are points in a box"
            raise UsageError("kernel", rule, got=f"the {kernel.name} kernel", remedy="use euclidean")
        if self.method != "search":
            Partitions.check(kernel)
        return super()._start(seed)

    def _open(self, bundle: Bundle) -> Any:
        modes, heights = bundle.arrays["modes"], bundle.arrays["heights"]
        errors = bundle.arrays.get("height_errors", heights)
        require(modes.shape == (len(modes), self.n_features_in_), "modes")
        require(heights.shape == errors.shape == modes.shape[:1], "heights")
        return super()._open(bundle)

    def _derived(self, sketch: NoisyTable) -> dict[str, NDArray[Any]]:
        units = self._units()
        low, high = np.array(self.column_bounds()).T / units
        split = HeldOut.of(sketch, self.holdout)
        searched = split.searched

        def f(places: Floats) -> Floats:
            return searched(places * units)

        places = self._candidates(searched, f, low, high)
        points, values = places * units, f(places)
        prominence = self.prominence * searched.query(points).stderr
        apart, most = self._reach / 2.0, self.n_modes
        kept = distinct_modes(f, places, values, distance=apart, prominence=prominence, most=most)
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
