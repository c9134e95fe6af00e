"""Linear combinations of kernels: the rows of a table are divided among them."""

from __future__ import annotations

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
    HashableCombination,
    HashableKernel,
    Kernel,
    ProfileKernel,
    SpectralKernel,
    dense_batch,
)
from hushsum.kernels.hashers import derived_seed
from hushsum.kernels.product import ProductKernel
from hushsum.kernels.product_profiles import Profile
from hushsum.kernels.public_randomness import row_words, uniforms
from hushsum.kernels.registry import composed_class, kernel_as_json, kernel_from_json, register_composed
from hushsum.records import arrow
from hushsum.records.bounds import Bounds

MOST_COMPONENTS = 64
_CONVEX = 1e-9


@dataclass(frozen=True, slots=True)
class Component:
    """A kernel and its weight, which is not 0."""

    weight: float
    kernel: Kernel


@dataclass(frozen=True, slots=True, repr=False)
class CombinationKernel(Kernel):
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

    components: tuple[Component, ...]

    @property
    def dim(self) -> int | None:
        """The number of columns of a record; None where records are sets."""
        return self.components[0].kernel.dim

    def __repr__(self) -> str:
        return " + ".join(f"{each.weight!r} * ({each.kernel!r})" for each in self.components)

    def __reduce__(self) -> Any:
        # The class is made for the roles of the components, and has no place in a module.
        return kernel_from_json, (kernel_as_json(self),)

    def parameters(self) -> dict[str, Any]:
        """The components with their weights, as JSON values."""
        return {
            "components": [
                {"weight": each.weight, "kernel": kernel_as_json(each.kernel)} for each in self.components
            ]
        }

    def size_bound(self) -> float:
        """The sum of the components' bounds, times the sizes of their weights."""
        return math.fsum(abs(each.weight) * each.kernel.size_bound() for each in self.components)

    def parts(self) -> list[Kernel]:
        """The components, and the factors of those that are products."""
        return [part for each in self.components for part in each.kernel.parts()]

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Rows of numbers where every component compares numbers; else each component's records in turn."""
        if isinstance(self, ColumnKernel):
            return dense_batch(data, self.dim, bounds, clip=clip, columns=columns)
        if bounds is not None:
            raise UsageError(
                parameter="bounds",
                rule="must be left out: a combination takes none unless every component compares numbers",
                remedy="clip the columns of numbers beforehand",
            )
        data = arrow.in_memory(data)
        prepared = [each.kernel.prepare(data, clip=clip, columns=columns) for each in self.components]
        return Batch.joined([part for batch in prepared for part in batch.parts()])

    def split(self, batch: Batch) -> list[Batch]:
        """The records as each component takes them."""
        if batch.layout is None:
            return [batch] * len(self.components)
        parts, found = batch.parts(), []
        for each in self.components:
            if isinstance(each.kernel, ProductKernel) and not isinstance(each.kernel, ColumnKernel):
                number = len(each.kernel.factors)
                found.append(Batch.joined(parts[:number]))
            else:
                number = 1
                found.append(parts[0])
            parts = parts[number:]
        return found

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        result = np.zeros((len(records), len(queries)))
        for each, x, q in zip(self.components, self.split(records), self.split(queries), strict=True):
            result += each.weight * each.kernel.prepared_similarity(x, q)
        return result


class DividedCombination(CombinationKernel, HashableCombination):
    """All components are collision probabilities."""

    __slots__ = ()

    def hashed_components(self) -> tuple[tuple[float, HashableKernel], ...]:
        """Weights and kernels."""
        return tuple(
            (each.weight, each.kernel) for each in self.components if isinstance(each.kernel, HashableKernel)
        )


