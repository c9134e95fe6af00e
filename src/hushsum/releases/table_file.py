"""Released tables as ``.hush`` files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.bases.base import Table, basis_from_json, reading_as_json, reading_from_json
from hushsum.files.arrays import (
    check_packed,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
    pack_integers,
    unpack_integers,
)
from hushsum.files.container import Buffer, FileKind, Header, write_container
from hushsum.privacy.calibration import GAMMA, GAUSSIAN, LAPLACE, NONE, IntegerNoise, root_above
from hushsum.privacy.claim import Claim
from hushsum.privacy.release_noise import REAL_ARITHMETIC
from hushsum.releases.load import check_names, register
from hushsum.releases.noisy_table import LARGEST_STEP, NoisyTable, function_of

_LARGEST_COUNT = 2**63
_WORTH_PACKING = 4096
"""Cells. Smaller tables are stored as they are, unless their cells are rounded."""


def save_table(function: NoisyTable, target: PathOrFile) -> None:
    """Write a released table, packed where that is shorter; to a path atomically."""
    type_name = narrowest_type(function.table)
    about: dict[str, Any] = {"type": type_name, "shape": list(function.basis.shape)}
    payload: Buffer = encode_array(function.table, type_name)
    if function.table.size >= _WORTH_PACKING or function.step != 1:
        unit = _unit(function)
        packed, centre = pack_integers(function.table, unit)
        if len(packed) < len(payload):
            about["packed"] = {"centre": centre, "size": len(packed), "unit": unit}
            payload = packed
    if function.step != 1:
        about["step"] = function.step
    header = {
        "type": "table",
        **reading_as_json(function.reading),
        "claim": function.claim.as_json(),
        "noise": function.noise.as_json(),
        "count": {"value": function.noisy_count, "noise": function.count_noise.as_json()},
        "producer": function.producer,
        "table": about,
    }
    write_container(target, FileKind.RELEASED, header, [payload])


def _unit(function: NoisyTable) -> int:
    """What all cells are multiples of: the step of their rounding, unless they were shifted since."""
    step = function.step
    return step if step == 1 or not (function.table % step).any() else 1


def _check_noise(function: NoisyTable) -> None:
    """Refuse a file whose noise cannot keep its claim; finds mistakes, not forgery.

    Pure ε and ρ add up exactly. For (ε, δ) the audit recomputes δ, which takes longer.
    """
    claim, per_unit = function.claim, function.claim.records_per_unit
    moved = function.basis.sensitivity(claim.relation).times(per_unit)
    counted = 0 if function.count_noise.mechanism == NONE else per_unit
    table, count = function.noise.parameter, function.count_noise.parameter
    epsilon, rho = claim.promise.epsilon, claim.promise.rho
    if claim.promise.pure and epsilon is not None:
        gamma = function.noise.mechanism == GAMMA
        moves = root_above(moved.l2_squared) if gamma else moved.l1
        spent = moves / table + (counted / count if counted else 0)
        shared = function.noise.cells == function.table.size and claim.arithmetic == REAL_ARITHMETIC
        kept = spent <= epsilon and (shared if gamma else function.noise.mechanism == LAPLACE)
    elif rho is not None:
        spent = moved.l2_squared / (2 * table) + (counted**2 / (2 * count) if counted else 0)
        kept = function.noise.mechanism == GAUSSIAN and spent <= rho
    else:
        kept = function.noise.mechanism == GAUSSIAN
    if not kept:
        raise ValueError("the noise does not keep the claim")


def _native_type(table: NDArray[Any]) -> Table:
    """The types the native loops read: 32 bits, or 64 where those were needed."""
    return table.astype(np.int64) if table.dtype.itemsize == 8 else table.astype(np.int32)


def _payload_size(header: Header) -> int:
    shape = basis_from_json(header["basis"]).shape
    if list(shape) != header["table"]["shape"]:
        raise ValueError("shape")
    size = encoded_size(shape, header["table"]["type"])
    if "packed" not in header["table"]:
        return size
    packed = _whole(header["table"]["packed"]["size"], 0, size)
    check_packed(shape, packed)
    return packed


def _table(header: Header, payload: memoryview, shape: tuple[int, ...]) -> Table:
    about = header["table"]
    if "packed" in about:
        packed = about["packed"]
        unit = _whole(packed["unit"], 1, LARGEST_STEP)
        centre = _whole(packed["centre"], -_LARGEST_COUNT, _LARGEST_COUNT - 1)
        return unpack_integers(payload, shape, about["type"], unit=unit, centre=centre)
    return _native_type(decode_array(payload, shape, about["type"]))


def _whole(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError("number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _build(header: Header, payload: memoryview) -> NoisyTable:
    check_names(header, "type", "basis", "kernel", "claim", "noise", "count", "producer", "table")
    check_names(header["count"], "value", "noise")
    reading = reading_from_json(header)
    count: dict[str, Any] = header["count"]
    if type(count["value"]) is not int or abs(count["value"]) > _LARGEST_COUNT:
        raise ValueError("count")
    function = function_of(
        reading=reading,
        table=_table(header, payload, reading.basis.shape),
        claim=Claim.from_json(header["claim"]),
        noise=IntegerNoise.from_json(header["noise"]),
        noisy_count=count["value"],
        count_noise=IntegerNoise.from_json(count["noise"]),
        producer=_text(header["producer"]),
        step=_whole(header["table"].get("step", 1), 1, LARGEST_STEP),
    )
    if function.count_noise.mechanism == NONE and function.noisy_count < 0:
        raise ValueError("a public number of records")
    _check_noise(function)
    return function


register("table", _payload_size, _build)
