"""Kernels made of kernels: products, linear combinations, columns with units of their own, and their text.

A kernel may be written as text, ``0.7 * euclidean(age, income, bandwidth=10) * hamming(town) + 0.3 *
hamming(town)``. Its name is followed, in brackets, by its columns (names, or positions from 0 on; all by
default) and its parameters. ``*``, ``+``, ``-``, ``**`` and brackets have their usual meaning. A name with a
hyphen is written with an underscore, and a column whose name is not a word in quotes.

A bandwidth is measured in the units of the data, or in the declared range of each column (`in_scale`). A
combination of kernels can be fitted to a shape (`fit_kernel`).
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final, Generic, NamedTuple, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, Parameter, SuspiciousParameter, UsageError, shown
from hushsum.files import canonical_json
from hushsum.records import Bounds, column_groups, in_memory, part_of

from ._kernels import (
    COLUMNS,
    MAX_DIM,
    MAX_POWER,
    Batch,
    ColumnKernel,
    ColumnProfile,
    EuclideanKernel,
    HashableKernel,
    Hasher,
    Kernel,
    Profile,
    ProfileKernel,
    Role,
    SpectralKernel,
    along_first_column,
    as_float,
    composed_class,
    composed_names,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    one_of,
    parameter_names,
    positive_integer,
    positive_number,
    register_composed,
)
from ._public_randomness import (
    FACTOR_WIDTH,
    BlockwiseHasher,
    concatenated,
    derived_seed,
    row_words,
    single_precision,
    uniforms,
)

__all__ = [
    "HASH_ROWS", "LONGEST", "OF_BOUNDS", "SCALES", "CombinationKernel", "FittedKernel",
    "HashableCombination", "KernelExpression", "ProductKernel", "ScaledKernel", "as_expression",
    "bandwidth_warnings", "default_bandwidth", "different_units", "fit_kernel", "in_scale", "in_units",
    "on_columns", "scaled", "scaled_by", "warn_of_bandwidth",
]  # fmt: skip

MOST_FACTORS = 64
_MOST_PROFILES = 4096


K = TypeVar("K", bound=Kernel, covariant=True)


class Factor(NamedTuple, Generic[K]):
    """A kernel and the positions of its columns. A kernel of sets has one, whose values are lists."""

    kernel: K
    columns: tuple[int, ...]


class Component(NamedTuple, Generic[K]):
    """A weight, which is not 0, and its kernel."""

    weight: float
    kernel: K


class _Composed:
    """A kernel whose class is made for the roles of its parts, and has no place in a module. Its parts are
    checked already.
    """

    def __post_init__(self) -> None:
        pass

    def __reduce__(self) -> Any:
        return kernel_from_json, (kernel_as_json(cast("Kernel", self)),)


class _ColumnsOfMembers(ColumnKernel):
    """A kernel of columns that is made of others: its scales are the smallest of theirs."""

    @abstractmethod
    def members(self) -> Sequence[ColumnKernel]:
        """The kernels that are multiplied or added."""

    @property
    def bandwidth(self) -> float:
        """The smallest of the members'."""
        return min(kernel.bandwidth for kernel in self.members())

    @property
    def width(self) -> float:
        """The smallest of the members'."""
        return min(kernel.width for kernel in self.members())

    @property
    def smooth(self) -> bool:
        """Whether all members are, where they are profiles."""
        return all(isinstance(kernel, ProfileKernel) and kernel.smooth for kernel in self.members())


@dataclass(frozen=True, repr=False)
class ProductKernel(_Composed, Kernel):
    """The product of kernels, each of some of the columns: numbers, categories and sets in one record.

    Made by ``k1 * k2`` and :func:`hushsum.kernels.on_columns`, not by hand. It has the roles that its
    factors share:
    hash rows count it where all of them have hash functions, Fourier features where all have frequencies, and
    a grid where all are profiles and no two share a column.

    Privacy
    -------
    The hash of a row is made of one hash of each factor, so a record still adds 1 to one cell of every row,
    and that cell depends on the record alone: Δ1 = R and Δ2 = √R for one record present or absent, 2R and
    √(2R) for one replaced, as for a single kernel. How many factors there are makes no difference.
    """

    name: ClassVar[str] = "product"
    takes_bounds: ClassVar[bool] = False
    instead_of_bounds: ClassVar[str] = "clip the columns of numbers beforehand"

    dim: int
    factors: tuple[Factor[Kernel], ...]

    def __repr__(self) -> str:
        listed = (
            repr(kernel)
            if _are_all(columns, self.dim) and kernel.dim is not None
            else f"on_columns({kernel!r}, {list(columns)}, of={self.dim})"
            for kernel, columns in self.factors
        )
        return " * ".join(listed)

    def parameters(self) -> dict[str, Any]:
        """The columns of a record, and the factors with theirs, as JSON values."""
        factors = [
            {"kernel": kernel_as_json(each), "columns": list(columns)} for each, columns in self.factors
        ]
        return {"dim": self.dim, "factors": factors}

    def size_bound(self) -> float:
        """The product of the factors' bounds."""
        return math.prod(kernel.size_bound() for kernel in self.parts())

    def members(self) -> list[Any]:
        """The kernels of the factors."""
        return [kernel for kernel, _ in self.factors]

    def parts(self) -> list[Kernel]:
        """The factors."""
        return self.members()

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        places = [columns for _, columns in self.factors]
        groups = column_groups(in_memory(data), places, dim=self.dim, columns=names)
        prepared = zip(self.parts(), groups, strict=True)
        return Batch.joined([kernel.prepare(group, clip=clip) for kernel, group in prepared])

    def split(self, batch: Batch) -> list[Batch]:
        """The records as each factor takes them."""
        if batch.layout is not None:
            return batch.parts()
        rows = batch.arrays[0]
        return [Batch((np.ascontiguousarray(rows[:, columns]),), len(batch)) for _, columns in self.factors]

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        result = np.ones((len(records), len(queries)))
        for kernel, x, q in zip(self.parts(), self.split(records), self.split(queries), strict=True):
            result *= kernel.prepared_similarity(x, q)
        return result


class HashableProduct(ProductKernel, HashableKernel):
    """All factors are collision probabilities, and so is their product, of independent hash functions."""

    factors: tuple[Factor[HashableKernel], ...]

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """One hash function of each factor, with random numbers of its own, concatenated and folded."""
        hashers = []
        for number, (kernel, _) in enumerate(self.factors):
            cells = min(FACTOR_WIDTH, max(2, kernel.distinct_hashes() or FACTOR_WIDTH))
            own = derived_seed("product", seed, number)
            hashers.append(kernel.hasher(rows=rows, width=cells, seed=own))
        sizes = tuple(2 if kernel.dim is None else 1 for kernel, _ in self.factors)
        layout = None if isinstance(self, ColumnKernel) else sizes
        return concatenated(hashers, self.split, rows=rows, width=width, seed=seed, layout=layout)

    def numbers_per_row(self) -> int:
        """The numbers per row of all factors, and one more number per factor to concatenate their hashes."""
        return sum(kernel.numbers_per_row() + 1 for kernel, _ in self.factors)

    def independent_rows(self) -> int:
        """The least number of rows that is a multiple of every factor's block."""
        return math.lcm(*(kernel.independent_rows() for kernel, _ in self.factors))

    def typical_row_variance(self) -> float:
        """The least typical row variance of the factors: fewer records resemble a query in all columns."""
        return min(kernel.typical_row_variance() for kernel, _ in self.factors)


class ColumnProduct(ProductKernel, _ColumnsOfMembers):
    """All factors compare numbers."""

    takes_bounds: ClassVar[bool] = True
    factors: tuple[Factor[ColumnKernel], ...]
    _prepared = Kernel._prepared

    def integral(self) -> float:
        """The product of the factors' integrals; infinity where a column has no factor, or several."""
        if not _divide_columns(self.factors, self.dim):
            return math.inf
        return math.prod(kernel.integral() for kernel, _ in self.factors)


