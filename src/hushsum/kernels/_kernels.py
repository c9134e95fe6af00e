"""What a kernel is, the roles that it can play, and the kernels that are registered by name.

A kernel is a public similarity. What can be done with it depends on its roles: hash rows count a
`HashableKernel`, random features a `SpectralKernel`, a grid reads a `ProfileKernel`. A method takes every
kernel that has the role it needs, so a new kernel works wherever its roles allow. A parameter that no other
kernel has is declared in `hushsum.planning.KernelSpec` for the surfaces.

The roles come first, then checks of parameters and what they are in words, then the kernels that are known by
their names, and the slabs that floored projections make.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats, is_number
from hushsum.errors import Argument, FileRefused, Parameter, UsageError, shown
from hushsum.files import canonical_json
from hushsum.records import Batch, Bounds, as_codes, as_sets, clipped_to_ball, dense_batch, distances, part_of

from ._public_randomness import (
    ONE_TURN,
    Hasher,
    Projections,
    cauchy_directions,
    cauchy_quantiles,
    check_projection,
    chi_squares,
    in_turns,
    multiply_shift,
    normal_directions,
    normal_lengths,
    normal_quantiles,
    row_words,
)

__all__ = [
    "COLUMNS", "GAUSSIAN", "HASHABLE", "INNER_PRODUCT", "POSITIVE_DEFINITE", "PRODUCT", "PROFILES",
    "SMOOTH_PROFILES", "SPECTRAL", "AngularKernel", "AsymmetricAngularKernel", "BallSignsKernel", "Batch",
    "CategoricalKernel", "ColumnKernel", "ColumnProfile", "DotProductKernel", "EuclideanKernel",
    "GaussianKernel", "GaussianProfileKernel", "HammingKernel", "HashPartitions", "HashableKernel", "Hasher",
    "InnerProductKernel", "JaccardKernel", "Kernel", "LaplacianKernel", "ManhattanKernel", "MaternKernel",
    "PolynomialKernel", "Profile", "ProfileKernel", "ProjectionKernel", "Role", "SpectralKernel",
    "amount_in_words", "answer_in_words", "check_cap", "check_columns", "check_parameters", "composed_names",
    "counts_records", "dense_batch", "error_in_words", "euclidean_collision", "example_columns",
    "integer_seed", "is_expression", "is_signed", "kernel_as_json", "kernel_from_json", "kernel_in_words",
    "kernel_names", "manhattan_collision", "named", "one_of", "parameter_names", "positive_integer",
    "positive_number", "records_in_words", "register", "thread_count",
]  # fmt: skip

_BLOCK_CELLS = 1 << 22

ColumnProfile = Callable[[Floats], Floats]
"""A kernel as a function of the difference in one column."""


class Kernel(ABC):
    """A similarity between a record and a query, at most 1, equal to 1 where they coincide.

    Inner products are the exception: they are 1 where vectors of the declared length coincide, and may be
    negative.

    Kernels are public values, frozen dataclasses: compare, hash, print and store them freely. A kernel of
    one's own derives from the roles that it plays, and is made known by `register`.
    """

    name: ClassVar[str]
    takes_bounds: ClassVar[bool] = True
    instead_of_bounds: ClassVar[str] = "declare a radius instead"
    signed: ClassVar[bool] = False
    """Whether it takes negative values, so that an answer below 0 is not a sign of noise."""

    positive_definite: ClassVar[bool] = False
    """Whether every matrix k(x_i, x_j) of records is positive semidefinite, so that records are vectors of a
    space in which k is the inner product. Plain kernels declare this property; composed kernels derive it
    from their parts. Methods whose sensitivity is a length in that space refuse kernels without the property.
    """

    # Declared for type checkers only: at run time a property here would be the default of the field of that
    # name in a kernel's dataclass.
    if TYPE_CHECKING:

        @property
        def dim(self) -> int | None:
            """The number of columns of a record; None where records are sets."""

        def __hash__(self) -> int:
            return 0

    def __post_init__(self) -> None:
        """Check and normalise the parameters that most kernels have; a dataclass calls it."""
        check_parameters(self)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON values."""
        fields = dataclasses.fields(cast("Any", self))
        return {field.name: getattr(self, field.name) for field in fields}

    def size_bound(self) -> float:
        """What |k(x, q)| does not exceed, for any record and query; of vectors, for queries no longer than
        records may be. For a positive definite kernel it is sup k(x, x): the squared length of a record in
        the kernel's space.
        """
        return 1.0

    def parts(self) -> list[Kernel]:
        """The kernels of which this kernel is composed, such as the factors of a product.

        A plain kernel returns itself.
        """
        return [self]

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Check records, or queries (``clip=False``), and bring them into the native form.

        Here rows of ``dim`` finite numbers; kernels of codes or sets have their own form. ``columns`` names
        those of a frame or table that are meant, in order; data without names are taken by position. Raises
        ``DataRefused``.
        """
        if bounds is not None and not self.takes_bounds:
            remedy = self.instead_of_bounds
            raise UsageError("bounds", f"must be left out: the {self.name} kernel takes none", remedy=remedy)
        return self._prepared(data, bounds, clip, columns)

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        assert self.dim is not None, "a kernel of sets prepares its records itself"
        return dense_batch(data, self.dim, box, clip=clip, columns=names)

    @abstractmethod
    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        """Similarities, shape (records, queries)."""

    def similarity(self, X: object, Q: object) -> Floats:
        """The matrix k(x, q), shape (n_records, n_queries), in double precision. For data one may look at."""
        return self._pairwise(self.prepare(X), self.prepare(Q, clip=False))

    def prepared_similarity(self, records: Batch, queries: Batch) -> Floats:
        """The same matrix for records and queries that are prepared already."""
        return self._pairwise(records, queries)

    def exact_sum(self, X: object, Q: object) -> Floats:
        """The exact kernel sums Σₓ k(x, q), shape (n_queries,). For data one may look at; costs n_records ×
        n_queries.
        """
        records, queries = self.prepare(X), self.prepare(Q, clip=False)
        total = np.zeros(len(queries))
        columns = max(1, min(len(queries), 1024))
        rows = max(1, _BLOCK_CELLS // columns)
        for j in range(0, len(queries), columns):
            part = part_of(queries, j, j + columns)
            for i in range(0, len(records), rows):
                total[j : j + columns] += self._pairwise(part_of(records, i, i + rows), part).sum(axis=0)
        return total

    def __mul__(self, other: Kernel | float) -> Kernel:
        """The product with another kernel of the same columns, or a multiple of this one."""
        from ._expressions import combination, product

        return product(self, other) if isinstance(other, Kernel) else combination((other, self))

    def __rmul__(self, weight: float) -> Kernel:
        """A multiple of the kernel."""
        return self * weight

    def __pow__(self, power: int) -> Kernel:
        """The kernel to a positive integer power."""
        from ._expressions import power_of

        return power_of(self, power)

    def __add__(self, other: Kernel | int) -> Kernel:
        """The sum with another kernel of the same columns."""
        from ._expressions import combination

        if isinstance(other, Kernel):
            return combination((1.0, self), (1.0, other))
        # 0 is what Python's sum() starts with.
        return self if other == 0 else NotImplemented

    def __radd__(self, other: int) -> Kernel:
        """The same, for sums of a list of kernels."""
        return self + other

    def __sub__(self, other: Kernel) -> Kernel:
        """The difference to another kernel of the same columns."""
        from ._expressions import combination

        return combination((1.0, self), (-1.0, other))

    def __neg__(self) -> Kernel:
        """Minus the kernel."""
        return self * -1.0


class HashableKernel(Kernel):
    """The collision probability of a family of hash functions, so that counting hash values estimates sums
    of it.
    """

    @abstractmethod
    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The first ``rows`` hash functions of the seed, into ``width`` cells."""

    @abstractmethod
    def numbers_per_row(self) -> int:
        """How many random numbers one hash function is made of."""

    def distinct_hashes(self) -> int | None:
        """How many values one hash function takes, if that is a small number known in advance."""
        return None

    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers; blocks of that many are independent."""
        return 1

    def typical_row_variance(self) -> float:
        """Variance of one row's answer over N², for the number of rows where nothing better is known.

        Measured at queries from the data, with the paper's bandwidths: 0.03 to 0.05 for salaries, 0.004 for
        skin tones, 0.002 to 0.008 for RNA, scaled forest and word vectors, 0.0001 for raw forest data. The
        optimum is flat: a factor of ten in this number costs a third of the error.
        """
        return 3e-3


class ProjectionKernel(HashableKernel):
    """A kernel whose hash functions are made of random projections, and so have cells with flat faces."""

    @abstractmethod
    def projections(self) -> Projections:
        """The projections behind the hash functions."""

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The hash functions; their values are folded unless each can have its own cell."""
        distinct = self.distinct_hashes()
        fold = distinct is None or distinct > width
        return self.projections().hasher(rows=rows, width=width, seed=seed, fold=fold)

    def numbers_per_row(self) -> int:
        """Columns times projections."""
        projections = self.projections()
        return projections.dim * projections.count

    def independent_rows(self) -> int:
        """1, or the rows of a structured block."""
        return self.projections().independent_rows()