class ColumnCombination(CombinationKernel, ColumnKernel):
    """All components compare numbers."""

    __slots__ = ()

    def _column_kernels(self) -> list[tuple[float, ColumnKernel]]:
        return [
            (each.weight, each.kernel) for each in self.components if isinstance(each.kernel, ColumnKernel)
        ]

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self._column_kernels()[0][1].dim

    @property
    def bandwidth(self) -> float:
        """The smallest of the components'."""
        return min(kernel.bandwidth for _, kernel in self._column_kernels())

    @property
    def width(self) -> float:
        """The smallest of the components'."""
        return min(kernel.width for _, kernel in self._column_kernels())

    def integral(self) -> float:
        """The combination of the integrals; infinity where one has none."""
        integrals = [kernel.integral() for _, kernel in self._column_kernels()]
        if not all(map(math.isfinite, integrals)):
            return math.inf
        return sum(weight * own for (weight, _), own in zip(self._column_kernels(), integrals, strict=True))


class SpectralCombination(ColumnCombination, SpectralKernel):
    """A mixture of spectral measures: weights are positive and add up to 1."""

    __slots__ = ()

    rotation_invariant: ClassVar[bool] = False

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Each row is a frequency of a component that is drawn with its weight. They are never orthogonal."""
        drawn = uniforms(row_words("combination/component", seed, rows, 1))[:, 0]
        edges = np.cumsum([each.weight for each in self.components])[:-1]
        chosen = np.searchsorted(edges, drawn, side="right")
        found = np.empty((rows, self.dim), np.float32)
        for number, each in enumerate(self.components):
            assert isinstance(each.kernel, SpectralKernel)
            own = derived_seed("combination", seed, number)
            frequencies = each.kernel.frequencies(rows=rows, seed=own, orthogonal=False)
            found[chosen == number] = frequencies[chosen == number]
        return found


class ProfileCombination(ColumnCombination, ProfileKernel):
    """All components are sums of products over columns."""

    __slots__ = ()

    def _profile_kernels(self) -> list[tuple[float, ProfileKernel]]:
        return [
            (each.weight, each.kernel) for each in self.components if isinstance(each.kernel, ProfileKernel)
        ]

    @property
    def smooth(self) -> bool:
        """Whether all components are."""
        return all(kernel.smooth for _, kernel in self._profile_kernels())

    def column_widths(self) -> tuple[float, ...]:
        """The smallest of the components', in each column."""
        return tuple(
            map(min, zip(*(kernel.column_widths() for _, kernel in self._profile_kernels()), strict=True))
        )

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Those of all components, with their weights."""
        return tuple(
            Profile(weight * each.height, each.scales, each.gaussian)
            for weight, kernel in self._profile_kernels()
            for each in kernel.profiles(spacings=spacings, sides=sides)
        )


def combination_of(components: Sequence[Component]) -> CombinationKernel:
    """The combination in the class that has the roles of its components."""
    kernels = [each.kernel for each in components]
    weights = [each.weight for each in components]
    roles: list[type[CombinationKernel]] = []
    if all(isinstance(kernel, HashableKernel) for kernel in kernels):
        roles.append(DividedCombination)
    if all(isinstance(kernel, ColumnKernel) for kernel in kernels):
        columns = [ColumnCombination]
        convex = min(weights) > 0.0 and abs(math.fsum(weights) - 1.0) <= _CONVEX
        if convex and all(isinstance(kernel, SpectralKernel) for kernel in kernels):
            columns.append(SpectralCombination)
        if all(isinstance(kernel, ProfileKernel) for kernel in kernels):
            columns.append(ProfileCombination)
        roles += columns[1:] or columns
    signed = min(weights) < 0.0 or any(kernel.signed for kernel in kernels)
    definite = min(weights) > 0.0 and all(kernel.positive_definite for kernel in kernels)
    made: type[CombinationKernel] = composed_class(
        CombinationKernel, tuple(roles), signed=signed, positive_definite=definite
    )
    return made(tuple(components))


def _from_json(parameters: Mapping[str, Any]) -> Kernel:
    from hushsum.kernels.composition import combination

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


register_composed(CombinationKernel.name, _from_json)
