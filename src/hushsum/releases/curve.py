"""A released curve: mean kernel values along a line, with noise that is smooth along it; and its file."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError, shown
from hushsum.files.container import FileKind, Header, write_container
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import check_columns
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Answers, normal_answers, query_points
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.float_file import (
    COMMON,
    MOST_NUMBERS,
    common_fields,
    common_header,
    decode_reals,
    encode_reals,
    encoded_reals,
    whole,
)
from hushsum.releases.load import check_names, load_function, register
from hushsum.releases.points import check_kernel
from hushsum.releases.presentation import Detail, Presented

Floats = NDArray[np.float64]
TYPE = "curve"


@dataclass(frozen=True, eq=False)
class CurveFunction(Presented):
    """Values at even steps from one end of the bounds to the other, straight lines between them.

    Made by ``pfda`` or by ``hushsum.load``; not by hand. Outside the bounds the nearest end answers. The
    kernel is fixed: another one needs another release.

    Parameters
    ----------
    values : array of shape (n_points,)
        Mean kernel values, noise included.
    errors : array of shape (n_points,)
        The standard deviation of the noise in each of them; the noise is correlated along the curve.
    kernel : Kernel
        Of one column.
    bounds : Bounds
        Of one column; the first value is at its low end, the last at its high end.
    columns : tuple of str, optional
        What the column is called; frames of queries are read by that name.

    Privacy
    -------
    The values were released together, so using them spends nothing.
    """

    values: Floats
    errors: Floats
    kernel: Kernel
    bounds: Bounds
    count: float
    count_variance: float
    claim: Claim
    method: str
    producer: str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_kernel(self.kernel, self.bounds.dim)
        check_columns(self.columns, self.bounds.dim)
        if self.bounds.dim != 1 or self.values.ndim != 1 or len(self.values) < 2:
            raise UsageError(rule="a curve has one column and at least two values", got="another shape")
        if self.values.shape != self.errors.shape:
            raise UsageError(rule="a curve has one error for each value", got="another number")
        for array in (self.values, self.errors):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return (
            f"ReleasedFunction({self.kernel!r}, method={self.method!r}, curve={len(self.values)}, "
            f"claim={self.claim!r})"
        )

    @property
    def dim(self) -> int:
        """1."""
        return self.bounds.dim

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self.count_variance)

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._read(Q, self.values)

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q), shape (n_queries,)."""
        return self.count * self(Q)

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95, threads: int = 1) -> Answers:
        """Values with the standard error of the noise; the bias of a smoothing penalty is not included."""
        if of not in ("mean", "sum"):
            raise UsageError(
                parameter="of", rule="must be 'mean' or 'sum'", got=shown(of), remedy="choose one"
            )
        scale = 1.0 if of == "mean" else self.count
        points = query_points(Q, dim=self.dim, columns=self.columns)
        value = self._read(points, self.values)
        variance = self._read(points, self.errors) ** 2
        if of == "sum":
            variance = variance + (value / self.count) ** 2 * self.count_variance
        return normal_answers(scale * value, scale * np.sqrt(variance), level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of steps."""
        number = len(self.values)
        return (
            Detail("method", self.method, self.method),
            Detail("steps", number, f"{number} values, straight lines between them", label="curve"),
        )

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        save_curve(self, target)

    def __reduce__(self) -> tuple[Callable[[bytes], ReleasedFunction], tuple[bytes]]:
        buffer = io.BytesIO()
        self.save(buffer)
        return _from_bytes, (buffer.getvalue(),)

    @cached_property
    def _places(self) -> Floats:
        centre = float(self.bounds.centre[0])
        places = np.linspace(self.bounds.low[0] - centre, self.bounds.high[0] - centre, len(self.values))
        places.flags.writeable = False
        return places

    def _read(self, Q: object, numbers: Floats) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        queries = rows[:, 0].astype(np.float64)
        return np.interp(queries, self._places, numbers)


def _from_bytes(payload: bytes) -> ReleasedFunction:
    """A function from the bytes of its file, which is what travels in a pickle."""
    return load_function(io.BytesIO(payload))


def save_curve(function: CurveFunction, target: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a released curve; to a path atomically."""
    header = {**common_header(function, TYPE), "values": len(function.values)}
    write_container(target, FileKind.RELEASED, header, encode_reals([function.values, function.errors]))


def _payload_size(header: Header) -> int:
    number = whole(header["values"], at_most=MOST_NUMBERS)
    return encoded_reals(number, number)


def _build(header: Header, payload: memoryview) -> CurveFunction:
    check_names(header, *COMMON, "values")
    number = whole(header["values"], at_most=MOST_NUMBERS)
    values, errors = decode_reals(payload, [(number,), (number,)])
    if (errors < 0.0).any():
        raise ValueError("errors")
    return CurveFunction(values=values, errors=errors, **common_fields(header))


register(TYPE, _payload_size, _build)