class KernelOfColumns(Kernel):
    """A kernel of records with a declared number of columns."""

    if TYPE_CHECKING:

        @property
        def dim(self) -> int:
            """The number of columns."""


class BallSignsKernel(ProjectionKernel, KernelOfColumns):
    """Hashes the signs of random projections of records in a ball, which are first raised to the sphere by
    one more coordinate. So moments of the records can be read from the counts.
    """

    @abstractmethod
    def signs(self) -> int:
        """How many signs one hash is made of."""

    @abstractmethod
    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, signs, dim + 1 or more); public."""


class ColumnKernel(KernelOfColumns):
    """A kernel of the differences between columns of numbers, which declared bounds can clip."""

    if TYPE_CHECKING:

        @property
        def bandwidth(self) -> float:
            """The scale of the kernel, in the units of the data."""

    @property
    @abstractmethod
    def width(self) -> float:
        """The bandwidth at which this kernel with power 1 falls off from its peak as this one does."""

    @abstractmethod
    def integral(self) -> float:
        """The integral over all space; infinity where the kernel has none."""

    def column_widths(self) -> tuple[float, ...]:
        """The width along each column; they differ only where columns have factors or units of their own."""
        return (self.width,) * self.dim

    def column_bandwidths(self) -> tuple[float, ...]:
        """The bandwidth in each column; they differ only where columns have units of their own."""
        return (self.bandwidth,) * self.dim

    def unscaled(self) -> ColumnKernel:
        """The kernel of columns divided by their units; itself where they have none."""
        return self


class SpectralKernel(ColumnKernel):
    """A shift-invariant kernel with a known spectral measure: k(x, q) = E cos(2π·frequency·(x − q))."""

    rotation_invariant: ClassVar[bool]
    """Whether only the Euclidean distance matters, so that random frequencies may be made orthogonal."""

    @abstractmethod
    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Draws from the spectral measure in turns, shape (rows, dim).

        Row r is the same whatever the number of rows. ``orthogonal`` rows, within blocks of ``dim``, have the
        same distribution each, for a kernel that is rotation invariant.
        """

    @property
    def coordinates(self) -> int:
        """How many uniform numbers `frequencies_at` takes for a frequency; 0 where the kernel does not have
        it.
        """
        return 0

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """Frequencies in turns, shape (rows, dim), from points of shape (rows, coordinates) strictly between
        0 and 1: of uniform points, draws from the spectral measure. The map should be smooth, with its most
        important coordinates first, so that evenly spread points give evenly spread frequencies.
        """
        raise NotImplementedError

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> Floats | None:
        """Lengths of frequencies in turns, for the same kernel in ``size`` columns, an even number; shape
        (rows,), row r the same whatever their number. None for a kernel that is not rotation invariant.
        """
        return None


