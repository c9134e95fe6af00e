"""Clusters of released functions: cells that summarise where the records are, k-means and mixtures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.errors import UsageError
from hushsum.kernels import ColumnKernel
from hushsum.records import Bounds
from hushsum.releases import CoefficientFunction, PointsFunction, ReleasedFunction, released_table
from hushsum.tables import AMPLITUDE, WHOLE, Bins, FourierFeatures, GridWeights

__all__ = [
    "COVARIANCE_TYPES", "FULL", "SPHERICAL", "Cells", "Mixture", "Sketch", "check_function", "cluster_cells",
    "enough_cells", "fit_mixture", "nearest_centers", "number_of_clusters", "number_of_components",
    "released_cells", "restricted", "sizes_and_spread",
]  # fmt: skip

_NUMBERS_AT_A_TIME = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Public groups of records, of which only weight, mean and spread are known.

    Parameters
    ----------
    weights : array of shape (n_cells,)
        About the number of records of each cell; not negative.
    means : array of shape (n_cells, dim)
    variances : array of shape (n_cells, dim)
        Of the records of each cell, along each column.
    covariances : array of shape (n_cells, dim, dim), optional
        Where they are known.
    noise : array of shape (n_cells,), optional
        The variance that noise adds to each coordinate of a mean.

    Examples
    --------
    >>> cells = Cells(np.array([1.0, 3.0]), np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]]))
    >>> float(cells.total), cells.inertia(np.array([[3.0]]))
    (4.0, 16.0)
    """

    weights: Floats
    means: Floats
    variances: Floats
    covariances: Floats | None = None
    noise: Floats | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def dim(self) -> int:
        """The number of columns."""
        return int(self.means.shape[1])

    @property
    def total(self) -> float:
        """The weight of all cells."""
        return float(self.weights.sum())

    @property
    def effective_total(self) -> float:
        """The number of records whose means have a sampling error as large as the noise."""
        if self.noise is None:
            return self.total
        ratio = self.weights * self.noise / np.maximum(self.variances.mean(axis=1), 1e-300)
        return float((self.weights / (1.0 + ratio)).sum())

    def full_covariances(self) -> Floats:
        """The covariances, with zeros off the diagonal where only variances are known."""
        if self.covariances is not None:
            return self.covariances
        return np.asarray(self.variances[:, :, None] * np.eye(self.dim))

    def inertia(self, centers: Floats) -> float:
        """Σ ‖x − c(x)‖² over the records, if all records of a cell have the center nearest to its mean."""
        _, square = nearest_centers(self.means, centers)
        return float(self.weights @ (square + self.variances.sum(axis=1)))

    def in_units(self, factor: Floats, shift: Floats) -> Cells:
        """The same cells after x ↦ factor·x + shift, column by column."""
        covariances = None
        if self.covariances is not None:
            covariances = self.covariances * factor[:, None] * factor
        return Cells(
            self.weights, self.means * factor + shift, self.variances * np.square(factor), covariances
        )

    def chosen(self, kept: NDArray[np.bool_ | np.intp]) -> Cells:
        """Some of the cells, by their places or a mask."""
        covariances = None if self.covariances is None else self.covariances[kept]
        noise = None if self.noise is None else self.noise[kept]
        return Cells(self.weights[kept], self.means[kept], self.variances[kept], covariances, noise)


