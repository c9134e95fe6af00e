"""Kernels whose columns have units of their own: one bandwidth, relative to a unit for each column."""

from __future__ import annotations

import dataclasses
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
    ColumnProfile,
    HashableKernel,
    Hasher,
    Kernel,
    ProfileKernel,
    SpectralKernel,
    dense_batch,
)
from hushsum.kernels.product_profiles import Profile
from hushsum.kernels.registry import (
    COLUMNS,
    composed_class,
    kernel_as_json,
    kernel_from_json,
    register_composed,
)
from hushsum.records.bounds import Bounds

_SMALLEST, _LARGEST = 1e-30, 1e30
_FLOAT32_MAX = np.finfo(np.float32).max


@dataclass(frozen=True, slots=True, repr=False)
class ScaledKernel(ColumnKernel):
    """``k(x/u, q/u)``: a kernel of columns that are divided by public units, one per column.

    Made by :func:`hushsum.scaled` and by ``scale="bounds"``, not by hand. Records and queries stay in the
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
            raise UsageError(
                parameter="units",
                rule=f"must be {self.kernel.dim} numbers from 1e-30 to 1e30, one for each column",
                got="others",
                remedy="take the widths of the declared bounds",
            )
        object.__setattr__(self, "units", units)

    def __repr__(self) -> str:
        return f"scaled({self.kernel!r}, units={self.units!r})"

    def __reduce__(self) -> Any:
        # The class is made for the roles of the kernel, and has no place in a module.
        return kernel_from_json, (kernel_as_json(self),)

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
        return tuple(
            width * unit for width, unit in zip(self.kernel.column_widths(), self.units, strict=True)
        )

    def column_bandwidths(self) -> tuple[float, ...]:
        """The bandwidth in each column, in the units of the data."""
        own = self.kernel.column_bandwidths()
        return tuple(each * unit for each, unit in zip(own, self.units, strict=True))

    def unscaled(self) -> ColumnKernel:
        """The kernel of the columns divided by their units."""
        return self.kernel

    def size_bound(self) -> float:
        """That of the kernel."""
        return self.kernel.size_bound()

    def integral(self) -> float:
        """That of the kernel times the units."""
        return self.kernel.integral() * math.prod(self.units)

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Rows of numbers, in the units of the data."""
        return dense_batch(data, self.dim, bounds, clip=clip, columns=columns)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        units = np.array(self.units)
        inside = [
            Batch((each.arrays[0].astype(np.float64) / units,), len(each)) for each in (records, queries)
        ]
        return self.kernel.prepared_similarity(*inside)


class HashableScaled(ScaledKernel, HashableKernel):
    """The kernel is a collision probability, and so is this one."""

    __slots__ = ()

    def _hashable(self) -> HashableKernel:
        assert isinstance(self.kernel, HashableKernel)
        return self.kernel

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The hash functions of the kernel, of records divided by the units."""
        return _ScaledHasher(self._hashable().hasher(rows=rows, width=width, seed=seed), self.units)

    def numbers_per_row(self) -> int:
        """Those of the kernel."""
        return self._hashable().numbers_per_row()

    def distinct_hashes(self) -> int | None:
        """Those of the kernel."""
        return self._hashable().distinct_hashes()

    def independent_rows(self) -> int:
        """Those of the kernel."""
        return self._hashable().independent_rows()

    def typical_row_variance(self) -> float:
        """That of the kernel."""
        return self._hashable().typical_row_variance()


class SpectralScaled(ScaledKernel, SpectralKernel):
    """The kernel has a spectral measure: its frequencies are divided by the units."""

    __slots__ = ()

    rotation_invariant: ClassVar[bool] = False

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Those of the kernel, per unit of the data. They are not orthogonal."""
        assert isinstance(self.kernel, SpectralKernel)
        own = self.kernel.frequencies(rows=rows, seed=seed, orthogonal=False).astype(np.float64)
        largest = float(np.finfo(np.float32).max)
        clipped: NDArray[np.float32] = np.clip(own / np.array(self.units), -largest, largest).astype(
            np.float32
        )
        return clipped