class ProfileKernel(ColumnKernel):
    """A kernel that is a sum of products of one-dimensional profiles, which is how a grid reads it."""

    @property
    def smooth(self) -> bool:
        """Whether it has all derivatives, as the Gaussian has. The others need finer grids, which splines of
        any degree follow about equally well.
        """
        return False

    @abstractmethod
    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """The kernel as a sum of profiles, for nodes ``spacings`` apart in a box of ``sides``, by column."""

    def column_profile(self) -> ColumnProfile | None:
        """k as a function of the difference in one column where k is the product over the columns; else None.

        By default the kernel itself where there is one column. Not for records: the values may depend on the
        platform in the last bit.
        """
        if self.dim != 1:
            return None
        return lambda x: self.similarity([[0.0]], x.reshape(-1, 1)).reshape(x.shape)


class GaussianProfileKernel(ProfileKernel):
    """``exp(−‖x − q‖²/(2·width²))``: the kernel that series and lattices of records are made for."""

    def gaussian_width(self) -> float:
        """The standard deviation."""
        return self.width


class CategoricalKernel(KernelOfColumns):
    """A power of the share of columns in which two records agree; their values are codes without an order."""

    @abstractmethod
    def agreement_power(self) -> int:
        """The power of the share."""


class InnerProductKernel(KernelOfColumns):
    """A power of the inner product of vectors in a ball: ``(x·q/radius²)**degree``. Its sums are determined
    by the sums of the records' monomials of that degree, without any approximation.

    Records are clipped to the ball of the declared radius; queries are not.
    """

    if TYPE_CHECKING:

        @property
        def radius(self) -> float:
            """The declared length that no record exceeds."""

    @abstractmethod
    def inner_degree(self) -> int:
        """The power of the inner product, 1 or 2."""


