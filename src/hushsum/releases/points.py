"""Released points, weighted, whose kernel sums stand for those of the private records; and their file."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError, shown
from hushsum.files.container import FileKind, Header, write_container
from hushsum.kernels.base import COLUMNS, Batch, Kernel
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
    real,
    whole,
)
from hushsum.releases.load import check_names, load_function, register
from hushsum.releases.presentation import Detail, Presented

Floats = NDArray[np.float64]

_CELLS_AT_A_TIME = 1 << 21
_QUERIES_AT_A_TIME = 512
TYPE = "points"


@dataclass(frozen=True, eq=False)
class PointsFunction(Presented):
    """Weighted public points, answering ``Σ w·k(p, q)`` for any query and any kernel, for ever.

    Made by a method such as ``histogram`` or ``mwem``, or by ``hushsum.load``; not by hand. The points are
    synthetic: none of them is a record.

    Parameters
    ----------
    points : array of shape (n_points, dim)
        In the units of the data, inside ``bounds``.
    weights : array of shape (n_points,)
        They sum to about the number of records; some may be negative.
    kernel : Kernel
        The similarity whose sums are answered.
    count, count_variance : float
        The estimated number of records, and the variance of that estimate; 0 where the number is public.
    weight_variance : float or None
        The variance of the noise in every weight, where it is independent over the points; None otherwise.
    columns : tuple of str, optional
        What the columns are called; frames of queries are read by these names.
    answer_stderr : float or None
        Where the weights' noise is not independent: the most that the standard deviation of the noise in a
        mean kernel value is, for this kernel; None where that is not known.

    Privacy
    -------
    Points and weights were computed from what was released, so using them spends nothing.
    """

    points: Floats
    weights: Floats
    kernel: Kernel
    bounds: Bounds
    count: float
    count_variance: float
    weight_variance: float | None
    answer_stderr: float | None
    claim: Claim
    method: str
    producer: str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_kernel(self.kernel, self.bounds.dim)
        check_columns(self.columns, self.bounds.dim)
        if self.points.ndim != 2 or self.points.shape != (len(self.weights), self.bounds.dim):
            raise UsageError(
                parameter="points",
                rule="must have one row a weight and one column a bound",
                remedy="give both alike",
            )
        for array in (self.points, self.weights):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return (
            f"ReleasedFunction({self.kernel!r}, method={self.method!r}, points={len(self.weights)}, "
            f"claim={self.claim!r})"
        )

    @property
    def dim(self) -> int:
        """The number of columns of a query."""
        return self.bounds.dim

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self.count_variance)

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,)."""
        return self.sum(Q) / max(self.count, 1.0)

    def sum(self, Q: object) -> Floats:
        """Kernel sums Σ w·k(p, q), shape (n_queries,); costs points × queries."""
        return self._sums(Q, squares=False)[0]

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95, threads: int = 1) -> Answers:
        """Values with the standard error of the noise, or a bound of it; NaN where the method knows neither.

        ``of`` is ``"mean"`` for f(q)/N̂ or ``"sum"`` for f(q). How far the points themselves are from the
        records (cells, a network, a span of kernels) is bias and no part of it.
        """
        points = query_points(Q, dim=self.dim, columns=self.columns)
        sums, squares = self._sums(points, squares=self.weight_variance is not None)
        number = max(self.count, 1.0)
        if self.weight_variance is not None:
            variance = self.weight_variance * squares
        else:
            bound = np.nan if self.answer_stderr is None else self.answer_stderr
            variance = np.full(len(sums), (number * bound) ** 2)
        if of == "mean":
            value = sums / number
            variance = (variance + value**2 * self.count_variance) / number**2
            return normal_answers(value, np.sqrt(variance), level, points)
        if of != "sum":
            raise UsageError(
                parameter="of", rule="must be 'mean' or 'sum'", got=shown(of), remedy="choose one"
            )
        return normal_answers(sums, np.sqrt(variance), level, points)

    def details(self) -> tuple[Detail, ...]:
        """The method and the number of points."""
        number = len(self.weights)
        return (
            Detail("method", self.method, self.method),
            Detail("points", number, f"{number} synthetic points with weights"),
            Detail("weight_variance", self.weight_variance),
            Detail("answer_stderr", self.answer_stderr),
        )

    def with_kernel(self, kernel: Kernel) -> PointsFunction:
        """The same points under another kernel or bandwidth; spends nothing."""
        check_kernel(kernel, self.bounds.dim)
        same = kernel == self.kernel
        return replace(self, kernel=kernel, answer_stderr=self.answer_stderr if same else None)

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        save_points(self, target)

    def __reduce__(self) -> tuple[Callable[[bytes], ReleasedFunction], tuple[bytes]]:
        buffer = io.BytesIO()
        self.save(buffer)
        return _from_bytes, (buffer.getvalue(),)

    @cached_property
    def _live(self) -> tuple[Floats, Floats]:
        """Points of a weight, centred on the box as queries are, and their weights."""
        used = self.weights != 0.0
        return self.points[used] - self.bounds.centre, self.weights[used]

    def _queries(self, Q: object) -> Floats:
        rows = self.kernel.prepare(Q, self.bounds, clip=False, columns=self.columns).arrays[0]
        return rows.astype(np.float64)

    def _sums(self, Q: object, *, squares: bool) -> tuple[Floats, Floats]:
        """Σ w·k and, if requested, Σ k² over all points, some points and queries at a time."""
        queries = self._queries(Q)
        points, weights = self._live
        if squares:
            points, weights = self.points - self.bounds.centre, self.weights
        sums, gains = np.zeros(len(queries)), np.zeros(len(queries))
        step = max(1, _CELLS_AT_A_TIME // min(len(queries), _QUERIES_AT_A_TIME))
        for j in range(0, len(queries), _QUERIES_AT_A_TIME):
            part = slice(j, j + _QUERIES_AT_A_TIME)
            batch = Batch((queries[part],), len(queries[part]))
            for i in range(0, len(points), step):
                some = points[i : i + step]
                values = self.kernel._pairwise(Batch((some,), len(some)), batch)
                sums[part] += weights[i : i + step] @ values
                if squares:
                    gains[part] += np.einsum("ij,ij->j", values, values)
        return sums, gains


def check_kernel(kernel: Kernel, dim: int) -> None:
    """Refuse a kernel that does not compare columns of numbers, or not as many."""
    COLUMNS.check(kernel, "a function of points in a box")
    if kernel.dim != dim:
        raise UsageError(
            parameter="kernel",
            rule=f"must have dim {dim}, one for each bound",
            got="another",
            remedy="make one with it",
        )


def _from_bytes(payload: bytes) -> ReleasedFunction:
    """A function from the bytes of its file, which is what travels in a pickle."""
    return load_function(io.BytesIO(payload))


def save_points(function: PointsFunction, target: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write released points; to a path atomically."""
    header = {
        **common_header(function, TYPE),
        "weight_variance": function.weight_variance,
        "answer_stderr": function.answer_stderr,
        "points": list(function.points.shape),
    }
    write_container(target, FileKind.RELEASED, header, encode_reals([function.points, function.weights]))


def _shape(header: Header) -> tuple[int, int]:
    number, dim = header["points"]
    return whole(number, at_most=MOST_NUMBERS), whole(dim, at_most=MOST_NUMBERS)


def _known(value: object) -> float | None:
    return None if value is None else real(value, at_least=0.0)


def _payload_size(header: Header) -> int:
    number, dim = _shape(header)
    return encoded_reals(number * dim, number)


def _build(header: Header, payload: memoryview) -> PointsFunction:
    check_names(header, *COMMON, "weight_variance", "answer_stderr", "points")
    number, dim = _shape(header)
    points, weights = decode_reals(payload, [(number, dim), (number,)])
    function = PointsFunction(
        points=points,
        weights=weights,
        weight_variance=_known(header["weight_variance"]),
        answer_stderr=_known(header["answer_stderr"]),
        **common_fields(header),
    )
    low, high = np.array(function.bounds.low), np.array(function.bounds.high)
    if (points < low).any() or (points > high).any():
        raise ValueError("a point lies outside the bounds")
    return function


register(TYPE, _payload_size, _build)
