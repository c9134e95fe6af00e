"""Products of kernels, each of its own columns: their hashes are concatenated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import (
    Batch,
    ColumnKernel,
    HashableKernel,
    Hasher,
    Kernel,
    ProfileKernel,
    SpectralKernel,
    dense_batch,
)
from hushsum.kernels.hashers import FACTOR_WIDTH, ConcatenatedHasher, derived_seed
from hushsum.kernels.product_profiles import Profile
from hushsum.kernels.registry import (
    composed_class,
    composed_names,
    kernel_as_json,
    kernel_from_json,
    register_composed,
)
from hushsum.records import arrow
from hushsum.records.bounds import Bounds
from hushsum.records.column_groups import column_groups

MOST_FACTORS = 64
_MOST_PROFILES = 4096


@dataclass(frozen=True, slots=True)
class Factor:
    """A kernel and the positions of its columns. A kernel of sets has one, whose values are lists."""

    kernel: Kernel
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ProductKernel(Kernel):
    """The product of kernels, each of some of the columns: numbers, categories and sets in one record.

    Made by ``k1 * k2`` and :func:`hushsum.on_columns`, not by hand. It has the roles that its factors share:
    hash rows count it where all of them have hash functions, Fourier features where all have frequencies, and
    a grid where all are profiles and no two share a column.

    Privacy
    -------
    The hash of a row is made of one hash of each factor, so a record still adds 1 to one cell of every row,
    and that cell depends on the record alone: Δ1 = R and Δ2 = √R for one record present or absent, 2R and
    √(2R) for one replaced, as for a single kernel. How many factors there are makes no difference.
    """

    name: ClassVar[str] = "product"

    dim: int
    factors: tuple[Factor, ...]

    def __repr__(self) -> str:
        listed = (
            repr(each.kernel)
            if each.columns == tuple(range(self.dim)) and each.kernel.dim is not None
            else f"on_columns({each.kernel!r}, {list(each.columns)}, of={self.dim})"
            for each in self.factors
        )
        return " * ".join(listed)

    def __reduce__(self) -> Any:
        # The class is made for the roles of the factors, and has no place in a module.
        return kernel_from_json, (kernel_as_json(self),)

    def parameters(self) -> dict[str, Any]:
        """The columns of a record, and the factors with theirs, as JSON values."""
        factors = [
            {"kernel": kernel_as_json(each.kernel), "columns": list(each.columns)} for each in self.factors
        ]
        return {"dim": self.dim, "factors": factors}

    def size_bound(self) -> float:
        """The product of the factors' bounds."""
        return math.prod(each.kernel.size_bound() for each in self.factors)

    def parts(self) -> list[Kernel]:
        """The factors."""
        return [each.kernel for each in self.factors]

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Rows of numbers where every factor compares numbers; else each factor's columns in its own form."""
        if isinstance(self, ColumnKernel):
            return dense_batch(data, self.dim, bounds, clip=clip, columns=columns)
        if bounds is not None:
            raise UsageError(
                parameter="bounds",
                rule="must be left out: a product takes none unless every factor compares numbers",
                remedy="clip the columns of numbers beforehand",
            )
        groups = column_groups(
            arrow.in_memory(data), [each.columns for each in self.factors], dim=self.dim, columns=columns
        )
        parts = [
            each.kernel.prepare(group, clip=clip) for each, group in zip(self.factors, groups, strict=True)
        ]
        return Batch.joined(parts)

    def split(self, batch: Batch) -> list[Batch]:
        """The records as each factor takes them."""
        if batch.layout is not None:
            return batch.parts()
        rows = batch.arrays[0]
        return [Batch((np.ascontiguousarray(rows[:, each.columns]),), len(batch)) for each in self.factors]

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        result = np.ones((len(records), len(queries)))
        for each, x, q in zip(self.factors, self.split(records), self.split(queries), strict=True):
            result *= each.kernel.prepared_similarity(x, q)
        return result


class HashableProduct(ProductKernel, HashableKernel):
    """All factors are collision probabilities, and so is their product, of independent hash functions."""

    __slots__ = ()

    def _hashables(self) -> list[HashableKernel]:
        return [each.kernel for each in self.factors if isinstance(each.kernel, HashableKernel)]

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """One hash function of each factor, with random numbers of its own, concatenated and folded."""
        hashers = []
        for number, kernel in enumerate(self._hashables()):
            own = derived_seed("product", seed, number)
            hashers.append(kernel.hasher(rows=rows, width=_factor_width(kernel), seed=own))
        sizes = tuple(2 if each.kernel.dim is None else 1 for each in self.factors)
        layout = None if isinstance(self, ColumnKernel) else sizes
        return ConcatenatedHasher(hashers, self.split, rows=rows, width=width, seed=seed, layout=layout)

    def numbers_per_row(self) -> int:
        """Those of all factors, and one for each to concatenate them."""
        return sum(kernel.numbers_per_row() + 1 for kernel in self._hashables())

    def independent_rows(self) -> int:
        """The least number of rows that is a whole number of blocks for every factor."""
        return math.lcm(*(kernel.independent_rows() for kernel in self._hashables()))

    def typical_row_variance(self) -> float:
        """The least of the factors': records that resemble a query in all columns are fewer."""
        return min(kernel.typical_row_variance() for kernel in self._hashables())