_RATIO = 1.6
_TAIL = 1e-3
_FINEST = 0.25


@dataclass(frozen=True, slots=True)
class Profile:
    """``height`` times a product over columns, of ``exp(−x²/2·scale²)`` in those that are ``gaussian``, and
    of ``exp(−|x|/scale)`` in the others.
    """

    height: float
    scales: tuple[float, ...]
    gaussian: tuple[bool, ...]

    @classmethod
    def of_columns(cls, dim: int, *, height: float = 1.0, scale: float, gaussian: bool) -> Profile:
        """The same scale and shape in every column."""
        return cls(height, (scale,) * dim, (gaussian,) * dim)


def fitted_profiles(
    kernel: ColumnKernel, *, spacings: Sequence[float], diameter: float, gaussian: bool
) -> tuple[Profile, ...]:
    """A kernel as a sum of profiles, fitted at distances from 0 to the diameter of a box.

    ``gaussian`` states of which profiles it is a mixture: of Gaussians where it is a function of the
    Euclidean distance, of exponentials where it is one of the sum of absolute differences.

    The Euclidean kernel is the mean of a triangle over normal projections, ``k(r) = ∫ sinc²(ω/2)/π·exp(−ω²r²/
    2w²) dω``, ω > 0; the Manhattan kernel the same over Cauchy projections; a Matérn kernel is a Gaussian
    whose variance is random. Their powers are such mixtures too. So positive heights on a geometric ladder of
    scales fit them to a thousandth, but for what is finer than the grid.

    Notes
    -----
    Schoenberg 1938, *Metric spaces and completely monotone functions*.
    """
    from scipy.optimize import lsq_linear

    low = min(_FINEST * max(spacings), kernel.width / 4.0)
    high = max(4.0 * diameter, 8.0 * low)
    scales = low * _RATIO ** np.arange(math.ceil(math.log(high / low, _RATIO)) + 1)
    distances = np.concatenate([[0.0], np.geomspace(low / 4.0, max(diameter, low), 400)])
    values = along_first_column(kernel, distances)
    ratio = distances[:, None] / scales
    shapes = np.exp(-0.5 * ratio**2) if gaussian else np.exp(-ratio)
    weights = 1.0 / np.maximum(values, _TAIL)
    fit = lsq_linear(shapes * weights[:, None], values * weights, bounds=(0.0, np.inf), method="bvls")
    heights = np.asarray(fit.x)
    kept = heights > 1e-12
    return tuple(
        Profile.of_columns(kernel.dim, height=float(height), scale=float(scale), gaussian=gaussian)
        for height, scale in zip(heights[kept], scales[kept], strict=True)
    )


