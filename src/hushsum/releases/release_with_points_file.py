"""Files of a released table together with public points: the points' numbers, then the release's own file."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.files.container import FileKind, Header, write_container
from hushsum.files.encoding import REAL, decode_array, encode_array, encoded_size
from hushsum.releases.load import check_names, load_table
from hushsum.releases.noisy_table import NoisyTable


def save_with_points(
    target: PathOrFile, type_: str, function: NoisyTable, points: NDArray[np.float64]
) -> None:
    """Write a ``.hush`` file of this type; to a path atomically."""
    stream = io.BytesIO()
    function.save(stream)
    header = {"type": type_, "points": list(points.shape), "release": len(stream.getvalue())}
    write_container(target, FileKind.RELEASED, header, [encode_array(points, REAL), stream.getvalue()])


def payload_size(header: Header) -> int:
    """The size of points and release, from the header."""
    number, dim = header["points"]
    if type(header["release"]) is not int or header["release"] < 0:
        raise ValueError("release")
    return encoded_size((number, dim), REAL, reals=True) + int(header["release"])


def read_with_points(header: Header, payload: memoryview) -> tuple[NoisyTable, NDArray[np.float64]]:
    """The released table and the points.

    Raises
    ------
    ValueError
        if the file holds something else, or points that are not finite.
    """
    number, dim = header["points"]
    size = encoded_size((number, dim), REAL, reals=True)
    check_names(header, "type", "points", "release")
    function = load_table(io.BytesIO(bytes(payload[size:])))
    points = decode_array(payload[:size], (number, dim), REAL).copy()
    if not isinstance(function, NoisyTable) or not np.isfinite(points).all():
        raise ValueError("points")
    return function, points