def nearest_centers(points: Floats, centers: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The place of the nearest center of each point, and its squared distance.

    >>> nearest_centers(np.array([[0.0], [5.0]]), np.array([[1.0], [4.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    block = max(1, _NUMBERS_AT_A_TIME // max(1, len(centers)))
    parts = (points[start : start + block] for start in range(0, len(points), block))
    lengths = np.square(centers).sum(axis=1)
    nearest = np.concatenate([np.argmin(lengths - 2.0 * some @ centers.T, axis=1) for some in parts])
    # Distances from the differences, not from products, so that a point at a center has distance 0.
    return nearest, np.square(points - centers[nearest]).sum(axis=1)


FEW_COLUMNS: Final = 3
"""Up to which any function is read on a lattice."""
_LATTICE: Final = 625
# Standard deviations of the noise above which a place is taken to hold records.
_SEEN: Final = 3.0
# Nodes of a grid are put together until noise is about this part of their mean weight.
_BLOCK_NOISE: Final = 0.25
# Along each column, that are left at least.
_FEWEST_BLOCKS: Final = 8


def check_function(function: object) -> int:
    """The number of columns of a released function that can be clustered.

    Raises
    ------
    UsageError
        if it cannot.
    """
    if not isinstance(function, ReleasedFunction):
        remedy = "give what release() or load() returned; records are for fit"
        raise _refused("must be a released function", type(function).__name__, remedy)
    if function.dim is None or not isinstance(function.kernel, ColumnKernel):
        got = f"the {function.kernel.name} kernel"
        raise _refused("must be one of columns of numbers", got, "release a grid or Fourier features")
    table = released_table(function)
    basis = table.basis if isinstance(table, CoefficientFunction) else None
    direct = isinstance(function, PointsFunction) or isinstance(basis, FourierFeatures | GridWeights | Bins)
    if not direct and (function.dim > FEW_COLUMNS or function.bounds is None):
        raise _refused(
            f"must be of Fourier features or weighted points in more than {FEW_COLUMNS} columns, and "
            "others must have declared bounds",
            f"another kind in {function.dim} columns",
            "release random Fourier features, or fit the records",
        )
    return function.dim


def _refused(rule: str, got: str, remedy: str) -> UsageError:
    return UsageError("function", rule, got=got, remedy=remedy)


def released_cells(
    function: ReleasedFunction, number: int, box: list[tuple[float, float]], *, seed: int
) -> Cells:
    """Cells of a released function, in the units of the data.

    Weighted points, histograms and grids are taken as they are, with places below the noise left out and
    negative weights at 0; nodes that are many and light are put together first. Fourier features become
    ``number`` normal components (`sketched_cells`). Any other function is read on a lattice, and weights
    there are fitted to it by least squares.

    Raises
    ------
    UsageError
        if the function nowhere stands out of its noise.
    """
    check_function(function)
    function = released_table(function)
    match function:
        case CoefficientFunction(basis=FourierFeatures()):
            low, high = np.array(box).T
            own = function.bounds
            origin = np.zeros(len(box)) if own is None else np.asarray(own.centre, np.float64)
            cells = sketched_cells(function, number, low - origin, high - origin, seed=seed)
            return cells.in_units(np.ones(len(box)), origin)
        case CoefficientFunction(basis=GridWeights() as basis):
            axes = [
                center + each.first + each.spacing * np.arange(each.nodes)
                for center, each in zip(basis.bounds.centre, basis.grid_columns(), strict=True)
            ]
            table = np.asarray(function.table, np.float64).reshape(basis.nodes) / WHOLE
            return _of_lattice(table, function.cell_variance**0.5 / WHOLE, axes, np.array(basis.spacing))
        case CoefficientFunction(basis=Bins() as basis):
            grid = basis.grid
            axes = [
                low + width * (np.arange(bins) + 0.5)
                for low, width, bins in zip(basis.bounds.low, grid.width, grid.bins, strict=True)
            ]
            table = np.asarray(function.table, np.float64).reshape(grid.bins)
            return _of_lattice(table, function.cell_variance**0.5, axes, np.asarray(grid.width))
        case PointsFunction():
            deviation = (function.weight_variance or 0.0) ** 0.5
            width = np.zeros(len(box)) if function.cell_width is None else np.array(function.cell_width)
            return _standing_out(function.weights, function.points, deviation, width)
    assert function.bounds is not None
    return _read_off(function, function.bounds)


def _of_lattice(table: Floats, deviation: float, axes: list[Floats], width: Floats) -> Cells:
    """Blocks of nodes that stand out of the noise: pairs along each column are put together while the noise
    is large beside the mean weight.
    """
    while (
        deviation > _BLOCK_NOISE * max(float(table.sum()), 0.0) / table.size
        and min(table.shape) >= 2 * _FEWEST_BLOCKS
    ):
        for axis in range(table.ndim):
            table = _paired(table, axis)
        axes = [_paired(each, 0) / _paired(np.ones(len(each)), 0) for each in axes]
        deviation *= 2.0 ** (table.ndim / 2.0)
        width = 2.0 * width
    return _standing_out(table.reshape(-1), _lattice(axes), deviation, width)


def _lattice(axes: list[Floats]) -> Floats:
    """All places of a lattice, shape (places, columns)."""
    return np.stack([each.reshape(-1) for each in np.meshgrid(*axes, indexing="ij")], axis=1)


def _paired(values: Floats, axis: int) -> Floats:
    """Neighbours along an axis added up; a last one without a neighbour stays alone."""
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis))


def _read_off(function: ReleasedFunction, bounds: Bounds) -> Cells:
    """Weights on a lattice, not negative, whose kernel sums are nearest to the function there."""
    from scipy.optimize import nnls

    along = max(2, int(_LATTICE ** (1.0 / bounds.dim) + 1e-9))
    low, high = np.array(bounds.low), np.array(bounds.high)
    width = (high - low) / along
    axes = [start + step * (np.arange(along) + 0.5) for start, step in zip(low, width, strict=True)]
    places = _lattice(axes)
    answers = function.query(places)
    deviation = np.where(np.isfinite(answers.stderr), answers.stderr, 0.0)
    if not (answers.value > _SEEN * deviation).any():
        raise _nothing_seen()
    similarity = function.kernel.similarity(places, places)
    try:
        weights, _ = nnls(similarity, answers.value)
    except RuntimeError:
        # It did not converge: the function itself, which is wider than the records by the kernel.
        weights = np.where(answers.value > _SEEN * deviation, answers.value, 0.0)
    kept = weights > 0.0
    held = max(function.count, 1.0) * weights / weights.sum()
    return _boxes(held, places, width).chosen(kept)


def _standing_out(weights: Floats, places: Floats, deviation: float, width: Floats) -> Cells:
    # The largest noise of that many places, also of Laplace's distribution, is seldom above this.
    if weights.max() <= (_SEEN + math.log(len(weights))) * deviation:
        raise _nothing_seen()
    return _boxes(weights, places, width).chosen(weights > _SEEN * deviation)


def _boxes(weights: Floats, places: Floats, width: Floats) -> Cells:
    """Cells whose records are spread evenly over boxes of one size."""
    return Cells(weights, places, np.tile(np.square(width) / 12.0, (len(places), 1)))


def _nothing_seen() -> UsageError:
    rule = "must stand out of its noise somewhere, to have clusters"
    return _refused(rule, "noise", "release with a larger epsilon")


_STARTS: Final = 20
_FEW_STARTS: Final = 4
_FEWEST: Final = 1e-9
# Where a cell that has to stand for two clusters is cut: ± this many standard deviations, about the mean of
# either half of a normal distribution.
_SPLIT: Final = 0.8


def cluster_cells(cells: Cells, number: int, *, seed: int, starts: int = _STARTS) -> Floats:
    """The centers of the best of some runs of k-means on the means of cells, heaviest first.

    If there are fewer cells than clusters, the cells that vary most are cut in two.

    >>> cells = Cells(np.ones(4), np.array([[0.0], [1.0], [9.0], [10.0]]), np.zeros((4, 1)))
    >>> sorted(cluster_cells(cells, 2, seed=0).ravel().tolist())
    [0.5, 9.5]
    """
    # Importing scikit-learn's clusters takes longer than most of what the package does.
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    cells = enough_cells(cells, number)
    if len(cells) == number:
        return np.asarray(cells.means[np.argsort(-cells.weights, kind="stable")])
    weights = np.maximum(cells.weights, _FEWEST * max(cells.total, _FEWEST))
    # Threads that wait for each other take longer than a few points.
    with threadpool_limits(limits=1):
        run = KMeans(number, n_init=starts, random_state=seed).fit(cells.means, sample_weight=weights)
    centers = np.asarray(run.cluster_centers_, np.float64)
    held = np.bincount(run.labels_, weights=cells.weights, minlength=number)
    return np.asarray(centers[np.argsort(-held, kind="stable")])


def enough_cells(cells: Cells, number: int) -> Cells:
    """At least ``number`` cells, all different: those with the most weight × variance are cut along the
    column in which they vary most.
    """
    weights, means, variances = cells.weights.copy(), cells.means.copy(), cells.variances.copy()
    while len(weights) < number:
        column = variances.argmax(axis=1)
        spread = variances[np.arange(len(weights)), column]
        cut = int(np.argmax(np.maximum(weights, _FEWEST) * spread))
        along = int(column[cut])
        step = np.zeros(means.shape[1])
        step[along] = _SPLIT * math.sqrt(max(spread[cut], _FEWEST))
        weights[cut] /= 2.0
        variances[cut, along] *= 1.0 - _SPLIT**2
        weights = np.append(weights, weights[cut])
        variances = np.vstack((variances, variances[cut]))
        means = np.vstack((means, means[cut] + step))
        means[cut] -= step
    return cells if len(weights) == len(cells) else Cells(weights, means, variances)


def number_of_clusters(cells: Cells, most: int, *, seed: int) -> int:
    """How many clusters the cells suggest, from 1 to ``most``: a public criterion on public values.

    The jump criterion of Sugar and James (2003). With W(k) the mean squared distance of records to their
    center, per column, it is the k with the largest W(k)^{−Y} − W(k−1)^{−Y}: for separated clusters W falls
    by much up to their number, and by little beyond. Their exponent Y is half of the number of columns; here
    it is half of the number of directions in which the records of clusters vary, at most 4, since cells know
    W to a few percent only.
    """
    most = min(most, len(cells))
    total = max(cells.total, _FEWEST)
    inside = np.maximum(cells.weights @ cells.variances / total, 0.0)
    directions = float(inside.sum() ** 2 / max(np.square(inside).sum(), 1e-300)) if inside.any() else 1.0
    power = min(max(directions, 1.0) / 2.0, 4.0)
    center = cells.weights @ cells.means / total
    overall = cells.inertia(center[None]) / total
    if overall <= 0.0:
        return 1
    runs = (cluster_cells(cells, number, seed=seed, starts=_FEW_STARTS) for number in range(1, most + 1))
    heights = [max(cells.inertia(centers) / (total * overall), 1e-6) ** -power for centers in runs]
    return 1 + int(np.argmax(np.diff([0.0, *heights])))


def sizes_and_spread(cells: Cells, centers: Floats) -> tuple[Floats, Floats]:
    """The weight of the cells nearest to each center, and their root mean squared distance from it."""
    nearest, square = nearest_centers(cells.means, centers)
    held: Floats = np.bincount(nearest, weights=cells.weights, minlength=len(centers)).astype(np.float64)
    squares = cells.weights * (square + cells.variances.sum(axis=1))
    far = np.bincount(nearest, weights=squares, minlength=len(centers))
    whole = far.sum() / max(held.sum(), _FEWEST)
    return held, np.sqrt(np.where(held > 0.0, far / np.maximum(held, _FEWEST), whole))


FULL, DIAGONAL, SPHERICAL = "full", "diag", "spherical"
COVARIANCE_TYPES: Final = (FULL, DIAGONAL, SPHERICAL)
_STARTS_OF_FITS: Final = 4
_MOST_STEPS: Final = 200
_STILL: Final = 1e-6
# The smallest variance of a component, over the mean variance of all records in a column.
_FLOOR: Final = 1e-4
_LIGHTEST: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Weights, means and covariances of normal components; public.

    ``covariances`` has the shape (n_components, dim, dim), whatever they were restricted to.

    Examples
    --------
    >>> mixture = Mixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> mixture.log_densities(np.array([[0.0]])).round(4)
    array([-0.9189])
    """

    weights: Floats
    means: Floats
    covariances: Floats

    def log_parts(self, points: Floats) -> Floats:
        """log(w_j·N(x; μ_j, Σ_j)), shape (n_points, n_components)."""
        from scipy.stats import Covariance, multivariate_normal

        found = np.tile(np.log(np.maximum(self.weights, 1e-300)), (len(points), 1))
        for j, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            root = Covariance.from_cholesky(np.linalg.cholesky(covariance))
            found[:, j] += multivariate_normal.logpdf(points, mean, root)
        return found

    def log_densities(self, points: Floats) -> Floats:
        """The logarithm of the density at points."""
        from scipy.special import logsumexp

        return np.asarray(logsumexp(self.log_parts(points), axis=1))

    def probabilities(self, points: Floats) -> Floats:
        """The probability of each component for each point, shape (n_points, n_components)."""
        from scipy.special import softmax

        return np.asarray(softmax(self.log_parts(points), axis=1))

    def in_units(self, factor: Floats, shift: Floats) -> Mixture:
        """The distribution of factor·x + shift, column by column."""
        scaled = self.covariances * factor[:, None] * factor
        return Mixture(self.weights, self.means * factor + shift, scaled)

    def parameters(self, kind: str) -> int:
        """How many numbers describe it, for covariances of that type."""
        number, dim = len(self.weights), int(self.means.shape[1])
        each = {FULL: dim * (dim + 1) // 2, DIAGONAL: dim, SPHERICAL: 1}[kind]
        return number * (dim + each) + number - 1


def fit_mixture(cells: Cells, number: int, *, kind: str, seed: int) -> tuple[Mixture, float]:
    """A mixture of ``number`` components, heaviest first, and the mean log-likelihood of a record under it.

    Expectation and maximisation on cells: a cell belongs to component j with a probability proportional to
    w_j·exp(E log N(x; μ_j, Σ_j)), over a record x with the mean and covariance of the cell; the likelihood is
    a lower bound of that of the records. It starts from k-means of the cells.

    >>> cells = Cells(np.ones(2), np.array([[0.0], [9.0]]), np.ones((2, 1)))
    >>> mixture, _ = fit_mixture(cells, 2, kind="full", seed=0)
    >>> sorted(mixture.means.ravel().round(6).tolist())
    [0.0, 9.0]
    """
    from scipy.special import logsumexp, softmax

    cells = enough_cells(cells, number)
    total = max(cells.total, 1e-300)
    share = np.maximum(cells.weights / total, 0.0)
    inside = cells.full_covariances()
    center = share @ cells.means
    overall = share @ (np.square(cells.means - center) + cells.variances)
    floor = _FLOOR * max(float(overall.mean()), 1e-12)
    nearest, _ = nearest_centers(cells.means, cluster_cells(cells, number, seed=seed, starts=_STARTS_OF_FITS))
    belongs = np.zeros((len(cells), number))
    belongs[np.arange(len(cells)), nearest] = 1.0
    mixture, last = _maximised(cells, inside, share, belongs, kind, floor), -math.inf
    for _ in range(_MOST_STEPS):
        parts = _expected_log_parts(mixture, cells.means, inside)
        value = float(share @ logsumexp(parts, axis=1))
        if value - last < _STILL * max(1.0, abs(value)):
            break
        last = value
        mixture = _maximised(cells, inside, share, softmax(parts, axis=1), kind, floor)
    order = np.argsort(-mixture.weights, kind="stable")
    return Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order]), last


def number_of_components(cells: Cells, most: int, *, kind: str, seed: int) -> int:
    """The number from 1 to ``most`` with the smallest Bayesian information criterion (Schwarz 1978).

    Cells are fewer than records, so the criterion takes at most half as many components as there are cells.
    Where the means of cells have noise, likelihoods count as those of the number of records whose sampling
    error would be as large.
    """
    records = max(cells.effective_total, 2.0)

    def criterion(number: int) -> float:
        mixture, value = fit_mixture(cells, number, kind=kind, seed=seed)
        return mixture.parameters(kind) * math.log(records) - 2.0 * records * value

    return min(range(1, max(1, min(most, len(cells) // 2)) + 1), key=criterion)


def _expected_log_parts(mixture: Mixture, means: Floats, inside: Floats) -> Floats:
    precisions = np.linalg.inv(mixture.covariances)
    return np.asarray(mixture.log_parts(means) - 0.5 * np.einsum("cij,kji->kc", precisions, inside))


def _maximised(
    cells: Cells, inside: Floats, share: Floats, belongs: Floats, kind: str, floor: float
) -> Mixture:
    weighted = share[:, None] * belongs
    held = np.maximum(weighted.sum(axis=0), _LIGHTEST)
    means = weighted.T @ cells.means / held[:, None]
    dim = cells.dim
    covariances = np.empty((len(held), dim, dim))
    for j, mean in enumerate(means):
        apart = cells.means - mean
        part = weighted[:, j] / held[j]
        scatter = np.tensordot(part, inside, 1) + (apart * part[:, None]).T @ apart
        covariances[j] = restricted(scatter, kind) + floor * np.eye(dim)
    return Mixture(held / held.sum(), means, covariances)


def restricted(covariance: Floats, kind: str) -> Floats:
    """A covariance of that type: as it is, its diagonal, or its mean variance in all columns."""
    if kind == FULL:
        return covariance
    variances = np.diagonal(covariance)
    if kind == SPHERICAL:
        variances = np.full(len(variances), variances.mean())
    return np.diag(variances)


Waves = NDArray[np.complex128]

_CANDIDATES: Final = 2048
_STARTS_OF_DESCENT: Final = 6
# Features that are fitted; more make it slower, and say little about a few numbers.
_MOST_FEATURES: Final = 1024
# The largest standard deviation of a component, in units of the longest side of the box.
_WIDEST: Final = 0.5
# The smallest, in units of 1/(2π·f) for the longest frequencies: finer spreads do not change a feature.
_NARROWEST: Final = 0.2
_STEPS_OF_ONE: Final = 40
_STEPS_OF_ALL: Final = 60
_LAST_STEPS: Final = 300


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The mean of e^{2πi·f·x} over the records at m public frequencies f, and its noise; public.

    Frequencies are per unit of the data, and places are relative to the center of the box.
    """

    frequencies: Floats
    waves: Waves

    def log_widths(self, side: float) -> tuple[float, float]:
        """Between what the logarithm of a component's standard deviation lies, in units of a side."""
        longest = float(np.quantile(np.linalg.norm(self.frequencies, axis=1), 0.9))
        least = _NARROWEST / (2.0 * np.pi * max(longest, 1e-300) * side)
        return float(np.log(min(max(least, 1e-6), _WIDEST / 2.0))), float(np.log(_WIDEST))

    @classmethod
    def of(cls, function: CoefficientFunction) -> Sketch:
        """The sketch of a release of Fourier features."""
        basis = function.basis
        assert isinstance(basis, FourierFeatures)
        number = min(basis.features, _MOST_FEATURES)
        table = np.asarray(function.table[:number], np.float64)
        unit = basis.groups / (AMPLITUDE * max(function.count, 1.0))
        waves: Waves = np.asarray(unit * (table[:, 0] + 1j * table[:, 1]), np.complex128)
        return cls(basis.frequencies[:number].astype(np.float64), waves)


def _packed(found: Cells, low: Floats, scale: Floats) -> Floats:
    """Components that vary equally in all columns as numbers for a descent: weights, means and logarithms of
    standard deviations, in units of the box.
    """
    widths = 0.5 * np.log(found.variances[:, 0] / scale.max() ** 2)
    return np.concatenate((found.weights, ((found.means - low) / scale).reshape(-1), widths))


def _unpacked(values: Floats, low: Floats, scale: Floats) -> Cells:
    dim = len(low)
    number = len(values) // (2 + dim)
    means = values[number : number + number * dim].reshape(number, dim)
    variances = np.exp(2.0 * values[number + number * dim :]) * scale.max() ** 2
    return Cells(values[:number], low + scale * means, np.tile(variances[:, None], (1, dim)))


def sketched_cells(
    function: CoefficientFunction, number: int, low: Floats, high: Floats, *, seed: int
) -> Cells:
    """Normal components whose Fourier features are nearest to the released ones, as cells.

    Orthogonal matching pursuit with replacement: a component is added where the residual is largest, the
    lightest goes where there are too many, and all are moved together by descent; as often as twice the
    number of components. A component varies equally in all columns.

    Parameters
    ----------
    function : CoefficientFunction
        Of Fourier features.
    number : int
        How many components.
    low, high : arrays of shape (dim,)
        The box, relative to the origin of the features.

    Notes
    -----
    Keriven, Bourrier, Gribonval and Pérez, *Sketching for large-scale learning of mixture models*, 2018;
    Keriven, Tremblay, Traonmilin and Gribonval, *Compressive k-means*, 2017; Chatalic et al., *Compressive
    learning with privacy guarantees*, 2022. Components of k-means are points there; with a spread of their
    own their places do not depend on how wide the records lie around them.
    """
    rng = np.random.default_rng(seed)
    sketch = Sketch.of(function)
    scale = high - low
    dim = len(low)
    found = Cells(np.empty(0), np.empty((0, dim)), np.empty((0, dim)))
    for step in range(2 * number):
        residual = sketch.waves - found.weights @ _atoms(found, sketch.frequencies)
        mean, variance = _added(sketch, residual, low, high, rng)
        found = Cells(
            np.append(found.weights, 1.0 / (step + 1)),
            np.vstack((found.means, mean)),
            np.vstack((found.variances, np.full(dim, variance))),
        )
        if len(found) > number:
            kept = np.argsort(-_refitted(found, sketch), kind="stable")[:number]
            found = found.chosen(kept)
        last = step == 2 * number - 1
        found = _descended(sketch, found, low, scale, _LAST_STEPS if last else _STEPS_OF_ALL)
    found = found.chosen(np.argsort(-found.weights, kind="stable"))
    weights = max(function.count, 1.0) * found.weights / max(found.total, 1e-12)
    return replace(found, weights=weights)


def _atoms(found: Cells, frequencies: Floats) -> Waves:
    """E e^{2πi·f·x} of each component, which varies equally in all columns; shape (components, m)."""
    phases = 2j * np.pi * (found.means @ frequencies.T)
    lengths = np.square(frequencies).sum(axis=1)
    return np.asarray(np.exp(phases - 2.0 * np.pi**2 * (found.variances[:, :1] * lengths)))


def _refitted(found: Cells, sketch: Sketch) -> Floats:
    """Weights of all components together, not negative, by least squares."""
    from scipy.optimize import nnls

    atoms = _atoms(found, sketch.frequencies)
    waves = np.concatenate((sketch.waves.real, sketch.waves.imag))
    weights, _ = nnls(np.hstack((atoms.real, atoms.imag)).T, waves)
    return np.asarray(weights, np.float64)


def _added(
    sketch: Sketch, residual: Waves, low: Floats, high: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """The mean and the variance of the component along which the residual is largest: the best of several
    climbs.
    """
    dim, scale = len(low), high - low
    candidates = rng.uniform(low, high, (_CANDIDATES, dim))
    blocks = (np.exp(-2j * np.pi * (some @ sketch.frequencies.T)) for some in np.array_split(candidates, 8))
    heights = np.concatenate([(waves @ residual).real for waves in blocks])
    starts = candidates[np.argsort(-heights)[:_STARTS_OF_DESCENT]]
    widths = sketch.log_widths(float(scale.max()))
    bounds = [(0.0, 1.0)] * dim + [widths]
    width = np.clip(np.log(0.1), *widths)
    overlap = partial(_overlap, sketch=sketch, residual=residual, low=low, scale=scale)
    climbs = [
        _minimised(overlap, np.append((start - low) / scale, width), bounds, _STEPS_OF_ONE)
        for start in starts
    ]
    best = min(climbs, key=lambda climb: climb[1])[0]
    return low + scale * best[:-1], float(np.exp(2.0 * best[-1]) * scale.max() ** 2)


def _minimised(
    f: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Box, steps: int
) -> tuple[Floats, float]:
    """Where a function with a gradient is smallest near a start, after some steps, and its value there."""
    from scipy.optimize import minimize

    run = minimize(f, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    return run.x, float(run.fun)


def _overlap(
    packed: Floats, *, sketch: Sketch, residual: Waves, low: Floats, scale: Floats
) -> tuple[float, Floats]:
    """−⟨residual, atom⟩/‖atom‖ of one component of equal variances, and its gradient."""
    frequencies = sketch.frequencies
    mean, variance = low + scale * packed[:-1], np.exp(2.0 * packed[-1]) * scale.max() ** 2
    lengths = np.square(frequencies).sum(axis=1)
    damped = np.exp(-2.0 * np.pi**2 * variance * lengths)
    wave = np.exp(2j * np.pi * (frequencies @ mean)) * damped
    norm = float(np.linalg.norm(damped)) + 1e-12
    product = np.conj(residual) * wave
    overlap = float(product.real.sum())
    by_mean = (2.0 * np.pi * frequencies * -product.imag[:, None]).sum(axis=0) / norm * scale
    slope = -2.0 * np.pi**2 * lengths
    by_variance = float((product.real * slope).sum()) / norm
    by_variance -= overlap * float((np.square(damped) * slope).sum()) / norm**3
    gradient = np.append(by_mean, by_variance * 2.0 * variance)
    return -overlap / norm, -gradient


def _descended(sketch: Sketch, found: Cells, low: Floats, scale: Floats, steps: int) -> Cells:
    """All components moved together to where the squared residual is smallest."""
    number, dim = found.means.shape
    widths = sketch.log_widths(float(scale.max()))
    bounds = [(0.0, 2.0)] * number + [(0.0, 1.0)] * (number * dim) + [widths] * number
    distance = partial(_distance, sketch=sketch, low=low, scale=scale)
    return _unpacked(_minimised(distance, _packed(found, low, scale), bounds, steps)[0], low, scale)


def _distance(packed: Floats, *, sketch: Sketch, low: Floats, scale: Floats) -> tuple[float, Floats]:
    """The mean squared residual of the features, and its gradient."""
    found = _unpacked(packed, low, scale)
    frequencies, number = sketch.frequencies, len(sketch.waves)
    atoms = _atoms(found, frequencies)
    residual = sketch.waves - found.weights @ atoms
    product = np.conj(residual) * atoms
    by_weight = -2.0 * product.real.sum(axis=1)
    by_mean = 4.0 * np.pi * found.weights[:, None] * (product.imag @ frequencies) * scale
    by_variance = 4.0 * np.pi**2 * found.weights * (product.real @ np.square(frequencies).sum(axis=1))
    by_log = by_variance * 2.0 * found.variances[:, 0]
    gradient = np.concatenate((by_weight, by_mean.reshape(-1), by_log)) / number
    return float(np.square(np.abs(residual)).sum()) / number, gradient