def along_first_column(kernel: ColumnKernel, distances: Floats) -> Floats:
    """The kernel of two points that differ by these distances in the first column alone."""
    rows = np.zeros((len(distances), kernel.dim), np.float32)
    rows[:, 0] = distances
    origin = Batch((np.zeros((1, kernel.dim), np.float32),), 1)
    return kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]


K = TypeVar("K", bound=type[Kernel])
C = TypeVar("C", bound=Kernel)
_KERNELS: dict[str, type[Kernel]] = {}
_COMPOSED: dict[str, Callable[[Mapping[str, Any]], Kernel]] = {}


def register(kernel: K) -> K:
    """Make a kernel known by its name, for files, the command line and the service."""
    _KERNELS[kernel.name] = kernel
    return kernel


def register_composed(name: str, make: Callable[[Mapping[str, Any]], Kernel]) -> None:
    """Make known how a kernel that is made of others is read from a file's header. ``make`` raises
    ``ValueError`` for parameters that no kernel has.
    """
    _COMPOSED[name] = make


@cache
def composed_class(
    kind: type[C], roles: tuple[type[C], ...], *, signed: bool, positive_definite: bool
) -> type[C]:
    """The class of a kernel made of others, with the roles and the properties that they give it."""
    members = {"__doc__": kind.__doc__, "signed": signed, "positive_definite": positive_definite}
    return type(kind.__name__, roles or (kind,), members)


def composed_names() -> list[str]:
    """The names of kernels that are made of others, sorted."""
    return sorted(_COMPOSED)


def kernel_names() -> list[str]:
    """The names of the registered kernels that are made from parameters, sorted."""
    return sorted(_KERNELS)


def parameter_names(name: str) -> tuple[str, ...]:
    """What the kernel of that name is made from; of an expression, ``dim`` unless its records are sets.

    >>> parameter_names("hamming"), parameter_names("hamming * angular")
    (('dim', 'power'), ('dim',))
    """
    if is_expression(name):
        from ._expressions import KernelExpression

        return () if KernelExpression(name).takes_sets else ("dim",)
    kernel: Any = _kernel_class(name)
    return tuple(field.name for field in dataclasses.fields(kernel))


def is_signed(name: str) -> bool:
    """Whether the kernel of that name may be negative, so that its sums are not counts of records.

    >>> is_signed("gaussian"), is_signed("dot-product")
    (False, True)
    """
    return _kernel_class(name).signed


def is_expression(name: object) -> bool:
    """Whether a text is made of more than the name of a kernel.

    >>> is_expression("dot-product"), is_expression("hamming(0)")
    (False, True)
    """
    return isinstance(name, str) and name not in _KERNELS and not name.replace("-", "").isalnum()


