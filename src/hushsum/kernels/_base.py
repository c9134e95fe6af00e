"""What a kernel is, the roles that it can play, and the kernels that are registered by name.

A kernel is a public similarity. What can be done with it depends on its roles: hash rows count a
`HashableKernel`, random features a `SpectralKernel`, a grid reads a `ProfileKernel`. A method takes every
kernel that has the role it needs, so a new kernel works wherever its roles allow. A parameter that no other
kernel has is declared in `hushsum.planning.KernelSpec` for the surfaces.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, RoleType
from hushsum.errors import FileRefused, Parameter, UsageError, shown
from hushsum.files import canonical_json
from hushsum.records import Batch as Batch
from hushsum.records import Bounds, part_of
from hushsum.records import dense_batch as dense_batch

from ._hashers import Hasher as Hasher
from ._parameter_checks import check_parameters

if TYPE_CHECKING:
    from ._hashers import Projections


_BLOCK_CELLS = 1 << 22

ColumnProfile = Callable[[Floats], Floats]
"""A kernel as a function of the difference in one column."""


@runtime_checkable
class Kernel(Protocol, metaclass=RoleType):
    """A similarity between a record and a query, at most 1, equal to 1 where they coincide.

    Inner products are the exception: they are 1 where vectors of the declared length coincide, and may be
    negative.

    Kernels are public values, frozen dataclasses: compare, hash, print and store them freely. A kernel of
    one's own derives from the roles that it plays, and is made known by `register`.
    """

    __slots__ = ()

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


@runtime_checkable
class HashableKernel(Kernel, Protocol):
    """The collision probability of a family of hash functions, so that counting hash values estimates sums
    of it.
    """

    __slots__ = ()

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


@runtime_checkable
class HashableCombination(Kernel, Protocol):
    """A linear combination of hashable kernels. Hash rows are divided among them, and their weights are
    applied when a released table is read.
    """

    __slots__ = ()

    @abstractmethod
    def hashed_components(self) -> tuple[tuple[float, HashableKernel], ...]:
        """Weights, none of them 0, and kernels."""


@runtime_checkable
class ProjectionKernel(HashableKernel, Protocol):
    """A kernel whose hash functions are made of random projections, and so have cells with flat faces."""

    __slots__ = ()

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


class KernelOfColumns(Kernel, Protocol):
    """A kernel of records with a declared number of columns."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def dim(self) -> int:
            """The number of columns."""


@runtime_checkable
class BallSignsKernel(ProjectionKernel, KernelOfColumns, Protocol):
    """Hashes the signs of random projections of records in a ball, which are first raised to the sphere by
    one more coordinate. So moments of the records can be read from the counts.
    """

    __slots__ = ()

    @abstractmethod
    def signs(self) -> int:
        """How many signs one hash is made of."""

    @abstractmethod
    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, signs, dim + 1 or more); public."""


@runtime_checkable
class ColumnKernel(KernelOfColumns, Protocol):
    """A kernel of the differences between columns of numbers, which declared bounds can clip."""

    __slots__ = ()

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


@runtime_checkable
class SpectralKernel(ColumnKernel, Protocol):
    """A shift-invariant kernel with a known spectral measure: k(x, q) = E cos(2π·frequency·(x − q))."""

    __slots__ = ()

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


@runtime_checkable
class ProfileKernel(ColumnKernel, Protocol):
    """A kernel that is a sum of products of one-dimensional profiles, which is how a grid reads it."""

    __slots__ = ()

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


@runtime_checkable
class GaussianProfileKernel(ProfileKernel, Protocol):
    """``exp(−‖x − q‖²/(2·width²))``: the kernel that series and lattices of records are made for."""

    __slots__ = ()

    def gaussian_width(self) -> float:
        """The standard deviation."""
        return self.width


@runtime_checkable
class CategoricalKernel(KernelOfColumns, Protocol):
    """A power of the share of columns in which two records agree; their values are codes without an order."""

    __slots__ = ()

    @abstractmethod
    def agreement_power(self) -> int:
        """The power of the share."""


@runtime_checkable
class InnerProductKernel(KernelOfColumns, Protocol):
    """A power of the inner product of vectors in a ball: ``(x·q/radius²)**degree``. Its sums are determined
    by the sums of the records' monomials of that degree, without any approximation.

    Records are clipped to the ball of the declared radius; queries are not.
    """

    __slots__ = ()

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
    values: Floats = kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]
    return values


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
    members = {
        "__slots__": (),
        "__doc__": kind.__doc__,
        "signed": signed,
        "positive_definite": positive_definite,
    }
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
HASH_ROWS = Role(
    "is a collision probability of hash functions, or a linear combination of such kernels",
    lambda kernel: isinstance(kernel, HashableKernel | HashableCombination),
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