class ProfileScaled(ScaledKernel, ProfileKernel):
    """The kernel is a sum of products over columns, and so is this one."""

    __slots__ = ()

    def _profiled(self) -> ProfileKernel:
        assert isinstance(self.kernel, ProfileKernel)
        return self.kernel

    @property
    def smooth(self) -> bool:
        """Whether the kernel is."""
        return self._profiled().smooth

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Those of the kernel, with scales in the units of the data."""
        own = self._profiled().profiles(
            spacings=[each / unit for each, unit in zip(spacings, self.units, strict=True)],
            sides=[each / unit for each, unit in zip(sides, self.units, strict=True)],
        )
        return tuple(
            Profile(
                each.height,
                tuple(scale * unit for scale, unit in zip(each.scales, self.units, strict=True)),
                each.gaussian,
            )
            for each in own
        )

    def column_profile(self) -> ColumnProfile | None:
        """None: the columns have profiles of their own."""
        return None


class _ScaledHasher:
    """Hash functions of rows that are divided by units first."""

    def __init__(self, inner: Hasher, units: Sequence[float]) -> None:
        self._inner = inner
        self._units = np.array(units, np.float32)

    def count(self, rows: NDArray[np.float32], *arguments: Any) -> None:
        """``(rows, table, step, threads)``: add ``step`` to each record's cell in every row."""
        self._inner.count(self._divided(rows), *arguments)

    def cells(self, rows: NDArray[np.float32], *arguments: Any) -> NDArray[np.int32]:
        """``(rows, number)``: the cell of each record in each of the first rows."""
        return self._inner.cells(self._divided(rows), *arguments)

    def read(self, rows: NDArray[np.float32], *arguments: Any) -> tuple[Floats, Floats]:
        """``(rows, table, block, threads)``: mean over rows of each query's cell, and its variance."""
        return self._inner.read(self._divided(rows), *arguments)

    def means(self, rows: NDArray[np.float32], *arguments: Any) -> Floats:
        """``(rows, table, scale, shift, threads)``: ``scale`` times that mean plus ``shift``."""
        return self._inner.means(self._divided(rows), *arguments)

    def _divided(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):
            divided: NDArray[np.float32] = np.divide(rows, self._units, dtype=np.float32)
        # Small units can bring large numbers beyond float32; projections of infinity are not numbers.
        np.clip(divided, -_FLOAT32_MAX, _FLOAT32_MAX, out=divided)
        return np.ascontiguousarray(divided)


def scaled_by(kernel: ColumnKernel, units: Sequence[float]) -> ColumnKernel:
    """The kernel of columns divided by units; where all have the same one, the kernel with another bandwidth.

    >>> from hushsum.kernels import GaussianKernel
    >>> scaled_by(GaussianKernel(dim=1, bandwidth=0.05), [200.0])
    GaussianKernel(dim=1, bandwidth=10.0, power=1)
    """
    fields = {field.name for field in dataclasses.fields(kernel)}  # type: ignore[arg-type]
    if len(set(units)) == 1 and "bandwidth" in fields:
        wider: ColumnKernel = dataclasses.replace(kernel, bandwidth=kernel.bandwidth * float(units[0]))  # type: ignore[type-var]
        return wider
    roles = [
        own
        for role, own in (
            (HashableKernel, HashableScaled),
            (SpectralKernel, SpectralScaled),
            (ProfileKernel, ProfileScaled),
        )
        if isinstance(kernel, role)
    ]
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
    >>> near = hs.scaled(hs.GaussianKernel(dim=2, bandwidth=0.05), bounds)
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
        raise UsageError(
            parameter="bounds",
            rule="must be declared where the bandwidth is a fraction of them",
            got="none",
            remedy="declare the range that a record may have",
        )
    return scaled_by(kernel, [high - low for low, high in zip(box.low, box.high, strict=True)])


def _from_json(parameters: Mapping[str, Any]) -> Kernel:
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


register_composed(ScaledKernel.name, _from_json)