def named(
    name: str,
    *,
    dim: int | None = None,
    bandwidth: float | None = None,
    columns: Sequence[str] | None = None,
    **parameters: object,
) -> Kernel:
    """The kernel of that name. A parameter that is None is left at the kernel's default.

    Parameters
    ----------
    name : str
        One of :func:`kernel_names`, or several joined by ``*``, ``+`` and ``-``, each with its columns and
        parameters in brackets. What is given beside the text is for those that do not state it.
    columns : list of str, optional
        The names of the columns, for expressions that use them.
    dim : int, optional
        The number of columns; for kernels of sets it is not used.
    bandwidth : float, optional
        The scale, in the units of the data. Needed by the kernels that have one.
    **parameters
        Whatever else the kernel has, such as ``power``.

    Raises
    ------
    UsageError
        if the name is unknown, a parameter is missing that the kernel needs, or one is given that it does
        not have.

    Examples
    --------
    >>> named("gaussian", dim=2, bandwidth=0.5)
    GaussianKernel(dim=2, bandwidth=0.5, power=1)
    """
    if is_expression(name):
        from ._expressions import KernelExpression

        defaults = {"bandwidth": bandwidth, **parameters}
        return KernelExpression(name).build(dim, columns=columns, defaults=defaults)
    kind: Any = _kernel_class(name)
    taken = parameter_names(name)
    given = {"bandwidth": bandwidth, **parameters}
    arguments = {parameter: value for parameter, value in given.items() if value is not None}
    for parameter in arguments:
        if parameter not in taken:
            raise UsageError((f"the {name} kernel has no ", Parameter(parameter)))
    remedies = {"dim": "give the number of columns", "bandwidth": "choose it without looking at the data"}
    for needed, value in (("dim", dim), ("bandwidth", bandwidth)):
        if needed in taken and value is None:
            raise UsageError(needed, f"must be given for the {name} kernel", remedy=remedies[needed])
    if "dim" in taken:
        arguments["dim"] = dim
    kernel: Kernel = kind(**arguments)
    return kernel


def example_columns(name: str, dim: int | None) -> list[str] | None:
    """Names of columns for a kernel in an expression, where only their number matters, as for a plan; None
    for a kernel that names no columns.
    """
    if not is_expression(name):
        return None
    from ._expressions import KernelExpression

    return KernelExpression(name).example_columns(dim)


def kernel_from_json(data: dict[str, Any]) -> Kernel:
    """The kernel that a file's header describes."""
    name = data.get("name")
    if name in _COMPOSED:
        kernel = _COMPOSED[name](data["parameters"])
    elif name in _KERNELS:
        kernel = cast("Any", _KERNELS[name])(**data["parameters"])
    else:
        raise FileRefused(
            f"the file uses the kernel {name!r}, which this version of Hushsum does not have",
            remedy="install a later one",
        )
    if kernel.name != name or canonical_json(kernel.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a kernel has one description")
    return kernel


def kernel_as_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel for a file's header."""
    return {"name": kernel.name, "parameters": kernel.parameters()}


def _kernel_class(name: str) -> type[Kernel]:
    if name not in _KERNELS:
        raise UsageError("kernel", f"must be one of {', '.join(kernel_names())}", got=shown(name))
    return _KERNELS[name]


def _one_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}" if names else "none of those here"


@dataclass(frozen=True, slots=True)
class Role:
    """What a method needs of a kernel: ``test`` says whether a kernel has it, ``what`` says it in words."""

    what: str
    test: Callable[[Kernel], bool]

    def check(self, kernel: Kernel, asker: str) -> None:
        """Refuse a kernel that does not have the role.

        Raises
        ------
        UsageError
            with the kernels that have it.
        """
        if not self.test(kernel):
            rule = f"must be one that {self.what}, for {asker}"
            remedy = f"use {_one_of(self.kernels(kernel.dim or 1))}, or another method"
            raise UsageError("kernel", rule, got=f"the {kernel.name} kernel", remedy=remedy)

    def kernels(self, dim: int = 1) -> list[str]:
        """The names of the registered kernels that have the role, for this number of columns."""
        found = []
        for name in kernel_names():
            bandwidth = 1.0 if "bandwidth" in parameter_names(name) else None
            if self.test(named(name, dim=dim, bandwidth=bandwidth)):
                found.append(name)
        return found