class SpectralProduct(ColumnProduct, SpectralKernel):
    """All factors have spectral measures: E cos(a)·E cos(b) = E cos(a + b) for independent symmetric a, b."""

    rotation_invariant: ClassVar[bool] = False
    factors: tuple[Factor[SpectralKernel], ...]

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Independent frequencies of all factors, added column by column. They are never orthogonal."""
        total = np.zeros((rows, self.dim))
        for number, (kernel, columns) in enumerate(self.factors):
            own = derived_seed("product", seed, number)
            total[:, columns] += kernel.frequencies(rows=rows, seed=own, orthogonal=False)
        return single_precision(total)

    @property
    def coordinates(self) -> int:
        """Those of all factors; 0 where a factor has none."""
        several = [kernel.coordinates for kernel, _ in self.factors]
        return sum(several) if all(several) else 0

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """The frequencies of all factors, each at coordinates of its own, added column by column."""
        total, first = np.zeros((len(points), self.dim)), 0
        for kernel, columns in self.factors:
            after = first + kernel.coordinates
            total[:, columns] += kernel.frequencies_at(points[:, first:after])
            first = after
        return single_precision(total)


class ProfileProduct(ColumnProduct, ProfileKernel):
    """All factors are sums of products over columns, and every column has one factor."""

    factors: tuple[Factor[ProfileKernel], ...]

    def column_widths(self) -> tuple[float, ...]:
        """The widths of the columns of all factors."""
        widths: dict[int, float] = {}
        for kernel, columns in self.factors:
            widths.update(zip(columns, kernel.column_widths(), strict=True))
        return tuple(widths[column] for column in range(self.dim))

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Every profile of the first factor times every one of the second, and so on."""
        found = []
        for kernel, columns in self.factors:
            own = kernel.profiles(spacings=[spacings[c] for c in columns], sides=[sides[c] for c in columns])
            found.append([(columns, profile) for profile in own])
        if math.prod(len(each) for each in found) > _MOST_PROFILES:
            rule = f"must be a sum of at most {_MOST_PROFILES} products over columns, for a grid"
            remedy = "use race, or factors of the Gaussian or Laplacian kernel"
            raise UsageError("kernel", rule, got="a product with more", remedy=remedy)
        return tuple(_joined_profile(chosen, self.dim) for chosen in itertools.product(*found))


def _joined_profile(chosen: Sequence[tuple[tuple[int, ...], Profile]], dim: int) -> Profile:
    scales, gaussian = [1.0] * dim, [True] * dim
    for columns, profile in chosen:
        for place, column in enumerate(columns):
            scales[column], gaussian[column] = profile.scales[place], profile.gaussian[place]
    height = math.prod(profile.height for _, profile in chosen)
    return Profile(height, tuple(scales), tuple(gaussian))


def _divide_columns(factors: Sequence[Factor[Kernel]], dim: int) -> bool:
    """Whether every column has exactly one factor."""
    return _are_all(sorted(itertools.chain(*(columns for _, columns in factors))), dim)


def _are_all(columns: Sequence[int], dim: int) -> bool:
    """Whether these are all columns, in order; of a header that states many, none is made to be compared."""
    return len(columns) == dim and all(map(operator.eq, columns, range(dim)))


def _roles(
    kernels: Sequence[Kernel],
    hashable: type[Any],
    column: type[Any],
    narrower: Sequence[tuple[type[Any], type[Any], bool]],
) -> tuple[type[Any], ...]:
    """The classes of a product or combination.

    The class for hash rows is among them if all kernels are hashable. If all are kernels of columns, the
    class for columns is too, or instead of it the classes of the narrower roles that all kernels have and
    that are possible here.
    """

    def all_are(role: type[Any]) -> bool:
        return all(isinstance(kernel, role) for kernel in kernels)

    found = [hashable] if all_are(HashableKernel) else []
    if all_are(ColumnKernel):
        found += [made for role, made, possible in narrower if possible and all_are(role)] or [column]
    return tuple(found)


def product_of(dim: int, factors: Sequence[Factor[Kernel]]) -> ProductKernel:
    """The product in the class that has the roles of its factors."""
    kernels = [kernel for kernel, _ in factors]
    divided = _divide_columns(factors, dim)
    narrower = [(SpectralKernel, SpectralProduct, True), (ProfileKernel, ProfileProduct, divided)]
    made: type[ProductKernel] = composed_class(
        ProductKernel,
        _roles(kernels, HashableProduct, ColumnProduct, narrower),
        signed=any(kernel.signed for kernel in kernels),
        positive_definite=all(kernel.positive_definite for kernel in kernels),
    )
    return made(dim, tuple(factors))


def _product_from_json(parameters: Mapping[str, Any]) -> Kernel:
    dim, factors = parameters["dim"], parameters["factors"]
    if type(dim) is not int or not isinstance(factors, list) or not 1 <= len(factors) <= MOST_FACTORS:
        raise ValueError("factors")
    kernels = []
    for each in factors:
        if set(each) != {"kernel", "columns"} or each["kernel"].get("name") in composed_names():
            raise ValueError("a factor is one kernel")
        if not all(type(column) is int for column in each["columns"]):
            raise ValueError("columns")
        kernels.append(placed(kernel_from_json(each["kernel"]), tuple(each["columns"]), dim))
    return product(*kernels)


register_composed(ProductKernel.name, _product_from_json)


MOST_COMPONENTS = 64
_CONVEX = 1e-9


@dataclass(frozen=True, repr=False)
class CombinationKernel(_Composed, Kernel):
    """A linear combination of kernels of the same columns: ``a*k1 + b*k2 − …``.

    Made by ``+``, ``-`` and multiplication with numbers, not by hand. It is the sum of the weights where
    record and query coincide, and may be negative where a weight is. Hash rows count it where all components
    have hash functions (or are products of such kernels); a grid reads it where all are profiles; Fourier
    features count it where all have frequencies, and weights are positive and add up to 1.

    Privacy
    -------
    Weights are applied when a released table is read, which is post-processing, so their size and sign change
    no sensitivity; see `DividedRows`.
    """

    name: ClassVar[str] = "combination"
    takes_bounds: ClassVar[bool] = False
    instead_of_bounds: ClassVar[str] = "clip the columns of numbers beforehand"

    components: tuple[Component[Kernel], ...]

    @property
    def dim(self) -> int | None:
        """The number of columns of a record; None where records are sets."""
        return self.components[0].kernel.dim

    def __repr__(self) -> str:
        return " + ".join(f"{weight!r} * ({kernel!r})" for weight, kernel in self.components)

    def parameters(self) -> dict[str, Any]:
        """The components with their weights, as JSON values."""
        components = [{"weight": weight, "kernel": kernel_as_json(each)} for weight, each in self.components]
        return {"components": components}

    def size_bound(self) -> float:
        """The sum of the components' bounds, times the sizes of their weights."""
        return math.fsum(abs(weight) * kernel.size_bound() for weight, kernel in self.components)

    def members(self) -> list[Any]:
        """The kernels of the components."""
        return [kernel for _, kernel in self.components]

    def parts(self) -> list[Kernel]:
        """The components, and the factors of those that are products."""
        return [part for _, kernel in self.components for part in kernel.parts()]

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        data = in_memory(data)
        prepared = [kernel.prepare(data, clip=clip, columns=names) for _, kernel in self.components]
        return Batch.joined([part for batch in prepared for part in batch.parts()])

    def split(self, batch: Batch) -> list[Batch]:
        """The records as each component takes them."""
        if batch.layout is None:
            return [batch] * len(self.components)
        parts, found = iter(batch.parts()), []
        for _, kernel in self.components:
            if isinstance(kernel, ProductKernel) and not isinstance(kernel, ColumnKernel):
                found.append(Batch.joined(list(itertools.islice(parts, len(kernel.factors)))))
            else:
                found.append(next(parts))
        return found

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        result = np.zeros((len(records), len(queries)))
        parts = zip(self.components, self.split(records), self.split(queries), strict=True)
        for (weight, kernel), x, q in parts:
            result += weight * kernel.prepared_similarity(x, q)
        return result


class HashableCombination(CombinationKernel):
    """All components are collision probabilities. Hash rows are divided among them, and their weights are
    applied when a released table is read.
    """

    components: tuple[Component[HashableKernel], ...]

    def hashed_components(self) -> tuple[tuple[float, HashableKernel], ...]:
        """Weights, none of them 0, and kernels."""
        return self.components


HASH_ROWS = Role(
    "is a collision probability of hash functions, or a linear combination of such kernels",
    lambda kernel: isinstance(kernel, HashableKernel | HashableCombination),
)


class ColumnCombination(CombinationKernel, _ColumnsOfMembers):
    """All components compare numbers."""

    takes_bounds: ClassVar[bool] = True
    components: tuple[Component[ColumnKernel], ...]
    _prepared = Kernel._prepared

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self.components[0].kernel.dim

    def integral(self) -> float:
        """The combination of the integrals; infinity where one has none."""
        total = sum(weight * kernel.integral() for weight, kernel in self.components)
        return total if math.isfinite(total) else math.inf