class ColumnProduct(ProductKernel, ColumnKernel):
    """All factors compare numbers."""

    __slots__ = ()

    def _column_kernels(self) -> list[ColumnKernel]:
        return [each.kernel for each in self.factors if isinstance(each.kernel, ColumnKernel)]

    def _divided(self) -> bool:
        """Whether every column has exactly one factor."""
        return sorted(itertools.chain(*(each.columns for each in self.factors))) == list(range(self.dim))

    @property
    def bandwidth(self) -> float:
        """The smallest of the factors'."""
        return min(kernel.bandwidth for kernel in self._column_kernels())

    @property
    def width(self) -> float:
        """The smallest of the factors'."""
        return min(kernel.width for kernel in self._column_kernels())

    def integral(self) -> float:
        """The product of the factors' integrals; infinity where a column has no factor, or several."""
        if not self._divided():
            return math.inf
        return math.prod(kernel.integral() for kernel in self._column_kernels())


class SpectralProduct(ColumnProduct, SpectralKernel):
    """All factors have spectral measures: E cos(a)·E cos(b) = E cos(a + b) for independent symmetric a, b."""

    __slots__ = ()

    rotation_invariant: ClassVar[bool] = False

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Independent frequencies of all factors, added column by column. They are never orthogonal."""
        total = np.zeros((rows, self.dim))
        for number, each in enumerate(self.factors):
            assert isinstance(each.kernel, SpectralKernel)
            own = derived_seed("product", seed, number)
            total[:, each.columns] += each.kernel.frequencies(rows=rows, seed=own, orthogonal=False)
        largest = float(np.finfo(np.float32).max)
        return np.clip(total, -largest, largest).astype(np.float32)


class ProfileProduct(ColumnProduct, ProfileKernel):
    """All factors are sums of products over columns, and every column has one factor."""

    __slots__ = ()

    def _profile_kernels(self) -> list[tuple[ProfileKernel, tuple[int, ...]]]:
        return [
            (each.kernel, each.columns) for each in self.factors if isinstance(each.kernel, ProfileKernel)
        ]

    @property
    def smooth(self) -> bool:
        """Whether all factors are."""
        return all(kernel.smooth for kernel, _ in self._profile_kernels())

    def column_widths(self) -> tuple[float, ...]:
        """Those of the factors."""
        widths: dict[int, float] = {}
        for kernel, columns in self._profile_kernels():
            widths.update(zip(columns, kernel.column_widths(), strict=True))
        return tuple(widths[column] for column in range(self.dim))

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Every profile of the first factor times every one of the second, and so on."""
        found = []
        for kernel, columns in self._profile_kernels():
            own = kernel.profiles(spacings=[spacings[c] for c in columns], sides=[sides[c] for c in columns])
            found.append([(columns, profile) for profile in own])
        if math.prod(len(each) for each in found) > _MOST_PROFILES:
            raise UsageError(
                parameter="kernel",
                rule=f"must be a sum of at most {_MOST_PROFILES} products over columns, for a grid",
                got="a product with more",
                remedy="use race, or factors of the Gaussian or Laplacian kernel",
            )
        return tuple(_joined(chosen, self.dim) for chosen in itertools.product(*found))


def _joined(chosen: Sequence[tuple[tuple[int, ...], Profile]], dim: int) -> Profile:
    scales, gaussian = [1.0] * dim, [True] * dim
    for columns, profile in chosen:
        for place, column in enumerate(columns):
            scales[column], gaussian[column] = profile.scales[place], profile.gaussian[place]
    height = math.prod(profile.height for _, profile in chosen)
    return Profile(height, tuple(scales), tuple(gaussian))


def _factor_width(kernel: HashableKernel) -> int:
    distinct = kernel.distinct_hashes()
    return FACTOR_WIDTH if distinct is None else min(FACTOR_WIDTH, max(2, distinct))


def product_of(dim: int, factors: Sequence[Factor]) -> ProductKernel:
    """The product in the class that has the roles of its factors."""
    kernels = [each.kernel for each in factors]
    roles: list[type[ProductKernel]] = []
    if all(isinstance(kernel, HashableKernel) for kernel in kernels):
        roles.append(HashableProduct)
    if all(isinstance(kernel, ColumnKernel) for kernel in kernels):
        columns = [ColumnProduct]
        if all(isinstance(kernel, SpectralKernel) for kernel in kernels):
            columns.append(SpectralProduct)
        taken = sorted(itertools.chain(*(each.columns for each in factors)))
        whole = len(taken) == dim and taken == list(range(dim))
        if whole and all(isinstance(kernel, ProfileKernel) for kernel in kernels):
            columns.append(ProfileProduct)
        roles += columns[1:] or columns
    signed = any(kernel.signed for kernel in kernels)
    definite = all(kernel.positive_definite for kernel in kernels)
    made: type[ProductKernel] = composed_class(
        ProductKernel, tuple(roles), signed=signed, positive_definite=definite
    )
    return made(dim, tuple(factors))


def _from_json(parameters: Mapping[str, Any]) -> Kernel:
    from hushsum.kernels.composition import placed, product

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


register_composed(ProductKernel.name, _from_json)