HASHABLE = Role(
    "is the collision probability of hash functions", lambda kernel: isinstance(kernel, HashableKernel)
)
SPECTRAL = Role("has a known spectral measure", lambda kernel: isinstance(kernel, SpectralKernel))
COLUMNS = Role("compares columns of numbers", lambda kernel: isinstance(kernel, ColumnKernel))
POSITIVE_DEFINITE = Role(
    "compares columns of numbers and is positive definite, as sums with positive weights are",
    lambda kernel: isinstance(kernel, ColumnKernel) and kernel.positive_definite,
)
PROFILES = Role("is a sum of products over columns", lambda kernel: isinstance(kernel, ProfileKernel))
SMOOTH_PROFILES = Role(
    "is a sum of smooth products over columns",
    lambda kernel: isinstance(kernel, ProfileKernel) and kernel.smooth,
)
PRODUCT = Role(
    "is a product over its columns",
    lambda kernel: isinstance(kernel, ProfileKernel) and kernel.column_profile() is not None,
)
INNER_PRODUCT = Role("is a power of the inner product", lambda kernel: isinstance(kernel, InnerProductKernel))
GAUSSIAN = Role("has the Gaussian shape", lambda kernel: isinstance(kernel, GaussianProfileKernel))


def positive_integer(name: str, value: int, *, at_most: int) -> int:
    """An integer from 1 to ``at_most``."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= at_most:
        raise UsageError(name, f"must be an integer from 1 to {at_most}", got=shown(value))
    return number


def thread_count(threads: int | None) -> int:
    """The requested number, or all cores this process may use; results do not depend on it."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return positive_integer("threads", threads, at_most=1024)


def one_of(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    listed = list(choices)
    if value not in listed:
        raise UsageError(name, f"must be one of {', '.join(listed)}", got=shown(value))


def as_float(value: object) -> float:
    """A given number; NaN if it is none, or beyond all floats."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan


def positive_number(
    name: str, value: float, *, remedy: str = "give the scale of the data in its units"
) -> float:
    """A finite number above 0."""
    number = as_float(value)
    if not 0.0 < number < math.inf:
        raise UsageError(name, "must be a finite number above 0", got=shown(value), remedy=remedy)
    return number


def _in_single_precision(name: str, value: float, *, digits: int, remedy: str) -> float:
    """A positive number from 1e-digits to 1e+digits, so that single-precision records suit it."""
    number = positive_number(name, value, remedy=remedy)
    if not float(f"1e-{digits}") <= number <= float(f"1e{digits}"):
        rule = f"must be from 1e-{digits} to 1e{digits}"
        raise UsageError(name, rule, got=f"{number:g}", remedy="rescale the columns")
    return number


def check_parameters(kernel: Kernel) -> None:
    """Check and normalise the parameters that most kernels have, where this one has them: ``dim``,
    ``bandwidth``, ``power`` and ``radius``. For ``__post_init__`` of a frozen dataclass.
    """
    for name, value in kernel.parameters().items():
        if name in _RULES:
            object.__setattr__(kernel, name, _RULES[name](value))


def integer_seed(value: object) -> int:
    """A public seed: any integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError("seed", "must be an integer", got=type(value).__name__, remedy="give one such as 7")
    return operator.index(value)


def kernel_in_words(kernel: Kernel) -> str:
    """A kernel and its parameters on one line; a composed kernel is written as an expression.

    >>> from hushsum.kernels import HammingKernel
    >>> kernel_in_words(HammingKernel(dim=4))
    'hamming (dim 4, power 1)'
    """
    from ._expressions import CombinationKernel, ProductKernel, ScaledKernel, as_expression

    if isinstance(kernel, ScaledKernel):
        widths = " × ".join(f"{each:.6g}" for each in kernel.column_bandwidths()[:_MOST_BANDWIDTHS])
        more = " × …" if kernel.dim > _MOST_BANDWIDTHS else ""
        return f"{kernel_in_words(kernel.kernel)}, of the declared ranges: {widths}{more}"
    if isinstance(kernel, ProductKernel | CombinationKernel):
        return as_expression(kernel)
    shown = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in kernel.parameters().items()
    )
    return f"{kernel.name} ({shown})"