class SpectralCombination(ColumnCombination, SpectralKernel):
    """A mixture of spectral measures: weights are positive and add up to 1."""

    rotation_invariant: ClassVar[bool] = False
    components: tuple[Component[SpectralKernel], ...]

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Each row is a frequency of a component that is drawn with its weight. They are never orthogonal."""
        chosen = self._chosen(uniforms(row_words("combination/component", seed, rows, 1))[:, 0])
        found = np.empty((rows, self.dim), np.float32)
        for number, (_, kernel) in enumerate(self.components):
            own = derived_seed("combination", seed, number)
            frequencies = kernel.frequencies(rows=rows, seed=own, orthogonal=False)
            found[chosen == number] = frequencies[chosen == number]
        return found

    @property
    def coordinates(self) -> int:
        """One for the component, and the most of any; 0 where a component has none."""
        several = [kernel.coordinates for _, kernel in self.components]
        return 1 + max(several) if all(several) else 0

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """The first coordinate decides which component a frequency is of."""
        chosen = self._chosen(points[:, 0])
        found = np.empty((len(points), self.dim), np.float32)
        for number, (_, kernel) in enumerate(self.components):
            own = points[chosen == number, 1 : 1 + kernel.coordinates]
            found[chosen == number] = kernel.frequencies_at(own)
        return found

    def _chosen(self, drawn: Floats) -> NDArray[np.intp]:
        """The component of each frequency, from a uniform number."""
        edges = np.cumsum([weight for weight, _ in self.components])[:-1]
        return np.searchsorted(edges, drawn, side="right")


class ProfileCombination(ColumnCombination, ProfileKernel):
    """All components are sums of products over columns."""

    components: tuple[Component[ProfileKernel], ...]

    def column_widths(self) -> tuple[float, ...]:
        """The smallest of the components', in each column."""
        widths = [kernel.column_widths() for _, kernel in self.components]
        return tuple(map(min, zip(*widths, strict=True)))

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """The profiles of all components, multiplied by the weights of the components."""
        return tuple(
            Profile(weight * each.height, each.scales, each.gaussian)
            for weight, kernel in self.components
            for each in kernel.profiles(spacings=spacings, sides=sides)
        )


def combination_of(components: Sequence[Component[Kernel]]) -> CombinationKernel:
    """The combination in the class that has the roles of its components."""
    weights, kernels = zip(*components, strict=True)
    convex = min(weights) > 0.0 and abs(math.fsum(weights) - 1.0) <= _CONVEX
    narrower = [(SpectralKernel, SpectralCombination, convex), (ProfileKernel, ProfileCombination, True)]
    made: type[CombinationKernel] = composed_class(
        CombinationKernel,
        _roles(kernels, HashableCombination, ColumnCombination, narrower),
        signed=min(weights) < 0.0 or any(kernel.signed for kernel in kernels),
        positive_definite=min(weights) > 0.0 and all(kernel.positive_definite for kernel in kernels),
    )
    return made(tuple(components))


def _combination_from_json(parameters: Mapping[str, Any]) -> Kernel:
    components = parameters["components"]
    if not isinstance(components, list) or not 1 <= len(components) <= MOST_COMPONENTS:
        raise ValueError("components")
    parts = []
    for each in components:
        nested = each["kernel"].get("name") == CombinationKernel.name
        if set(each) != {"weight", "kernel"} or nested or type(each["weight"]) not in (int, float):
            raise ValueError("a component is a weight and one kernel")
        parts.append((float(each["weight"]), kernel_from_json(each["kernel"])))
    return combination(*parts)


register_composed(CombinationKernel.name, _combination_from_json)


_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True, repr=False)
class ScaledKernel(_Composed, ColumnKernel):
    """``k(x/u, q/u)``: a kernel of columns that are divided by public units, one per column.

    Made by :func:`hushsum.kernels.scaled` and by ``scale="bounds"``, not by hand. Records and queries stay
    in the
    units of the data. It has the roles of its kernel: hash rows, Fourier features and grids count it where
    they count that.

    Privacy
    -------
    Every number of a record is divided by the unit of its column, elementwise and rounded once, so the hash
    of a record depends on that record alone. Sensitivities are those of the kernel. Units are public: they
    come from declared bounds, never from records.
    """

    name: ClassVar[str] = "scaled"

    kernel: ColumnKernel
    units: tuple[float, ...]

    def __post_init__(self) -> None:
        COLUMNS.check(self.kernel, "scaled columns")
        units = tuple(float(each) for each in self.units)
        if len(units) != self.kernel.dim or not all(_SMALLEST <= each <= _LARGEST for each in units):
            rule = f"must be {self.kernel.dim} numbers from 1e-30 to 1e30, one for each column"
            raise UsageError("units", rule, got="others", remedy="take the widths of the declared bounds")
        object.__setattr__(self, "units", units)

    def __repr__(self) -> str:
        return f"scaled({self.kernel!r}, units={self.units!r})"

    def parameters(self) -> dict[str, Any]:
        """The kernel, and the unit of each column, as JSON values."""
        return {"kernel": kernel_as_json(self.kernel), "units": list(self.units)}

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self.kernel.dim

    @property
    def bandwidth(self) -> float:
        """The smallest of the columns', in the units of the data."""
        return self.kernel.bandwidth * min(self.units)

    @property
    def width(self) -> float:
        """The smallest of the columns', in the units of the data."""
        return min(self.column_widths())

    def column_widths(self) -> tuple[float, ...]:
        """The width along each column, in the units of the data."""
        return self._in_data(self.kernel.column_widths())

    def column_bandwidths(self) -> tuple[float, ...]:
        """The bandwidth in each column, in the units of the data."""
        return self._in_data(self.kernel.column_bandwidths())

    def _in_data(self, scales: Sequence[float]) -> tuple[float, ...]:
        """Scales of the columns of the kernel in the units of the data."""
        return tuple(scale * unit for scale, unit in zip(scales, self.units, strict=True))

    def unscaled(self) -> ColumnKernel:
        """The kernel of the columns divided by their units."""
        return self.kernel

    def size_bound(self) -> float:
        """The size bound of the kernel."""
        return self.kernel.size_bound()

    def integral(self) -> float:
        """The integral of the kernel times the units."""
        return self.kernel.integral() * math.prod(self.units)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        units = np.array(self.units)
        inside = [
            Batch((each.arrays[0].astype(np.float64) / units,), len(each)) for each in (records, queries)
        ]
        return self.kernel.prepared_similarity(*inside)


class HashableColumns(ColumnKernel, HashableKernel):
    """A collision probability of columns of numbers."""


