"""Released points and curves as ``.hush`` files: real numbers, read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushsum._types import Floats, PathOrFile
from hushsum.files.container import FileKind, Header, write_container
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.curve import CurveFunction
from hushsum.releases.load import check_names, check_spelling, register
from hushsum.releases.point_errors import FeatureErrors
from hushsum.releases.real_function import RealFunction
from hushsum.releases.weighted_points import PointsFunction

POINTS = "points"
CURVE = "curve"
_MOST_NUMBERS = 1 << 28
_COMMON = ("type", "kernel", "bounds", "columns", "claim", "count", "method", "producer")
_POINT_ERRORS = ("weight_variance", "cell_width", "feature_errors")
_LARGEST = 1e60
"""Of a stored number. Answers multiply a few of them, and must stay finite."""

_BYTES = 8


def save_points(function: PointsFunction, target: PathOrFile) -> None:
    """Write released points; to a path atomically."""
    header = {
        **_common_header(function, POINTS),
        "weight_variance": function.weight_variance,
        "cell_width": None if function.cell_width is None else list(function.cell_width),
        "feature_errors": None if function.feature_errors is None else function.feature_errors.as_json(),
        "points": list(function.points.shape),
    }
    write_container(target, FileKind.RELEASED, header, _encode_reals([function.points, function.weights]))


def _points_shape(header: Header) -> tuple[int, int]:
    number, dim = header["points"]
    return _whole(number, at_most=_MOST_NUMBERS), _whole(dim, at_most=_MOST_NUMBERS)


def _known(value: object) -> float | None:
    return None if value is None else _real(value, at_least=0.0)


def _cell_width(value: Any, dim: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != dim:
        raise ValueError("cell_width")
    return tuple(_real(each, at_least=0.0) for each in value)


def _feature_errors(value: Any) -> FeatureErrors | None:
    if value is None:
        return None
    measured, noise, prior = value
    return FeatureErrors(
        _whole(measured, at_most=_MOST_NUMBERS), _real(noise, at_least=0.0), _real(prior, at_least=0.0)
    )


def _points_size(header: Header) -> int:
    number, dim = _points_shape(header)
    return _encoded_reals(number * dim, number)


def _points(header: Header, payload: memoryview) -> PointsFunction:
    check_names(header, *_COMMON, *_POINT_ERRORS, "points")
    number, dim = _points_shape(header)
    points, weights = _decode_reals(payload, [(number, dim), (number,)])
    function = PointsFunction(
        points=points,
        weights=weights,
        weight_variance=_known(header["weight_variance"]),
        cell_width=_cell_width(header["cell_width"], dim),
        feature_errors=_feature_errors(header["feature_errors"]),
        **_common_fields(header),
    )
    _check_common(header, function)
    low, high = np.array(function.bounds.low), np.array(function.bounds.high)
    if (points < low).any() or (points > high).any():
        raise ValueError("a point lies outside the bounds")
    if function.cell_width is not None and (np.array(function.cell_width) > 2.0 * (high - low)).any():
        raise ValueError("a cell is wider than the box")
    if function.feature_errors is not None and function.feature_errors.measured > number:
        raise ValueError("more functions than points")
    return function


def save_curve(function: CurveFunction, target: PathOrFile) -> None:
    """Write a released curve; to a path atomically."""
    header = {**_common_header(function, CURVE), "values": len(function.values)}
    write_container(target, FileKind.RELEASED, header, _encode_reals([function.values, function.errors]))


def _curve_size(header: Header) -> int:
    number = _whole(header["values"], at_most=_MOST_NUMBERS)
    return _encoded_reals(number, number)


def _curve(header: Header, payload: memoryview) -> CurveFunction:
    check_names(header, *_COMMON, "values")
    number = _whole(header["values"], at_most=_MOST_NUMBERS)
    values, errors = _decode_reals(payload, [(number,), (number,)])
    if (errors < 0.0).any():
        raise ValueError("errors")
    function = CurveFunction(values=values, errors=errors, **_common_fields(header))
    _check_common(header, function)
    return function


def _common_header(function: RealFunction, kind: str) -> Header:
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


def _common_fields(header: Header) -> dict[str, Any]:
    """The inverse of `_common_header`, as constructor's arguments; ValueError for what could not have been
    written.
    """
    if not isinstance(header["method"], str) or not isinstance(header["producer"], str):
        raise TypeError("text")
    return {
        "kernel": kernel_from_json(header["kernel"]),
        "bounds": Bounds.from_json(header["bounds"]),
        "columns": _names_or_none(header["columns"]),
        "claim": Claim.from_json(header["claim"]),
        "count": _real(header["count"]["value"], at_least=1.0),
        "count_variance": _real(header["count"]["variance"], at_least=0.0),
        "method": header["method"],
        "producer": header["producer"],
    }


def _check_common(header: Header, function: RealFunction) -> None:
    check_spelling({name: header[name] for name in _COMMON}, _common_header(function, header["type"]))


def _names_or_none(value: object) -> tuple[str, ...] | None:
    """Names of columns, or None."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError("columns")
    return tuple(value)


def _real(value: object, *, at_least: float) -> float:
    """A float from the least it may be to `_LARGEST`."""
    if type(value) is not float or not at_least <= value <= _LARGEST:
        raise ValueError("number")
    return value


def _whole(value: object, *, at_most: int) -> int:
    """An integer from 1 to the most there may be."""
    if type(value) is not int or not 1 <= value <= at_most:
        raise ValueError("size")
    return value


def _encode_reals(arrays: Sequence[Floats]) -> list[memoryview]:
    """Little-endian doubles, array after array."""
    return [np.ascontiguousarray(each, dtype="<f8").data.cast("B") for each in arrays]


def _encoded_reals(*sizes: int) -> int:
    """How many bytes arrays of these sizes take; refuses more than any method writes."""
    if sum(sizes) > _MOST_NUMBERS:
        raise ValueError("size")
    return _BYTES * sum(sizes)


def _decode_reals(payload: memoryview, shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """The arrays back; ValueError unless every number is within ±`_LARGEST`."""
    numbers = np.frombuffer(payload, dtype="<f8").astype(np.float64)
    if not (np.abs(numbers) <= _LARGEST).all():
        raise ValueError("numbers")
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        numbers[end - math.prod(shape) : end].reshape(shape).copy()
        for shape, end in zip(shapes, ends, strict=True)
    ]


register(POINTS, _points_size, _points)
register(CURVE, _curve_size, _curve)
