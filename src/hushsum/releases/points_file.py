"""Released points as ``.hush`` files."""

from __future__ import annotations

import numpy as np

from hushsum._types import PathOrFile
from hushsum.files.container import FileKind, Header, write_container
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
from hushsum.releases.load import check_names, register
from hushsum.releases.points import PointsFunction

TYPE = "points"


def save_points(function: PointsFunction, target: PathOrFile) -> None:
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