class HashableScaled(ScaledKernel, HashableKernel):
    """The kernel is a collision probability, and so is this one."""

    kernel: HashableColumns

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The hash functions of the kernel, of records divided by the units."""
        inner = self.kernel.hasher(rows=rows, width=width, seed=seed)
        return BlockwiseHasher(inner, lambda arrays: [_divided(arrays[0], self.units)])

    def numbers_per_row(self) -> int:
        """The numbers per row of the kernel."""
        return self.kernel.numbers_per_row()

    def distinct_hashes(self) -> int | None:
        """The number of distinct hashes of the kernel."""
        return self.kernel.distinct_hashes()

    def independent_rows(self) -> int:
        """The independent rows of the kernel."""
        return self.kernel.independent_rows()

    def typical_row_variance(self) -> float:
        """The typical row variance of the kernel."""
        return self.kernel.typical_row_variance()


class SpectralScaled(ScaledKernel, SpectralKernel):
    """The kernel has a spectral measure: its frequencies are divided by the units."""

    rotation_invariant: ClassVar[bool] = False
    kernel: SpectralKernel

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """The frequencies of the kernel, per unit of the data. They are not orthogonal."""
        own = self.kernel.frequencies(rows=rows, seed=seed, orthogonal=False).astype(np.float64)
        return single_precision(own / np.array(self.units))

    @property
    def coordinates(self) -> int:
        """Those of the kernel."""
        return self.kernel.coordinates

    def frequencies_at(self, points: Floats) -> NDArray[np.float32]:
        """The frequencies of the kernel, per unit of the data."""
        own = self.kernel.frequencies_at(points).astype(np.float64)
        return single_precision(own / np.array(self.units))


class ProfileScaled(ScaledKernel, ProfileKernel):
    """The kernel is a sum of products over columns, and so is this one."""

    kernel: ProfileKernel

    @property
    def smooth(self) -> bool:
        """Whether the kernel is."""
        return self.kernel.smooth

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """The profiles of the kernel, with scales in the units of the data."""
        own = self.kernel.profiles(
            spacings=[each / unit for each, unit in zip(spacings, self.units, strict=True)],
            sides=[each / unit for each, unit in zip(sides, self.units, strict=True)],
        )
        return tuple(replace(each, scales=self._in_data(each.scales)) for each in own)

    def column_profile(self) -> ColumnProfile | None:
        """None: the columns have profiles of their own."""
        return None


def _divided(rows: NDArray[np.float32], units: Sequence[float]) -> NDArray[np.float32]:
    """Rows divided by units, elementwise and rounded once."""
    with np.errstate(over="ignore"):
        divided = np.divide(rows, np.array(units, np.float32), dtype=np.float32)
    # Small units can bring large numbers beyond float32; projections of infinity are not numbers.
    return np.ascontiguousarray(single_precision(divided))


def scaled_by(kernel: ColumnKernel, units: Sequence[float]) -> ColumnKernel:
    """The kernel of columns divided by units; where all have the same one, the kernel with another bandwidth.

    >>> from hushsum.kernels import GaussianKernel
    >>> scaled_by(GaussianKernel(dim=1, bandwidth=0.05), [200.0])
    GaussianKernel(dim=1, bandwidth=10.0, power=1)
    """
    if len(set(units)) == 1 and "bandwidth" in kernel.parameters():
        wider: ColumnKernel = replace(cast("Any", kernel), bandwidth=kernel.bandwidth * float(units[0]))
        return wider
    possible = (
        (HashableKernel, HashableScaled),
        (SpectralKernel, SpectralScaled),
        (ProfileKernel, ProfileScaled),
    )
    roles = [made for role, made in possible if isinstance(kernel, role)]
    made: type[ScaledKernel] = composed_class(
        ScaledKernel, tuple(roles), signed=kernel.signed, positive_definite=kernel.positive_definite
    )
    return made(kernel, tuple(units))


def scaled(kernel: Kernel, bounds: object, columns: Sequence[str] | None = None) -> ColumnKernel:
    """A kernel whose bandwidth is a fraction of the declared range of each column.

    Parameters
    ----------
    kernel : Kernel
        Of columns of numbers; its bandwidth is a fraction, such as 0.05.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never computed from the records.
    columns : list of str, optional
        The names of the columns, for a dictionary.

    Returns
    -------
    Kernel
        In the units of the data: records, queries and pictures need no conversion.

    Raises
    ------
    UsageError
        for a kernel that does not compare numbers, or without bounds.

    Examples
    --------
    >>> import hushsum as hs
    >>> bounds = [(0, 120), (0, 300_000)]
    >>> near = hs.kernels.scaled(hs.GaussianKernel(dim=2, bandwidth=0.05), bounds)
    >>> near.column_bandwidths()
    (6.0, 15000.0)
    >>> near.similarity([[30, 50_000]], [[36, 50_000], [30, 65_000]]).round(3)
    array([[0.607, 0.607]])
    """
    COLUMNS.check(kernel, 'scale="bounds"')
    assert isinstance(kernel, ColumnKernel)
    names = list(bounds) if columns is None and isinstance(bounds, Mapping) else columns
    box = Bounds.of(bounds, kernel.dim, names)
    if box is None:
        rule = "must be declared where the bandwidth is a fraction of them"
        raise UsageError("bounds", rule, got="none", remedy="declare the range that a record may have")
    return scaled_by(kernel, box.widths)


def _scaled_from_json(parameters: Mapping[str, Any]) -> Kernel:
    if set(parameters) != {"kernel", "units"} or not isinstance(parameters["units"], list):
        raise ValueError("a scaled kernel has a kernel and units")
    if not all(type(each) is float and _SMALLEST <= each <= _LARGEST for each in parameters["units"]):
        raise ValueError("units")
    inner = kernel_from_json(parameters["kernel"])
    if not isinstance(inner, ColumnKernel) or isinstance(inner, ScaledKernel):
        raise ValueError("a scaled kernel is of one that compares numbers")
    if len(parameters["units"]) != inner.dim:
        raise ValueError("units")
    return scaled_by(inner, parameters["units"])


register_composed(ScaledKernel.name, _scaled_from_json)


# The least weight of a component: squares of less would vanish beside others.
_NEGLIGIBLE = 1e-12
Columns = int | str | Sequence[int] | Sequence[str]


def on_columns(kernel: Kernel, columns: Columns, *, of: int | Sequence[str]) -> Kernel:
    """A kernel of some columns of wider records: the others make no difference to it.

    Multiplied, such kernels compare records that mix numbers, categories and sets; added, they compare
    records by groups of columns.

    Parameters
    ----------
    kernel : Kernel
        Of as many columns as are given. A kernel of sets takes one column, whose values are lists of
        integers.
    columns : int, str, or a list of them
        Positions from 0 on, or names, in the order in which the kernel takes them.
    of : int or list of str
        All columns of a record: how many, or their names in their order. Names are for finding positions:
        give them as ``columns=`` to the release too, if frames are to be read by name.

    Raises
    ------
    UsageError
        if a column is not one of the record, or the kernel takes another number of them.

    Examples
    --------
    >>> import hushsum as hs
    >>> columns = ["age", "income", "town"]
    >>> near = hs.kernels.on_columns(hs.EuclideanKernel(dim=1, bandwidth=10.0), "age", of=columns)
    >>> same = hs.kernels.on_columns(hs.HammingKernel(dim=1), "town", of=columns)
    >>> (near * same).similarity([[30, 5.0, 2]], [[40, 9.0, 2], [30, 5.0, 1]]).round(3)
    array([[0.369, 0.   ]])
    """
    names = None if isinstance(of, int) else list(of)
    dim = of if isinstance(of, int) else len(of)
    listed: list[Any] = [columns] if isinstance(columns, int | str) else list(columns)
    places = []
    for each in listed:
        found = names.index(each) if names is not None and each in names else each
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < dim:
            rule = f"must be positions from 0 to {dim - 1}, or names of columns"
            remedy = "name columns that are in the list of all"
            raise UsageError("columns", rule, got=shown(each), remedy=remedy)
        places.append(found)
    return placed(kernel, tuple(places), dim)


def placed(kernel: Kernel, columns: tuple[int, ...], dim: int) -> Kernel:
    """A kernel of the columns at these positions, of ``dim``."""
    _check_same_columns([kernel])
    dim = positive_integer("of", dim, at_most=MAX_DIM)
    wide = 1 if kernel.dim is None else kernel.dim
    if len(columns) != wide or len(set(columns)) != wide:
        rule = f"must be {wide} different columns for this kernel"
        raise UsageError("columns", rule, got=len(columns), remedy="give a column for each of its own")
    if not all(0 <= column < dim for column in columns):
        raise UsageError("columns", f"must be positions from 0 to {dim - 1}", got="another")
    if isinstance(kernel, CombinationKernel):
        return combination(*((weight, placed(each, columns, dim)) for weight, each in kernel.components))
    factors = _factors(kernel) if isinstance(kernel, ProductKernel) else [Factor(kernel, tuple(range(wide)))]
    return _normal_product(
        dim, [Factor(each, tuple(columns[place] for place in places)) for each, places in factors]
    )


def product(*kernels: Kernel) -> Kernel:
    """The product of kernels of the same columns; sums are multiplied out.

    >>> from hushsum.kernels import EuclideanKernel
    >>> product(EuclideanKernel(2, 1.0), EuclideanKernel(2, 1.0))
    EuclideanKernel(dim=2, bandwidth=1.0, power=2, projection='dense')
    """
    _check_same_columns(kernels)
    if any(isinstance(each, CombinationKernel) for each in kernels):
        sums = [_components(each) for each in kernels]
        _check_number(math.prod(map(len, sums)))
        return combination(
            *(
                (math.prod(weight for weight, _ in chosen), product(*(kernel for _, kernel in chosen)))
                for chosen in itertools.product(*sums)
            )
        )
    dim = kernels[0].dim
    factors = [factor for each in kernels for factor in _factors(each)]
    if dim is None:
        merged = _merged(factors)
        if len(merged) > 1:
            rule = "must be one kernel and its powers, where records are sets"
            raise UsageError("kernel", rule, got="two", remedy="put the sets in columns with on_columns")
        return merged[0].kernel
    return _normal_product(dim, factors)


def combination(*components: tuple[float, Kernel]) -> Kernel:
    """Σ weight·kernel, of kernels of the same columns; those of weight 0 are left out.

    >>> from hushsum.kernels import EuclideanKernel
    >>> k = EuclideanKernel(dim=1, bandwidth=1.0)
    >>> combination((0.5, k), (0.5, k))
    EuclideanKernel(dim=1, bandwidth=1.0, power=1, projection='dense')
    """
    _check_same_columns([kernel for _, kernel in components])
    total: dict[Kernel, float] = {}
    for weight, kernel in components:
        for own, each in _components(kernel):
            total[each] = total.get(each, 0.0) + _weight(weight) * own
    # What is left where weights cancel up to rounding is 0.
    kept = [
        Component(_weight(weight), kernel) for kernel, weight in total.items() if abs(weight) >= _NEGLIGIBLE
    ]
    if not kept:
        raise UsageError("kernel", "must not be zero", got="weights that cancel", remedy="change a weight")
    _check_number(len(kept))
    if len(kept) == 1 and kept[0].weight == 1.0:
        return kept[0].kernel
    return combination_of(kept)


def power_of(kernel: Kernel, power: int) -> Kernel:
    """A kernel to a positive integer power."""
    number = positive_integer("power", power, at_most=MAX_POWER)
    if number == 1:
        return kernel
    if isinstance(kernel, CombinationKernel):
        half = power_of(product(kernel, kernel), number // 2)
        return product(half, kernel) if number % 2 else half
    if isinstance(kernel, ProductKernel):
        return _normal_product(kernel.dim, [each for each in kernel.factors for _ in range(number)])
    return product(*[kernel] * number)


def _normal_product(dim: int, factors: Sequence[Factor[Kernel]]) -> Kernel:
    merged = _merged(factors)
    if len(merged) > MOST_FACTORS:
        raise UsageError("kernel", f"must have at most {MOST_FACTORS} factors", got=len(merged))
    kernel, columns = merged[0]
    if len(merged) == 1 and _are_all(columns, dim) and kernel.dim is not None:
        return kernel
    return product_of(dim, merged)


def _merged(factors: Sequence[Factor[Kernel]]) -> list[Factor[Kernel]]:
    """Equal kernels of the same columns, up to a power, as one of the sum of the powers; in one order,
    whatever the order in which they were multiplied.
    """
    found: list[Factor[Kernel]] = []
    powers: dict[Factor[Kernel], int] = {}
    for each in factors:
        power = each.kernel.parameters().get("power")
        if type(power) is int:
            single = Factor(_powered(each.kernel, 1), each.columns)
            powers[single] = powers.get(single, 0) + power
        else:
            found.append(each)
    found += [Factor(_powered(kernel, power), columns) for (kernel, columns), power in powers.items()]
    return sorted(found, key=lambda each: (each.columns, canonical_json(kernel_as_json(each.kernel))))


def _powered(kernel: Kernel, power: int) -> Kernel:
    changed: Kernel = replace(cast("Any", kernel), power=power)
    return changed


def _factors(kernel: Kernel) -> tuple[Factor[Kernel], ...]:
    if isinstance(kernel, ProductKernel):
        return kernel.factors
    return (Factor(kernel, tuple(range(kernel.dim or 1))),)


def _components(kernel: Kernel) -> tuple[Component[Kernel], ...]:
    return kernel.components if isinstance(kernel, CombinationKernel) else (Component(1.0, kernel),)


def _weight(value: float) -> float:
    number = as_float(value)
    if not math.isfinite(number) or abs(number) > 1e12 or 0.0 < abs(number) < _NEGLIGIBLE:
        rule = f"must be 0, or a finite number from {_NEGLIGIBLE:g} to 1e12 or its negative"
        remedy = "multiply kernels with numbers, or with kernels"
        raise UsageError("weight", rule, got=shown(value), remedy=remedy)
    return number


def _check_number(number: int) -> None:
    if number > MOST_COMPONENTS:
        rule = f"must be a combination of at most {MOST_COMPONENTS} products"
        raise UsageError("kernel", rule, got=number, remedy="fit fewer with hushsum.kernels.fit_kernel")


def _check_same_columns(kernels: Sequence[Kernel]) -> None:
    for each in kernels:
        if not isinstance(each, Kernel):
            raise UsageError("kernel", "must be a kernel", got=type(each).__name__)
        if isinstance(each, ScaledKernel):
            rule = "must not have units of its own, to be multiplied, added or placed"
            raise UsageError("kernel", rule, got="a scaled kernel", remedy="scale the result instead")
    if len({each.dim for each in kernels}) > 1:
        listed = ", ".join("sets" if each.dim is None else str(each.dim) for each in kernels)
        rule = "must be kernels of the same number of columns, to be multiplied or added"
        remedy = "place each with on_columns(kernel, columns, of=...)"
        raise UsageError("kernel", rule, got=listed, remedy=remedy)


LONGEST = 2000
"""Characters of an expression."""

MOST_COLUMNS = 1 << 16
"""Columns of records that a text may name by position."""
_EXAMPLE = "'euclidean(age, bandwidth=10) * hamming(town)'"

RecordColumns = int | Sequence[str] | None
"""The columns of a record: how many, or their names; None where they are not known."""

Atom = tuple[str, list[int | str], dict[str, Any]]
"""A kernel's name, columns and parameters."""


