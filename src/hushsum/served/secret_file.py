"""Secret functions on the disk of their owner: CONFIDENTIAL, optionally encrypted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hushsum.files.container import Buffer, FileKind, Header, canonical_json
from hushsum.files.encoding import REAL, decode_array, encode_array, encoded_size
from hushsum.files.encryption import read_confidential, write_confidential
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds
from hushsum.served.secret_functions import SecretFunction
from hushsum.version import PRODUCER

WARNING = "CONFIDENTIAL: private records. Never for release; they answer questions where they are."

_LARGEST = 1e30
"""Of a stored number: what single precision holds, and answers stay finite with."""


def save_secret_functions(
    functions: Sequence[SecretFunction],
    path: str | os.PathLike[str],
    *,
    about: Mapping[str, Any] | None = None,
    encryption_key: bytes | None = None,
) -> None:
    """Write functions to a file, readable by its owner only. It is as secret as the records in it.

    The header is not encrypted: kernel, bounds, the number of records and ``about``, which are further facts
    that may be disclosed, are there.
    """
    sections: list[Buffer] = []
    for each in functions:
        sections += [encode_array(each.points, REAL), encode_array(each.weights, REAL)]
    header: dict[str, Any] = {
        "warning": WARNING,
        "producer": PRODUCER,
        "about": dict(about or {}),
        "functions": [_described(each) for each in functions],
    }
    write_confidential(path, FileKind.SERVED, header, sections, encryption_key=encryption_key)


def load_secret_functions(
    path: str | os.PathLike[str], *, encryption_key: bytes | None = None
) -> tuple[list[SecretFunction], dict[str, Any]]:
    """The functions of a file, bit for bit, and what it says about them.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    return read_confidential(
        path,
        FileKind.SERVED,
        _payload_size,
        _build,
        what="this file of secret functions",
        encryption_key=encryption_key,
    )


def _build(header: Header, payload: memoryview) -> tuple[list[SecretFunction], dict[str, Any]]:
    functions, start = [], 0
    for each in header["functions"]:
        middle, end = (start + size for size in _sizes(each))
        functions.append(_function(each, payload[start:middle], payload[middle:end]))
        start = end
    if not isinstance(header["about"], dict):
        raise TypeError("about")
    return functions, dict(header["about"])


def _described(function: SecretFunction) -> dict[str, Any]:
    return {
        "kernel": kernel_as_json(function.kernel),
        "bounds": function.bounds.as_json(),
        "records": len(function.points),
        "sensitivity": function.sensitivity,
        "pointwise": function.pointwise,
        "relation": str(function.relation),
        "constant": function.constant,
        "scale": function.scale,
        "assumptions": list(function.assumptions),
    }


def _function(header: dict[str, Any], points: memoryview, weights: memoryview) -> SecretFunction:
    bounds, number = Bounds.from_json(header["bounds"]), header["records"]
    function = SecretFunction(
        kernel=kernel_from_json(header["kernel"]),
        bounds=bounds,
        points=np.ascontiguousarray(decode_array(points, (number, bounds.dim), REAL), np.float32),
        weights=np.array(decode_array(weights, (number,), REAL)),
        sensitivity=float(header["sensitivity"]),
        pointwise=float(header["pointwise"]),
        relation=Relation.of(header["relation"]),
        constant=float(header["constant"]),
        scale=float(header["scale"]),
        assumptions=tuple(header["assumptions"]),
    )
    if canonical_json(_described(function)) != canonical_json(header):
        raise ValueError("a function has one description")
    numbers = (function.sensitivity, function.pointwise, function.constant, function.scale)
    if function.kernel.dim != bounds.dim or not all(0.0 <= each <= _LARGEST for each in numbers):
        raise ValueError("numbers")
    if not (np.abs(function.points) <= _LARGEST).all() or not (np.abs(function.weights) <= _LARGEST).all():
        raise ValueError("records")
    return function


def _sizes(header: dict[str, Any]) -> tuple[int, int]:
    """Where the points of a function end, and where its weights do."""
    points = encoded_size((header["records"], len(header["bounds"])), REAL, reals=True)
    return points, points + encoded_size((header["records"],), REAL, reals=True)


def _payload_size(header: Header) -> int:
    return sum(_sizes(each)[1] for each in header["functions"])
