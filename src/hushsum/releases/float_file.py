"""What the files of released points and curves share: real numbers, read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.files.container import Header
from hushsum.kernels.base import kernel_as_json, kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.real_function import RealFunction

MOST_NUMBERS = 1 << 28
COMMON = ("type", "kernel", "bounds", "columns", "claim", "count", "method", "producer")
LARGEST = 1e60
"""Of a stored number. Answers multiply a few of them, and must stay finite."""

_BYTES = 8


def common_header(function: RealFunction, kind: str) -> Header:
    """Kernel, bounds, columns, claim, count, method and producer."""
    return {
        "type": kind,
        "kernel": kernel_as_json(function.kernel),
        "bounds": function.bounds.as_json(),
        "columns": None if function.columns is None else list(function.columns),
        "claim": function.claim.as_json(),
        "count": {"value": function.count, "variance": function.count_variance},
        "method": function.method,
        "producer": function.producer,
    }


def common_fields(header: Header) -> dict[str, Any]:
    """The inverse of `common_header`, as constructor's arguments; ValueError for what could not have been
    written.
    """
    if not isinstance(header["method"], str) or not isinstance(header["producer"], str):
        raise TypeError("text")
    bounds = Bounds.from_json(header["bounds"])
    if bounds.as_json() != header["bounds"]:
        raise ValueError("bounds have one spelling")
    return {
        "kernel": kernel_from_json(header["kernel"]),
        "bounds": bounds,
        "columns": names_or_none(header["columns"]),
        "claim": Claim.from_json(header["claim"]),
        "count": real(header["count"]["value"], at_least=1.0),
        "count_variance": real(header["count"]["variance"], at_least=0.0),
        "method": header["method"],
        "producer": header["producer"],
    }


def names_or_none(value: object) -> tuple[str, ...] | None:
    """Names of columns, or None."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError("columns")
    return tuple(value)


def real(value: object, *, at_least: float) -> float:
    """A float from the least it may be to `LARGEST`."""
    if type(value) is not float or not at_least <= value <= LARGEST:
        raise ValueError("number")
    return value


def whole(value: object, *, at_most: int) -> int:
    """An integer from 1 to the most there may be."""
    if type(value) is not int or not 1 <= value <= at_most:
        raise ValueError("size")
    return value


def encode_reals(arrays: Sequence[Floats]) -> list[memoryview]:
    """Little-endian doubles, array after array."""
    return [np.ascontiguousarray(each, dtype="<f8").data.cast("B") for each in arrays]


def encoded_reals(*sizes: int) -> int:
    """How many bytes arrays of these sizes take; refuses more than any method writes."""
    if sum(sizes) > MOST_NUMBERS:
        raise ValueError("size")
    return _BYTES * sum(sizes)


def decode_reals(payload: memoryview, shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """The arrays back; ValueError unless every number is within ±`LARGEST`."""
    numbers = np.frombuffer(payload, dtype="<f8").astype(np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        raise ValueError("numbers")
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        numbers[end - math.prod(shape) : end].reshape(shape).copy()
        for shape, end in zip(shapes, ends, strict=True)
    ]