@dataclass(frozen=True, slots=True)
class KernelExpression:
    """A kernel before the columns of the records are known.

    >>> text = KernelExpression("euclidean(age, bandwidth=10) * hamming(town)")
    >>> text.build(columns=["town", "age"]).similarity([[3, 30.0]], [[3, 40.0]]).round(3)
    array([[0.369]])
    """

    text: str

    def __post_init__(self) -> None:
        # Checks every name and operation.
        self._parsed()

    @property
    def takes_sets(self) -> bool:
        """Whether records are sets, and not rows of columns."""
        _, atoms = self._parsed()
        return all("dim" not in parameter_names(name) and not columns for name, columns, _ in atoms)

    def example_columns(self, dim: int | None = None) -> list[str] | None:
        """Example names for the columns of records that suit the text: first the names that the text
        mentions, in order, then placeholders. None where records are sets.
        """
        if self.takes_sets:
            return None
        listed = [each for _, columns, _ in self._parsed()[1] for each in columns]
        names = list(dict.fromkeys(each for each in listed if isinstance(each, str)))
        places = [each for each in listed if isinstance(each, int)]
        number = max(dim or 1, len(names), *(each + 1 for each in places), 1)
        return names + [f"another column {place}" for place in range(number - len(names))]

    def build(
        self,
        dim: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> Kernel:
        """The kernel for records of ``dim`` columns, or with columns of these names.

        ``defaults`` are parameters of the kernels in it that take them and do not state them.

        Raises
        ------
        UsageError
            if a parameter is missing or wrong, or a column is not there.
        """
        tree, atoms = self._parsed()
        given = {name: value for name, value in (defaults or {}).items() if value is not None}
        taken = {name for kernel, _, _ in atoms for name in parameter_names(kernel)}
        for name in given:
            if name not in taken:
                raise UsageError(("no kernel of the expression has ", Parameter(name)))
        named_all = columns is not None and len(columns) == (dim or len(columns))
        try:
            value = self._value(tree, columns if named_all else dim, given)
        except RecursionError:
            _refuse("too deep")
        return value if isinstance(value, Kernel) else _refuse("a number")

    def _parsed(self) -> tuple[ast.expr, list[Atom]]:
        """The tree, and the kernels in it."""
        if not isinstance(self.text, str) or len(self.text) > LONGEST:
            _refuse(f"one longer than {LONGEST} characters")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            _refuse(shown(self.text))
        try:
            found = [_atom(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
            self._check(tree, found)
        except RecursionError:
            _refuse("too deep")
        return (tree, found) if found else _refuse(shown(self.text))

    def _check(self, node: ast.expr, found: list[Atom]) -> None:
        """Refuse what is not an operation on kernels, and add the kernels that have no brackets."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Pow):
            self._check(node.left, found)
            self._check(node.right, found)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self._check(node.operand, found)
        elif isinstance(node, ast.Name):
            found.append(_atom(node))
        elif not (isinstance(node, ast.Call) or _is_number(node)):
            _refuse(shown(self.text))

    def _value(self, node: ast.expr, of: RecordColumns, given: Mapping[str, object]) -> Kernel | float:
        if isinstance(node, ast.Constant):
            try:
                return float(node.value)  # type: ignore[arg-type]
            except OverflowError:
                _refuse("a number beyond all")
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, of, given)
            return value if isinstance(node.op, ast.UAdd) else -value
        if isinstance(node, ast.BinOp):
            left = self._value(node.left, of, given)
            if isinstance(node.op, ast.Pow):
                if not isinstance(left, Kernel) or not isinstance(node.right, ast.Constant):
                    _refuse("a power that is not an integer")
                return power_of(left, cast("int", node.right.value))
            right = self._value(node.right, of, given)
            if isinstance(node.op, ast.Mult):
                return left * right
            if not (isinstance(left, Kernel) and isinstance(right, Kernel)):
                _refuse("a number that is added to a kernel")
            return left + right if isinstance(node.op, ast.Add) else left - right
        name, columns, parameters = _atom(node)
        return _built(name, columns, {**given, **parameters}, parameters, of)


def _built(
    name: str,
    columns: list[int | str],
    parameters: Mapping[str, Any],
    stated: Mapping[str, Any],
    of: RecordColumns,
) -> Kernel:
    taken = parameter_names(name)
    # What is stated must be a parameter of this kernel; a default only where it is one.
    values = {key: value for key, value in parameters.items() if key in taken or key in stated}
    if not columns:
        whole = of if of is None or isinstance(of, int) else len(of)
        return named(name, dim=whole if "dim" in taken else None, **values)
    if of is None:
        rule = "must not name columns where the records' columns are not known"
        raise UsageError("kernel", rule, remedy="declare the columns")
    kernel = named(name, dim=len(columns) if "dim" in taken else None, **values)
    return on_columns(kernel, cast("Any", columns), of=of)


def _atom(node: ast.expr) -> Atom:
    if isinstance(node, ast.Name):
        return _kernel_name(node.id), [], {}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        _refuse("something else than kernels and numbers")
    columns: list[int | str] = []
    for each in node.args:
        if isinstance(each, ast.Name):
            columns.append(each.id)
        elif isinstance(each, ast.Constant) and type(each.value) in (int, str):
            if type(each.value) is int and each.value >= MOST_COLUMNS:
                _refuse(f"a position beyond {MOST_COLUMNS} columns")
            columns.append(cast("int | str", each.value))
        else:
            _refuse("columns that are neither names nor positions")
    parameters: dict[str, Any] = {}
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg is None or keyword.arg == "dim":
            _refuse("a parameter that is not one of a kernel's text")
        if keyword.arg in parameters:
            _refuse(f"two values for {keyword.arg}")
        if isinstance(value, ast.Name):
            parameters[keyword.arg] = value.id
        elif isinstance(value, ast.Constant) and type(value.value) in (int, float, str):
            parameters[keyword.arg] = value.value
        else:
            _refuse(f"a {keyword.arg} that is neither a number nor a word")
    return _kernel_name(node.func.id), columns, parameters


def _kernel_name(text: str) -> str:
    name = text.replace("_", "-")
    if name not in kernel_names():
        rule = f"must be made of {', '.join(kernel_names())}"
        raise UsageError("kernel", rule, got=shown(text), remedy="choose among those")
    return name


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _refuse(got: str) -> NoReturn:
    rule = "must be the name of a kernel, or kernels joined by *, + and -"
    raise UsageError("kernel", rule, got=got, remedy=f"write such as {_EXAMPLE}")


def as_expression(kernel: Kernel) -> str:
    """A kernel as text, from which `KernelExpression` makes the same one.

    >>> from hushsum.kernels import EuclideanKernel, HammingKernel, on_columns
    >>> near, same = EuclideanKernel(2, 1.0), HammingKernel(1)
    >>> as_expression(on_columns(near, [0, 1], of=3) * on_columns(same, 2, of=3) - 0.5 * HammingKernel(3))
    '1.0 * euclidean(0, 1, bandwidth=1.0) * hamming(2) - 0.5 * hamming'
    """
    if isinstance(kernel, CombinationKernel):
        parts = [
            f"{'-' if weight < 0 else '+'} {abs(weight)!r} * {as_expression(each)}"
            for weight, each in kernel.components
        ]
        text = " ".join(parts)
        return text[2:] if text.startswith("+") else f"-{text[2:]}"
    if isinstance(kernel, ProductKernel):
        return " * ".join(_written(*each) for each in kernel.factors)
    return _written(kernel, ())


def _written(kernel: Kernel, columns: Sequence[int]) -> str:
    defaults = {field.name: field.default for field in fields(cast("Any", kernel))}
    parameters = [
        f"{name}={value if isinstance(value, str) else repr(value)}"
        for name, value in kernel.parameters().items()
        if name != "dim" and value != defaults[name]
    ]
    inside = ", ".join([*map(str, columns), *parameters])
    name = kernel.name.replace("-", "_")
    return f"{name}({inside})" if inside else name


UNITS, OF_BOUNDS = "units", "bounds"
SCALES: Final = (UNITS, OF_BOUNDS)
MOST_UNEQUAL: Final = 10.0
"""Columns whose declared ranges differ by more than this have different units, and no bandwidth in the units
of the data suits both.
"""
_NARROWEST: Final = 10_000


def in_scale(
    kernel: Kernel,
    scale: str | None,
    bounds: object,
    columns: Sequence[str] | None = None,
    *,
    default: bool = True,
) -> Kernel:
    """The kernel in the units of the data, whatever its bandwidth is measured in.

    Parameters
    ----------
    kernel : Kernel
        With the bandwidth as it was given.
    scale : {"units", "bounds", None}
        ``"bounds"``: the bandwidth is a fraction of the declared range of each column. None is that where the
        declared ranges of two columns differ by more than ten times, and ``"units"`` otherwise.
    bounds : declared bounds, optional
    columns : list of str, optional
        The names of the columns, for bounds by name.
    default : bool
        Whether None may mean ``"bounds"``. It does not for kernels whose factors state bandwidths of their
        own.

    Raises
    ------
    UsageError
        for a scale of another name, ``"bounds"`` without bounds, or a bandwidth above 1 that was not declared
        to be a fraction.

    Examples
    --------
    >>> from hushsum.kernels import GaussianKernel
    >>> near = in_scale(GaussianKernel(dim=2, bandwidth=0.1), None, [(0, 120), (0, 300_000)])
    >>> near.column_bandwidths()
    (12.0, 30000.0)
    >>> in_scale(GaussianKernel(dim=2, bandwidth=10.0), None, [(0, 120), (0, 250)])
    GaussianKernel(dim=2, bandwidth=10.0, power=1)
    """
    if scale is not None and scale not in SCALES:
        raise UsageError("scale", f"must be {' or '.join(SCALES)}", got=shown(scale))
    if scale == OF_BOUNDS:
        return scaled(kernel, bounds, columns)
    if scale == UNITS or not default or bounds is None or not isinstance(kernel, ColumnKernel):
        return kernel
    if isinstance(kernel, ScaledKernel) or kernel.dim == 1:
        return kernel
    box = Bounds.of(bounds, kernel.dim, columns)
    if box is None or not different_units(box):
        return kernel
    if kernel.bandwidth > math.sqrt(kernel.dim):
        raise UsageError(
            "bandwidth",
            "must be a fraction of the declared range of each column, because the ranges of "
            f"two columns differ by more than {MOST_UNEQUAL:g} times",
            got=f"{kernel.bandwidth:g}",
            remedy=("try 0.05, or give ", Argument("scale", UNITS), " for one in the units of the data"),
        )
    return scaled(kernel, box)


def in_units(
    kernel: Kernel, scale: str | None, bounds: object, columns: Sequence[str] | None = None
) -> tuple[float, ...]:
    """What one unit of the bandwidth is in each column, by the rules of :func:`in_scale`.

    >>> from hushsum.kernels import GaussianKernel
    >>> in_units(GaussianKernel(dim=2, bandwidth=1.0), "bounds", [(0, 120), (0, 4)])
    (120.0, 4.0)
    """
    if not isinstance(kernel, ColumnKernel):
        return (1.0,)
    one = in_scale(kernel, scale, bounds, columns)
    assert isinstance(one, ColumnKernel)
    return tuple(each / kernel.bandwidth for each in one.column_bandwidths())


def default_bandwidth(part: float, bounds: Bounds, scale: str | None) -> tuple[float, str | None]:
    """A bandwidth for declared bounds, and its scale: a part of the range of each column where their units
    differ, and otherwise of the widest range.

    >>> default_bandwidth(0.1, Bounds.of((0, 120), dim=2), None)
    (12.0, None)
    >>> default_bandwidth(0.1, Bounds.of([(0, 120), (0, 300_000)], dim=2), None)
    (0.1, 'bounds')
    """
    if scale == OF_BOUNDS or (scale is None and different_units(bounds)):
        return part, OF_BOUNDS
    return part * max(bounds.widths), scale


def different_units(bounds: Bounds) -> bool:
    """Whether the declared ranges of two columns differ so much that their units must differ.

    >>> different_units(Bounds.of([(0, 120), (0, 300_000)], dim=2))
    True
    """
    return max(bounds.widths) > MOST_UNEQUAL * min(bounds.widths)


def warn_of_bandwidth(
    kernel: Kernel, bounds: object, columns: Sequence[str] | None = None, *, level: int = 3
) -> None:
    """Warn of a bandwidth that does not suit the declared bounds, before anything is counted or debited.
    Everything that is looked at is public. ``level`` is as of ``warnings.warn``.
    """
    box = None if kernel.dim is None else Bounds.of(bounds, kernel.dim, columns)
    for sentence in bandwidth_warnings(kernel, box):
        warnings.warn(sentence, SuspiciousParameter, stacklevel=level + 1)


def bandwidth_warnings(kernel: Kernel, bounds: Bounds | None) -> list[str]:
    """What looks wrong about a bandwidth beside the declared bounds; all of it is public.

    >>> from hushsum.kernels import GaussianKernel
    >>> box = Bounds.of((0, 1), dim=1)
    >>> bandwidth_warnings(GaussianKernel(dim=1, bandwidth=0.05), box)
    []
    >>> bandwidth_warnings(GaussianKernel(dim=1, bandwidth=5.0), box)
    ['the bandwidth is larger than the declared range of every column: the function will be nearly constant.']
    """
    if bounds is None or not isinstance(kernel, ColumnKernel) or bounds.dim != kernel.dim:
        return []
    ratios = [each / side for each, side in zip(kernel.column_bandwidths(), bounds.widths, strict=True)]
    # Of d columns the diagonal of the box counts, which is √d times as long as a side.
    most = math.sqrt(kernel.dim)
    found = []
    if min(ratios) > most:
        found.append(
            "the bandwidth is larger than the declared range of every column: the function will be nearly "
            "constant."
        )
    elif max(ratios) > most:
        found.append(
            "the bandwidth is larger than the declared range of a column: the function will hardly depend on "
            'that column; scale="bounds" makes it a fraction of each range.'
        )
    if min(ratios) * _NARROWEST < 1.0:
        found.append(
            f"the bandwidth is below 1/{_NARROWEST} of the widest declared range: records are near each "
            "other by coincidence alone, and most answers will be noise."
        )
    return found


MOST_SUBSETS = 5000
_NO_WEIGHT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class WeightProblem:
    """Find w with few entries, Σ|w| ≤ limit, so that values @ w is close to target."""

    values: Floats
    target: Floats
    most: int
    signed: bool
    limit: float

    def solve(self, method: str, seconds: float) -> tuple[Floats, bool]:
        """The weights, and whether they have the least maximal error."""
        number = self.values.shape[1]
        if method == "least-squares":
            return self._least_squares(), False
        if method == "exhaustive":
            return self._exhaustive(), True
        if method == "auto" or number <= self.most:
            weights, _ = self._program(list(range(number)))
            if np.count_nonzero(weights) <= self.most:
                return weights, True
        return self._mixed_integer(seconds)

    def _program(self, columns: list[int]) -> tuple[Floats, float]:
        """Weights of these columns with the least maximal error: a linear program; and that error."""
        from scipy.optimize import linprog

        values, matrix, bound = self._constraints(columns)
        cost = np.zeros(values + 1)
        cost[-1] = 1.0
        found = linprog(cost, A_ub=matrix, b_ub=bound, bounds=(0.0, None), method="highs")
        # Feasible, since all weights may be 0, and bounded, since the error is not negative.
        assert found.x is not None
        assert found.fun is not None
        return self._weights(found.x, columns), float(found.fun)

    def _constraints(self, columns: list[int]) -> tuple[int, Floats, Floats]:
        """The constraints of the linear program.

        Its variables are the positive and, if allowed, the negative parts of the weights, then the maximal
        error.
        """
        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        ones = np.ones((len(both), 1))
        total = np.append(np.ones(both.shape[1]), 0.0)[np.newaxis]
        matrix = np.vstack((np.hstack((both, -ones)), np.hstack((-both, -ones)), total))
        return both.shape[1], matrix, np.concatenate((self.target, -self.target, [self.limit]))

    def _weights(self, solution: Floats, columns: list[int]) -> Floats:
        parts = solution[:-1]
        own = parts[: len(columns)] - parts[len(columns) :] if self.signed else parts
        weights = np.zeros(self.values.shape[1])
        weights[columns] = np.where(np.abs(own) > _NO_WEIGHT, own, 0.0)
        return weights

    def _exhaustive(self) -> Floats:
        number = self.values.shape[1]
        size = min(self.most, number)
        if math.comb(number, size) > MOST_SUBSETS:
            rule = f"must have at most {MOST_SUBSETS} subsets for an exhaustive search"
            remedy = "give fewer, or use another method"
            raise UsageError("components", rule, got=math.comb(number, size), remedy=remedy)
        # Smaller subsets are among these, with weights of 0.
        subsets = map(list, itertools.combinations(range(number), size))
        return min((self._program(each) for each in subsets), key=lambda found: found[1])[0]

    def _mixed_integer(self, seconds: float) -> tuple[Floats, bool]:
        from scipy.optimize import Bounds, LinearConstraint, milp

        number = self.values.shape[1]
        every = list(range(number))
        parts, matrix, bound = self._constraints(every)
        # Variables: parts of weights, the maximal error, and a switch for each component.
        switched = np.zeros((number, parts + 1 + number))
        for place in every:
            switched[place, place] = 1.0
            if self.signed:
                switched[place, number + place] = 1.0
            switched[place, parts + 1 + place] = -self.limit
        chosen = np.concatenate((np.zeros(parts + 1), np.ones(number)))[np.newaxis]
        rows = np.vstack((np.hstack((matrix, np.zeros((len(matrix), number)))), switched, chosen))
        upper = np.concatenate((bound, np.zeros(number), [self.most]))
        cost = np.zeros(parts + 1 + number)
        cost[parts] = 1.0
        found = milp(
            cost,
            constraints=LinearConstraint(rows, -np.inf, upper),
            integrality=np.concatenate((np.zeros(parts + 1), np.ones(number))),
            bounds=Bounds(0.0, np.concatenate((np.full(parts + 1, np.inf), np.ones(number)))),
            options={"time_limit": seconds},
        )
        if found.x is None:
            return self._least_squares(), False
        used = [place for place in every if found.x[parts + 1 + place] > 0.5]
        # The switches are exact only up to a tolerance: the weights are found again without them.
        return self._program(used)[0], bool(found.status == 0)

    def _least_squares(self) -> Floats:
        left = list(range(self.values.shape[1]))
        while True:
            weights = self._bounded_squares(left)
            used = [place for place in left if weights[place] != 0.0]
            if len(used) <= self.most:
                return weights
            effect = np.abs(weights[used]) * np.sqrt(np.mean(self.values[:, used] ** 2, axis=0))
            left = [place for place in used if place != used[int(effect.argmin())]]

    def _bounded_squares(self, columns: list[int]) -> Floats:
        """Non-negative least squares, with a price for Σ|w| that keeps it within the limit."""
        from scipy.optimize import nnls

        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        low, high = 0.0, 1e3
        price = low
        for _ in range(30):
            # The square of a price times the sum of all parts is one more equation.
            rows = np.vstack((both, np.full((1, both.shape[1]), price)))
            parts, _ = nnls(rows, np.append(self.target, 0.0), maxiter=50 * both.shape[1])
            if parts.sum() <= self.limit:
                high = price
                if price == 0.0 or high - low < 1e-3 * high:
                    break
            else:
                low = price
            price = math.sqrt(max(low, 1e-6) * high)
        parts = parts if parts.sum() <= self.limit else parts * (self.limit / parts.sum())
        return self._weights(np.append(parts, 0.0), columns)


METHODS = ("auto", "least-squares", "exhaustive", "milp")
MOST_CANDIDATES = 1000
MOST_PLACES = 20_000
"""Distances or pairs: a linear program has two rows for each, and two columns for each component."""
MOST_WEIGHT = 1e6
LARGEST_DISTANCE = 1e30
_POWERS = (1, 2, 4, 8, 16)
_SCALES = 15
_BETWEEN = 4
_PAIRS_AT_A_TIME = 64

Similarity = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FittedKernel:
    """A combination of kernels, and how far it is from its target.

    ``max_error`` and ``rms_error`` are over the distances or pairs that were given; of a function of the
    distance, over places between them too. ``weight_sum`` is Σ|weight|: the noise of a released answer grows
    in proportion to it. ``optimal`` is whether no combination of these components within the limits has a
    smaller maximal error at the given distances or pairs; false for least squares, and where the search ran
    out of time.
    """

    kernel: Kernel
    max_error: float
    rms_error: float
    weight_sum: float
    optimal: bool


def fit_kernel(
    target: Similarity | Sequence[float] | NDArray[Any],
    *,
    components: Sequence[Kernel] | None = None,
    distances: Sequence[float] | NDArray[Any] | None = None,
    pairs: tuple[object, object] | None = None,
    dim: int | None = None,
    most: int = 8,
    signed: bool = True,
    most_weight: float = 4.0,
    method: str = "auto",
    seconds: float = 20.0,
) -> FittedKernel:
    """A linear combination of at most ``most`` kernels that is close to a target similarity.

    Works well for similarities that fall smoothly. It does not work beyond what was given: at distances
    larger than the largest one, or unlike all pairs, the fitted kernel may be anything, so give the whole
    range that records and queries can have.

    Parameters
    ----------
    target : callable, or similarities of the pairs
        A function of an array of distances, if ``distances`` are given; of two arrays of records, row by row,
        if ``pairs`` are. Or the similarities themselves, one for each.
    components : list of Kernel, optional
        To choose from, of the same columns: any kernels that one method can release together. Default:
        Euclidean kernels of 15 bandwidths and the powers 1, 2, 4, 8 and 16, for ``dim`` columns.
    distances : array of shape (n,)
        Where the fit matters. Kernels are compared along the first column.
    pairs : two lists of records, in place of ``distances``
        Record i of the first with record i of the second.
    dim : int, optional
        The number of columns of the default components.
    most : int, default 8
        Of the components. Rows are divided among them.
    signed : bool, default True
        Allow negative weights. Without them a mixture of kernels with a corner has a corner.
    most_weight : float, default 4.0
        The largest sum of the weights' sizes: the noise of an answer grows in proportion to it.
    method : {"auto", "least-squares", "exhaustive", "milp"}
        ``"least-squares"`` is quick, for the mean square error: non-negative least squares, whose smallest
        weights are dropped one by one. The others find the least maximal error: ``"exhaustive"`` by a linear
        program for every subset, ``"milp"`` by mixed-integer programming (SciPy's HiGHS), and ``"auto"`` by a
        linear program over all components, and mixed-integer programming where that uses too many of them.
    seconds : float, default 20.0
        The longest time of mixed-integer programming; the best combination so far is taken then.

    Privacy
    -------
    The target, the distances, the pairs and the components are public, and so is the result: it becomes part
    of every release. Never fit on private records, or on a held-out part of them. Nothing is spent.

    Raises
    ------
    UsageError
        if neither or both of ``distances`` and ``pairs`` are given, there are fewer similarities than pairs,
        there are too many subsets for an exhaustive search, or a number is beyond its range.

    Notes
    -----
    The weights minimise a maximum of absolute values under linear constraints, which is a linear program;
    that at most ``most`` are not zero takes a binary variable for each.

    Examples
    --------
    >>> import hushsum as hs
    >>> import numpy as np
    >>> fit = hs.kernels.fit_kernel(lambda r: np.exp(-r**2 / 2), distances=np.linspace(0, 3, 31), dim=2)
    >>> fit.max_error < 0.02, len(fit.kernel.components) <= 8
    (True, True)
    """
    one_of("method", method, METHODS)
    number = positive_integer("most", most, at_most=64)
    limit = positive_number("most_weight", most_weight, remedy="1 is the weight of a single kernel")
    patience = positive_number("seconds", seconds, remedy="20 suits most fits")
    if limit > MOST_WEIGHT:
        rule = f"must be at most {MOST_WEIGHT:g}: the noise of an answer grows in proportion to it"
        raise UsageError("most_weight", rule, got=f"{limit:g}", remedy="4 suits most fits")
    if (distances is None) == (pairs is None):
        got = "none" if pairs is None else "both"
        raise UsageError("distances", ("or ", Parameter("pairs"), " must be given, and not both"), got=got)
    places = None if distances is None else _distances(distances)
    chosen = _default_components(dim, places) if components is None else _candidates(components)
    values, wanted = _table(target, chosen, places, pairs)
    problem = WeightProblem(values, wanted, number, signed, limit)
    weights, optimal = problem.solve(method, patience)
    kept = [(float(weight), kernel) for weight, kernel in zip(weights, chosen, strict=True) if weight != 0.0]
    if not kept:
        rule = "must be closer to a combination of the components than to zero"
        remedy = "give other components, or a larger most_weight"
        raise UsageError("target", rule, got="another", remedy=remedy)
    if places is not None and callable(target):
        # What was fitted at some distances may be worse between them.
        finer = np.interp(
            np.arange((len(places) - 1) * _BETWEEN + 1) / _BETWEEN, np.arange(len(places)), np.sort(places)
        )
        values, wanted = _table(target, chosen, finer, None)
    errors = np.abs(values @ weights - wanted)
    largest, rms = float(errors.max()), float(np.sqrt(np.mean(errors**2)))
    return FittedKernel(combination(*kept), largest, rms, float(np.abs(weights).sum()), optimal)


def _table(
    target: Any, components: Sequence[Kernel], places: Floats | None, pairs: tuple[object, object] | None
) -> tuple[Floats, Floats]:
    """Values of the components, shape (n, components), and of the target."""
    if places is not None:
        columns = []
        for kernel in components:
            if not isinstance(kernel, ColumnKernel):
                rule = "must compare columns of numbers, to be fitted at distances"
                remedy = "fit it to pairs"
                raise UsageError("components", rule, got=f"the {kernel.name} kernel", remedy=remedy)
            columns.append(along_first_column(kernel, places))
        wanted = target(places) if callable(target) else target
        values = np.column_stack(columns)
    else:
        assert pairs is not None
        if not isinstance(pairs, tuple | list) or len(pairs) != 2:
            raise UsageError("pairs", "must be two lists of records", got=type(pairs).__name__)
        first, second = pairs
        values = np.column_stack([_of_pairs(kernel, first, second) for kernel in components])
        wanted = target(first, second) if callable(target) else target
    similar = _real_numbers(wanted)
    if similar is None or len(similar) != len(values) or not (np.abs(similar) <= MOST_WEIGHT).all():
        rule = f"must give a similarity, at most {MOST_WEIGHT:g} in size, for every distance or pair"
        raise UsageError("target", rule, got="another number of them, or one that is larger or no number")
    return values, similar


def _real_numbers(given: Any) -> Floats | None:
    """Given numbers in one dimension; None if they are no real numbers."""
    try:
        found = np.asarray(given)
        return None if found.dtype.kind == "c" else np.asarray(found, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None


def _candidates(components: Any) -> list[Kernel]:
    try:
        given = list(components)
    except TypeError:
        given = []
    if not 1 <= len(given) <= MOST_CANDIDATES or not all(isinstance(each, Kernel) for each in given):
        rule = f"must be from 1 to {MOST_CANDIDATES} kernels"
        raise UsageError("components", rule, got="others", remedy="leave them out for Euclidean kernels")
    return given


def _of_pairs(kernel: Kernel, first: object, second: object) -> Floats:
    records: Batch = kernel.prepare(first)
    queries: Batch = kernel.prepare(second, clip=False)
    if len(records) != len(queries):
        raise UsageError("pairs", "must be two lists of one length", got="two lengths")
    if len(records) > MOST_PLACES:
        raise UsageError("pairs", f"must be at most {MOST_PLACES}", got=len(records))
    found = np.empty(len(records))
    for start in range(0, len(records), _PAIRS_AT_A_TIME):
        stop = start + _PAIRS_AT_A_TIME
        block = kernel.prepared_similarity(part_of(records, start, stop), part_of(queries, start, stop))
        found[start:stop] = np.diagonal(block)
    return found


def _distances(distances: Any) -> Floats:
    places = _real_numbers(distances)
    if (
        places is None
        or not 2 <= len(places) <= MOST_PLACES
        or not ((places >= 0.0) & (places <= LARGEST_DISTANCE)).all()
        or places.max() < 1.0 / LARGEST_DISTANCE
    ):
        rule = f"must be from 2 to {MOST_PLACES} numbers from 0 to {LARGEST_DISTANCE:g}, and not all 0"
        raise UsageError("distances", rule, got="others")
    return places


def _default_components(dim: int | None, places: Floats | None) -> list[Kernel]:
    if dim is None or places is None:
        both = (Parameter("dim"), " and ", Parameter("distances"))
        raise UsageError("components", ("must be given, or ", *both, " for Euclidean ones"), got="none")
    largest = float(places.max())
    return [
        EuclideanKernel(dim=dim, bandwidth=float(f"{bandwidth:.4g}"), power=power)
        for power in _POWERS
        for bandwidth in np.geomspace(largest / 6.0, 20.0 * largest, _SCALES)
    ]
