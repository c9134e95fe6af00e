"""The kernels that are known by their names, and the slabs that floored projections make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.errors import Argument, UsageError, shown
from hushsum.records import Bounds, as_codes, as_sets, clipped_to_ball, distances

from ._base import (
    BallSignsKernel,
    Batch,
    CategoricalKernel,
    ColumnProfile,
    GaussianProfileKernel,
    HashableKernel,
    Hasher,
    InnerProductKernel,
    Kernel,
    Profile,
    ProfileKernel,
    ProjectionKernel,
    SpectralKernel,
    dense_batch,
    fitted_profiles,
    register,
)
from ._hashers import Projections, check_projection
from ._parameter_checks import check_parameters, positive_integer
from ._public_randomness import (
    ONE_TURN,
    cauchy_directions,
    cauchy_quantiles,
    chi_squares,
    in_turns,
    multiply_shift,
    normal_directions,
    normal_lengths,
    normal_quantiles,
    row_words,
)


@register
@dataclass(frozen=True, slots=True)
class GaussianKernel(SpectralKernel, GaussianProfileKernel):
    """``exp(−‖x − q‖²/(2·bandwidth²))``, which has a finite integral and so gives probability densities.

    It is not the collision probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The standard deviation, in the units of the data.
    power : int, default 1
        The similarity to that power, which narrows the bandwidth by √power.

    Examples
    --------
    >>> GaussianKernel(dim=1, bandwidth=2.0).similarity([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    name: ClassVar[str] = "gaussian"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1

    @property
    def width(self) -> float:
        """The standard deviation: bandwidth/√power."""
        return self.bandwidth / math.sqrt(self.power)

    @property
    def smooth(self) -> bool:
        """Yes: it has all derivatives."""
        return True

    def integral(self) -> float:
        """(2π·width²)^(dim/2)."""
        return float((2.0 * math.pi * self.bandwidth**2 / self.power) ** (self.dim / 2.0))

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """One: it is a product over columns."""
        return (Profile.of_columns(self.dim, scale=self.width, gaussian=True),)

    def column_profile(self) -> ColumnProfile:
        """A Gaussian in each column."""
        rate = 0.5 * self.power / self.bandwidth**2
        return lambda difference: np.exp(-rate * difference * difference)

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Normal numbers of standard deviation √power/bandwidth, in turns."""
        directions = normal_directions("gaussian/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        return in_turns(directions, math.sqrt(self.power) / self.bandwidth)

    @property
    def coordinates(self) -> int:
        """One per column."""
        return self.dim

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """Normal quantiles."""
        return in_turns(normal_quantiles(points), math.sqrt(self.power) / self.bandwidth)

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> NDArray[np.float64] | None:
        """Lengths of normal vectors of standard deviation √power/bandwidth, in turns."""
        lengths = normal_lengths("gaussian/lengths", seed, rows, size)
        return lengths * (math.sqrt(self.power) / self.bandwidth / ONE_TURN)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        squared = distances(records, queries, "sqeuclidean")
        return np.asarray(np.exp(-0.5 * self.power * squared / self.bandwidth**2))


@register
@dataclass(frozen=True, slots=True)
class LaplacianKernel(SpectralKernel, ProfileKernel):
    """``exp(−‖x − q‖₁/bandwidth)``: sharper than the Gaussian at its peak, with heavier tails.

    It is not the collision probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The distance, as a sum of absolute differences, at which the similarity has fallen to 1/e.
    power : int, default 1
        The similarity to that power, which divides the bandwidth.

    Examples
    --------
    >>> LaplacianKernel(dim=2, bandwidth=2.0).similarity([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "laplacian"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = False

    dim: int
    bandwidth: float
    power: int = 1

    @property
    def width(self) -> float:
        """bandwidth/power: the power divides the distance at which the kernel has fallen to 1/e."""
        return self.bandwidth / self.power

    def integral(self) -> float:
        """(2·width)^dim."""
        return float((2.0 * self.bandwidth / self.power) ** self.dim)

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """One: it is a product over columns."""
        return (Profile.of_columns(self.dim, scale=self.width, gaussian=False),)

    def column_profile(self) -> ColumnProfile:
        """An exponential in each column."""
        slope = self.power / self.bandwidth
        return lambda difference: np.exp(-slope * np.abs(difference))

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Independent Cauchy numbers: the kernel is a product over columns. They are never orthogonal."""
        directions = cauchy_directions("laplacian/frequencies", seed, rows, self.dim)
        return in_turns(directions, self.power / self.bandwidth)

    @property
    def coordinates(self) -> int:
        """One per column."""
        return self.dim

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """Cauchy quantiles."""
        return in_turns(cauchy_quantiles(points), self.power / self.bandwidth)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries, "cityblock")
        return np.asarray(np.exp(-self.power * distance / self.bandwidth))


SMOOTHNESS = (0.5, 1.5, 2.5)


@register
@dataclass(frozen=True, slots=True)
class MaternKernel(SpectralKernel, ProfileKernel):
    """The Matérn kernel of smoothness ν, in r = ‖x − q‖/bandwidth:

    ``exp(−r)`` for ν = 1/2, ``(1 + √3·r)·exp(−√3·r)`` for 3/2 and ``(1 + √5·r + 5r²/3)·exp(−√5·r)`` for 5/2.
    Paths of a Gaussian process with this covariance have ⌈ν⌉ − 1 derivatives. It is not the collision
    probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The length scale, in the units of the data.
    smoothness : {0.5, 1.5, 2.5}
        ν.

    Examples
    --------
    >>> MaternKernel(dim=1, bandwidth=2.0).similarity([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.4834]])

    Notes
    -----
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.16. The spectral
    measure is a multivariate Student distribution with 2ν degrees of freedom: a normal vector over the root
    of an independent χ² number divided by 2ν.
    """

    name: ClassVar[str] = "matern"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    smoothness: float = 1.5

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.smoothness not in SMOOTHNESS:
            raise UsageError("smoothness", "must be 0.5, 1.5 or 2.5", got=shown(self.smoothness))
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @property
    def width(self) -> float:
        """The bandwidth: there is no power."""
        return self.bandwidth

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Gaussians: the kernel is one with a random variance."""
        return fitted_profiles(self, spacings=spacings, diameter=math.hypot(*sides), gaussian=True)

    def integral(self) -> float:
        """The integral over all space: (2π)^d times the spectral density at zero."""
        half, nu = self.dim / 2.0, self.smoothness
        log = half * math.log(2.0 * math.pi / nu) + math.lgamma(nu + half) - math.lgamma(nu)
        return math.exp(log + self.dim * math.log(self.bandwidth))

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Student vectors, in turns. Their directions may be orthogonal: lengths are drawn apart."""
        directions = normal_directions("matern/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        directions /= self._spreads(rows, seed)[:, np.newaxis]
        return in_turns(directions, 1.0 / self.bandwidth)

    @property
    def coordinates(self) -> int:
        """One per column, after those of the chi-squared number: one per two degrees of freedom or less."""
        return self.dim + (self._degrees + 1) // 2

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """Normal quantiles over the root of a chi-squared number: the square of a normal quantile, and −2
        times the logarithm of a uniform number for every two more degrees of freedom.
        """
        further = self.coordinates - self.dim
        squares = np.square(normal_quantiles(points[:, 0])) + chi_squares(points[:, 1:further])
        directions = normal_quantiles(points[:, further:]) / np.sqrt(squares / self._degrees)[:, np.newaxis]
        return in_turns(directions, 1.0 / self.bandwidth)

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> NDArray[np.float64] | None:
        """Lengths of Student vectors, in turns."""
        lengths = normal_lengths("matern/lengths", seed, rows, size) / self._spreads(rows, seed)
        return lengths * (1.0 / self.bandwidth / ONE_TURN)

    def _spreads(self, rows: int, seed: int) -> Floats:
        """Roots of chi-squared numbers over their degrees of freedom, which divide normal vectors."""
        spreads = normal_directions("matern/spreads", seed, rows, self._degrees, orthogonal=False)
        squares = np.zeros(rows)
        for column in range(self._degrees):
            squares += spreads[:, column] * spreads[:, column]
        return np.sqrt(squares / self._degrees)

    @property
    def _degrees(self) -> int:
        return round(2.0 * self.smoothness)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries)
        r = math.sqrt(2.0 * self.smoothness) / self.bandwidth * distance
        factor = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r * r / 3.0}[self.smoothness]
        return np.asarray(factor * np.exp(-r))


@register
@dataclass(frozen=True, slots=True)
class EuclideanKernel(ProjectionKernel, ProfileKernel):
    """Similarity of points by Euclidean distance; falls to 0.37 at one bandwidth, to 0.04 at ten.

    It falls off as 1/r, so it has no finite integral: it gives kernel sums, not a probability density.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The scale of the hash, w, in the units of the data.
    power : int, default 1
        Hashes concatenated in a row; the similarity is taken to that power, and falls off faster.
    projection : {"dense", "structured"}
        Structured projections are faster from about 512 columns on.

    Notes
    -----
    The hash is ``floor((a·x + b)/w)``, a standard normal, b uniform in [0, w). Two points at distance r
    collide with probability ``erf(t/√2) − √(2/π)·(1 − exp(−t²/2))/t``, t = w/r (Datar, Immorlica, Indyk,
    Mirrokni 2004).

    Examples
    --------
    >>> EuclideanKernel(dim=1, bandwidth=5.0).similarity([[0.0]], [[0.0], [5.0], [50.0]]).round(3)
    array([[1.   , 0.369, 0.04 ]])
    """

    name: ClassVar[str] = "euclidean"
    positive_definite: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1
    projection: str = "dense"

    def __post_init__(self) -> None:
        check_parameters(self)
        check_projection(self.projection, self.dim, self.power)

    def projections(self) -> Projections:
        """Normal projections, scaled by the bandwidth."""
        structured = self.projection == "structured"
        return Projections(self.name, self.dim, self.power, 1.0 / self.bandwidth, structured=structured)

    @property
    def width(self) -> float:
        """bandwidth/power: the slope at the peak is as many times steeper."""
        return self.bandwidth / self.power

    def integral(self) -> float:
        """Infinity for a power of at most ``dim``, and not known in closed form beyond."""
        return math.inf

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Gaussians: the kernel is a mixture of them."""
        return fitted_profiles(self, spacings=spacings, diameter=math.hypot(*sides), gaussian=True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries)
        return euclidean_collision(distance / self.bandwidth) ** self.power


def euclidean_collision(ratio: Floats) -> Floats:
    """Collision probability at distance / bandwidth = ``ratio``."""
    from scipy.special import erf

    with np.errstate(divide="ignore", invalid="ignore"):
        t = 1.0 / ratio
        far = erf(t / np.sqrt(2.0)) + np.sqrt(2.0 / np.pi) * np.expm1(-0.5 * t * t) / t
    return np.asarray(np.where(ratio > 1e-8, far, 1.0))


@register
@dataclass(frozen=True, slots=True)
class ManhattanKernel(ProjectionKernel, ProfileKernel):
    """Similarity of points by the sum of absolute differences; for columns that differ independently.

    Like the Euclidean kernel it falls off as 1/r and is not a probability density.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The scale of the hash, w, in the units of the data.
    power : int, default 1
        Hashes concatenated in a row; the similarity is taken to that power.

    Notes
    -----
    The hash is ``floor((a·x + b)/w)``, a standard Cauchy (a ratio of normals), b uniform in [0, w). Two
    points at distance r collide with probability ``2·atan(t)/π − ln(1 + t²)/(π·t)``, t = w/r (Datar et
    al. 2004).

    Examples
    --------
    >>> ManhattanKernel(dim=2, bandwidth=2.0).similarity([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(3)
    array([[1.   , 0.279]])
    """

    name: ClassVar[str] = "manhattan"
    positive_definite: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1

    def projections(self) -> Projections:
        """Cauchy projections, scaled by the bandwidth."""
        return Projections(self.name, self.dim, self.power, 1.0 / self.bandwidth)

    @property
    def width(self) -> float:
        """bandwidth/power: the slope at the peak is as many times steeper."""
        return self.bandwidth / self.power

    def integral(self) -> float:
        """Infinity for a power of at most ``dim``, and not known in closed form beyond."""
        return math.inf

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Exponentials: the kernel is a mixture of them."""
        return fitted_profiles(self, spacings=spacings, diameter=sum(sides), gaussian=False)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries, "cityblock")
        return manhattan_collision(distance / self.bandwidth) ** self.power


def manhattan_collision(ratio: Floats) -> Floats:
    """Collision probability at distance / bandwidth = ``ratio``."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = 1.0 / ratio
        far = (2.0 * np.arctan(t) - np.log1p(t * t) / t) / np.pi
    return np.asarray(np.where(ratio > 1e-12, far, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class HashPartitions:
    """Row r puts x into the cell ``floor(weights[r]·x + offsets[r])``, one number for each of ``power``
    hashes.

    ``weights`` has shape (rows, power, dim), ``offsets`` (rows, power). The hash itself works in single
    precision, so a point within rounding of a face may be counted on its other side.
    """

    weights: Floats
    offsets: Floats

    @classmethod
    def of(cls, kernel: Kernel, *, rows: int, seed: int) -> HashPartitions:
        """The slabs of a kernel's first hash rows.

        Raises
        ------
        UsageError
            if the kernel's hashes are not floors of dense projections.
        """
        projections = kernel.projections() if isinstance(kernel, ProjectionKernel) else None
        if projections is None or projections.signs or projections.structured:
            rule = "must have hash rows that are slabs of dense projections"
            remedy = "use the euclidean or manhattan kernel"
            raise UsageError("kernel", rule, got=f"the {kernel.name} kernel", remedy=remedy)
        weights, offsets = projections.numbers(seed=seed, rows=rows)
        return cls(weights.astype(np.float64), offsets.astype(np.float64))

    def positions(self, points: Floats) -> Floats:
        """Where points lie between the faces: shape (n, rows, power); the floor is the slab."""
        return np.tensordot(points, self.weights, axes=(1, 2)) + self.offsets


_LARGEST_UNFOLDED = 30


@register
@dataclass(frozen=True, slots=True)
class AngularKernel(ProjectionKernel):
    """Similarity of directions: (1 − angle/π) to the power of the number of bits; lengths do not matter.

    The zero vector has no direction: every bit agrees with it half of the time, and with itself always.
    Declared bounds are not taken, since moving the origin would change every angle.

    Parameters
    ----------
    dim : int
        Number of columns.
    bits : int, default 1
        Sign bits of one hash; the similarity is ``(1 − angle/π)**bits``.
    power : int, default 1
        Multiplies the bits.
    projection : {"dense", "structured"}
        Structured projections are faster from about 512 columns on.

    Notes
    -----
    The hash is the signs of ``bits·power`` normal projections (Charikar 2002). When 2^(bits·power) values
    fit the width of a row, each has its own cell and nothing is folded.

    Examples
    --------
    >>> AngularKernel(dim=2, bits=2).similarity([[1.0, 0.0]], [[3.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).round(3)
    array([[1.  , 0.25, 0.  ]])
    """

    name: ClassVar[str] = "angular"
    positive_definite: ClassVar[bool] = True

    dim: int
    bits: int = 1
    power: int = 1
    projection: str = "dense"

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "bits", positive_integer("bits", self.bits, at_most=1024))
        check_projection(self.projection, self.dim, self.bits * self.power)

    def distinct_hashes(self) -> int | None:
        """2^bits, while that is a number of cells one could have."""
        total = self.bits * self.power
        return 1 << total if total <= _LARGEST_UNFOLDED else None

    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, bits·power, dim); public.

        Bit k of a record's cell is set where its product with normal k is not negative, while every hash
        value has a cell of its own.

        Raises
        ------
        UsageError
            for structured projections, which have none that could be listed.
        """
        if self.projection != "dense":
            rule = "must be 'dense' to list its normals"
            remedy = ("give ", Argument("projection", "dense"))
            raise UsageError("projection", rule, got="'structured'", remedy=remedy)
        return self.projections().numbers(seed=seed, rows=rows)[0]

    def projections(self) -> Projections:
        """Normal projections, of which the signs are kept."""
        structured = self.projection == "structured"
        return Projections(self.name, self.dim, self.bits * self.power, signs=True, structured=structured)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, x_zero = _directions(records)
        q, q_zero = _directions(queries)
        agree: Floats = 1.0 - np.arccos(np.clip(x @ q.T, -1.0, 1.0)) / np.pi
        one_zero = x_zero[:, None] != q_zero[None]
        both_zero = x_zero[:, None] & q_zero[None]
        agree = np.where(one_zero, 0.5, np.where(both_zero, 1.0, agree))
        return np.asarray(agree ** (self.bits * self.power))


def _directions(batch: Batch) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    rows = batch.arrays[0].astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    zero = lengths == 0.0
    return rows / np.where(zero, 1.0, lengths)[:, None], zero


@register
@dataclass(frozen=True, slots=True)
class AsymmetricAngularKernel(BallSignsKernel):
    """``(1 − arccos(x·q/(radius·query_radius))/π)**bits``: increasing in the inner product of x and q.

    For losses of linear models. With a record z = (x, y) and the query (θ, −1) the inner product is a
    residual, and f(q) + f(−q) is a loss that is even in it; with a record and its class's sketch it is a
    margin. It is not a similarity: a record inside of the ball does not reach 1 with itself. Records longer
    than ``radius`` are shortened to it, and queries longer than ``query_radius``. Declared bounds are not
    taken.

    Parameters
    ----------
    dim : int
        Number of columns.
    bits : int, default 1
        Sign bits of one hash.
    power : int, default 1
        Multiplies the bits.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.
    query_radius : float, optional
        The length that no query exceeds. Without it ‖q‖ stands in its place: lengths of queries do not
        matter then, and the loss of a linear model is a function of residual/‖(θ, −1)‖, which is not convex
        and whose minimum is that of total least squares.

    Privacy
    -------
    A record is clipped, and gets one coordinate that makes it a unit vector, by operations on that record
    alone, in a fixed order, and another that is 0; then it adds 1 to one cell of each row, as for any kernel.
    So a record that appears, disappears, is replaced, or appears twice changes as many cells by as much as
    with any hash functions. What is done to queries, which are public, makes no difference to Δ.

    Notes
    -----
    A record becomes u = (x, √(radius² − ‖x‖²), 0)/radius, a query v = (q, 0, √(query_radius² −
    ‖q‖²))/query_radius; without a query radius the last coordinate is left out. The hash of both is the
    signs of normal projections. u and v collide with the probability of their angle, whose cosine s is
    x·q/(radius·query_radius) (Shrivastava and Li 2014; Neyshabur and Srebro 2015).

    With p = bits·power ≥ 2 the loss f(q) + f(−q) is convex in q while ‖q‖ ≤ query_radius: a record's part is
    g(s) + g(−s) with g(s) = (arccos(s)/π)^p, and s = cos t is linear in q. g''(s) is p·t^(p−2)·(p − 1 −
    t·cot t)/(πᵖ·sin² t), which is not negative since t·cot t ≤ 1.

    Examples
    --------
    >>> kernel = AsymmetricAngularKernel(dim=2)
    >>> kernel.similarity([[0.5, 0.0]], [[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]).round(3)
    array([[0.667, 0.5  , 0.333]])
    >>> padded = AsymmetricAngularKernel(dim=2, query_radius=2.0)
    >>> padded.similarity([[1.0, 0.0]], [[1.0, 0.0], [2.0, 0.0]]).round(3)
    array([[0.667, 1.   ]])
    """

    name: ClassVar[str] = "asymmetric-angular"
    takes_bounds: ClassVar[bool] = False

    dim: int
    bits: int = 1
    power: int = 1
    radius: float = 1.0
    query_radius: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "bits", self._on_sphere().bits)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON values; a query radius only where one is given."""
        found = super(AsymmetricAngularKernel, self).parameters()
        return {name: value for name, value in found.items() if value is not None}

    def _on_sphere(self) -> AngularKernel:
        """The kernel of the vectors that are hashed."""
        raised = self.dim + (1 if self.query_radius is None else 2)
        return AngularKernel(dim=raised, bits=self.bits, power=self.power)

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        rows = dense_batch(data, self.dim, None, clip=clip, columns=names).arrays[0].astype(np.float64)
        limit = self.radius if clip else self.query_radius
        if limit is not None:
            rows = on_sphere(clipped_to_ball(rows, limit) / limit)
        # Records and queries are raised by coordinates of their own, in which the other side is 0.
        zero = np.zeros(len(rows))
        if not clip:
            rows = np.column_stack((rows[:, : self.dim], zero, rows[:, self.dim :]))
        elif self.query_radius is not None:
            rows = np.column_stack((rows, zero))
        return Batch((np.ascontiguousarray(rows, np.float32),), len(rows))

    def distinct_hashes(self) -> int | None:
        """2^bits, while that is a number of cells one could have."""
        return self._on_sphere().distinct_hashes()

    def signs(self) -> int:
        """bits·power."""
        return self.bits * self.power

    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, bits·power, dim + 1 or dim + 2); public."""
        return self._on_sphere().directions(rows=rows, seed=seed)

    def projections(self) -> Projections:
        """The projections of the angular kernel of the raised vectors."""
        return self._on_sphere().projections()

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return self._on_sphere().prepared_similarity(records, queries)


def on_sphere(records: Floats) -> Floats:
    """Records of the unit ball with the coordinate that makes them unit vectors.

    Squares are summed column by column: a record's bits depend on that record alone.

    >>> on_sphere(np.array([[0.6, 0.0]]))
    array([[0.6, 0. , 0.8]])
    """
    square = np.zeros(len(records))
    for column in range(records.shape[1]):
        square += records[:, column] * records[:, column]
    return np.column_stack((records, np.sqrt(np.maximum(1.0 - square, 0.0))))


def _products(records: Batch, queries: Batch, radius: float) -> Floats:
    """x·q/radius², with records clipped to the radius."""
    clipped = clipped_to_ball(records.arrays[0].astype(np.float64), radius)
    return np.asarray(clipped @ queries.arrays[0].astype(np.float64).T / radius**2)


@register
@dataclass(frozen=True, slots=True)
class DotProductKernel(InnerProductKernel):
    """``x·q/radius²``: its mean at q is the inner product of q and the mean of the records.

    For vectors of a text or image model, which have length 1 or are scaled to it. Records longer than
    ``radius`` are shortened to it; queries are taken as they are. Values may be negative, and a large value
    needs many records in about the direction of q, not near to it. Declared bounds are not taken: moving the
    origin would change every product.

    Parameters
    ----------
    dim : int
        Number of columns.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.

    Examples
    --------
    >>> DotProductKernel(dim=2).similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]])
    array([[ 1. ,  0. , -0.5]])
    """

    name: ClassVar[str] = "dot-product"
    takes_bounds: ClassVar[bool] = False
    positive_definite: ClassVar[bool] = True
    signed: ClassVar[bool] = True

    dim: int
    radius: float = 1.0

    def inner_degree(self) -> int:
        """1."""
        return 1

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return _products(records, queries, self.radius)


@register
@dataclass(frozen=True, slots=True)
class PolynomialKernel(InnerProductKernel):
    """``(x·q/radius²)**2``: large where many records lie along the direction of q, on either side.

    Its sums hold the second moments of the records, d·(d + 1)/2 numbers: principal directions and linear
    discriminants are computed from them. Records longer than ``radius`` are shortened to it. Up to 4096
    columns.

    Parameters
    ----------
    dim : int
        Number of columns.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.
    degree : int, default 2
        The power. Only 2: the first is `DotProductKernel`, and the third has d³/6 sums.

    Examples
    --------
    >>> PolynomialKernel(dim=2).similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]])
    array([[1.  , 0.  , 0.25]])
    """

    name: ClassVar[str] = "polynomial"
    takes_bounds: ClassVar[bool] = False
    positive_definite: ClassVar[bool] = True

    dim: int
    radius: float = 1.0
    degree: int = 2

    def __post_init__(self) -> None:
        check_parameters(self)
        if type(self.degree) is not int or self.degree != 2:
            remedy = "use the dot-product kernel for degree 1"
            raise UsageError("degree", "must be 2", got=shown(self.degree), remedy=remedy)

    def inner_degree(self) -> int:
        """2."""
        return self.degree

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return np.square(_products(records, queries, self.radius))


@register
@dataclass(frozen=True, slots=True)
class JaccardKernel(HashableKernel):
    """The size of the intersection of two sets over the size of their union; the empty set is similar to
    itself only.

    Records are sets of integers: rows of a sparse matrix (the positions of its non-zeros), lists of
    integers, or Arrow lists. Repeated elements count once.

    Parameters
    ----------
    power : int, default 1
        MinHashes concatenated in a row; the similarity is taken to that power.

    Notes
    -----
    The hash is the smallest image of the elements under a random function (Broder 1997): ``a·g(x) + b mod
    2³²`` with a odd and g a fixed mixing of the element with the seed. Linear functions alone are not
    min-wise independent; after mixing, the remaining bias is below what a million rows can see, which the
    tests measure.

    Examples
    --------
    >>> JaccardKernel().similarity([[1, 2, 3], []], [[2, 3, 4], []])
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    name: ClassVar[str] = "jaccard"
    positive_definite: ClassVar[bool] = True
    dim: ClassVar[None] = None

    power: int = 1

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        """A list of sets of 64-bit integers."""
        sets = as_sets(data)
        return Batch((sets.values, sets.indptr), len(sets))

    def numbers_per_row(self) -> int:
        """One mixer for each of ``power`` MinHashes."""
        return self.power

    def typical_row_variance(self) -> float:
        """Sets resemble few others: about 5e-7 on Slashdot's graph, 1e-4 on ego-Facebook's."""
        return 1e-5

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The MinHash functions."""
        words = row_words("jaccard/mixers", seed, rows, self.power)
        mixers = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        shifts = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        salt = int(row_words("jaccard/salt", seed, 1, 1)[0, 0])
        multipliers, addends = multiply_shift(self.name, seed, rows, self.power + 1)
        return _native.MinHasher(mixers, shifts, salt, multipliers, addends, width, True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, q = _membership(records, queries)
        shared = np.asarray((x @ q.T).todense(), dtype=np.float64)
        union = x.sum(axis=1)[:, None] + q.sum(axis=1)[None] - shared
        both_empty = union == 0
        result: Floats = np.where(both_empty, 1.0, shared / np.where(both_empty, 1.0, union)) ** self.power
        return result


def _membership(records: Batch, queries: Batch) -> tuple[Any, Any]:
    """Both lists as 0/1 sparse matrices over the elements that occur."""
    from scipy.sparse import csr_array

    elements, codes = np.unique(np.concatenate((records.arrays[0], queries.arrays[0])), return_inverse=True)
    split = len(records.arrays[0])
    matrices = []
    for batch, indices in ((records, codes[:split]), (queries, codes[split:])):
        # sum_duplicates works in place, and the next block of records meets the same queries: a copy.
        starts = batch.arrays[1].copy()
        matrix = csr_array(
            (np.ones(len(indices)), indices, starts), shape=(len(batch), max(1, len(elements)))
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        matrices.append(matrix)
    return matrices[0], matrices[1]


@register
@dataclass(frozen=True, slots=True)
class HammingKernel(HashableKernel, CategoricalKernel):
    """The share of columns in which two records agree; for bits and integer codes of categories.

    Every column weighs the same and codes have no order. Declared bounds are not taken.

    Parameters
    ----------
    dim : int
        Number of columns.
    power : int, default 1
        Columns sampled by one hash; the similarity is taken to that power.

    Notes
    -----
    The hash is the codes at ``power`` columns drawn with replacement (Indyk, Motwani 1998).

    Examples
    --------
    >>> HammingKernel(dim=4).similarity([[1, 0, 1, 7]], [[1, 0, 0, 7], [0, 1, 0, 0]])
    array([[0.75, 0.  ]])
    """

    name: ClassVar[str] = "hamming"
    positive_definite: ClassVar[bool] = True

    dim: int
    power: int = 1

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        """Rows of ``dim`` 32-bit codes."""
        codes = as_codes(data, dim=self.dim, columns=names)
        return Batch((codes,), len(codes))

    def agreement_power(self) -> int:
        """``power``."""
        return self.power

    def numbers_per_row(self) -> int:
        """One column for each of ``power`` samples."""
        return self.power

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The column-sampling hash functions."""
        words = row_words("hamming/columns", seed, rows, self.power)
        # The high half of word × dim: uniform up to 2⁻³² · dim, without the bias of a remainder.
        columns = ((words >> np.uint64(32)) * np.uint64(self.dim)) >> np.uint64(32)
        multipliers, addends = multiply_shift(self.name, seed, rows, self.power)
        return _native.CodeHasher(columns.astype(np.int32), multipliers, addends, width, True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, q = records.arrays[0], queries.arrays[0]
        agree = np.zeros((len(x), len(q)))
        for column in range(self.dim):
            agree += x[:, column, None] == q[None, :, column]
        return np.asarray((agree / self.dim) ** self.power)