def counts_records(kernel: Kernel) -> bool:
    """Whether a kernel sum is about a number of records: those near a query count 1, others 0 or between."""
    from ._expressions import CombinationKernel

    return not kernel.signed and not any(
        isinstance(each, CombinationKernel) for each in (kernel, *kernel.parts())
    )


def answer_in_words(kernel: Kernel, of: str) -> str:
    """What an answer of a released function is, as pictures label it: "records near here"."""
    if not counts_records(kernel):
        return "sum of similarities" if of == "sum" else "mean similarity"
    return "records near here" if of == "sum" else "share of records near here"


def records_in_words(number: float) -> str:
    """An error in records, with two digits.

    >>> records_in_words(32.4), records_in_words(12_345.0), records_in_words(0.123)
    ('± 32 records', '± 12,000 records', '± 0.12 records')
    """
    rounded = float(f"{number:.2g}")
    return f"± {rounded:,.0f} records" if rounded >= 10 else f"± {rounded:g} records"


def error_in_words(kernel: Kernel, error: float, records: float) -> str:
    """The mean absolute error of mean kernel values for people: in records, and as a share of all.

    >>> from hushsum.kernels import GaussianKernel
    >>> error_in_words(GaussianKernel(dim=1, bandwidth=1.0), 0.0013, 25_000)
    '± 32 records near a typical point, 0.13 % of all'
    """
    amount = amount_in_words(kernel, error, records)
    if not counts_records(kernel):
        return f"{amount} of the mean similarity at a typical point"
    return f"{amount} near a typical point, {100 * error:.2g} % of all"


def amount_in_words(kernel: Kernel, error: float, records: float) -> str:
    """An error in records, or in similarity for kernels that do not count records."""
    return records_in_words(error * records) if counts_records(kernel) else f"± {error:.2g}"


MAX_DIM = 1 << 20
_MOST_BANDWIDTHS = 4
MAX_POWER = 256

_RULES: dict[str, Callable[[Any], float]] = {
    "dim": partial(positive_integer, "dim", at_most=MAX_DIM),
    "bandwidth": partial(
        _in_single_precision, "bandwidth", digits=30, remedy="give the scale of the data in its units"
    ),
    "power": partial(positive_integer, "power", at_most=MAX_POWER),
    "radius": partial(
        _in_single_precision, "radius", digits=15, remedy="give the length that no record exceeds"
    ),
    "query_radius": partial(
        _in_single_precision, "query_radius", digits=15, remedy="give the length that no query exceeds"
    ),
}


def check_columns(columns: tuple[str, ...] | None, dim: int) -> None:
    """Refuse names of columns that are not ``dim`` different ones, or one for a column of lists."""
    if columns is None:
        return
    if not isinstance(columns, tuple) or not all(isinstance(name, str) and name for name in columns):
        raise UsageError("columns", "must be names", got="something else", remedy="give a list of strings")
    if len(set(columns)) != len(columns):
        raise UsageError("columns", "must name each column once")
    # One name may stand for a column of lists, such as embeddings.
    if len(columns) not in (1, dim):
        raise UsageError("columns", f"must be {dim} names, one for each", got=len(columns))


def check_cap(units: object, max_per_unit: int | None, *, parameter: str = "units") -> None:
    """Refuse ids of persons without a cap, and a cap without ids."""
    if (units is None) != (max_per_unit is None):
        raise UsageError(parameter, ("and ", Parameter("max_per_unit"), " need each other"), got="one")


@register
@dataclass(frozen=True)
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

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> Floats | None:
        """Lengths of normal vectors of standard deviation √power/bandwidth, in turns."""
        lengths = normal_lengths("gaussian/lengths", seed, rows, size)
        return lengths * (math.sqrt(self.power) / self.bandwidth / ONE_TURN)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        squared = distances(records, queries, "sqeuclidean")
        return np.asarray(np.exp(-0.5 * self.power * squared / self.bandwidth**2))


@register
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> Floats | None:
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
        found = super().parameters()
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
        return np.where(both_empty, 1.0, shared / np.where(both_empty, 1.0, union)) ** self.power


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
@dataclass(frozen=True)
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
