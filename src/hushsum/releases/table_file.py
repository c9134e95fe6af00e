"""Released tables as ``.hush`` files."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Table, basis_as_json, basis_from_json
from hushsum.files.arrays import decode_array, encode_array, encoded_size, narrowest_type
from hushsum.files.container import FileKind, Header, write_container
from hushsum.privacy.calibration import GAUSSIAN, LAPLACE, NONE, IntegerNoise
from hushsum.privacy.claim import Claim
from hushsum.releases.function_of import function_of
from hushsum.releases.load import register
from hushsum.releases.noisy_table import NoisyTable

_LARGEST_COUNT = 2**63


def save_table(function: NoisyTable, target: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a released table; to a path atomically."""
    type_name = narrowest_type(function.table)
    header = {
        "type": "table",
        "basis": basis_as_json(function.basis),
        "claim": function.claim.as_json(),
        "noise": function.noise.as_json(),
        "count": {"value": function.noisy_count, "noise": function.count_noise.as_json()},
        "producer": function.producer,
        "table": {"type": type_name, "shape": list(function.basis.shape)},
    }
    write_container(target, FileKind.RELEASED, header, [encode_array(function.table, type_name)])


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
        spent = moved.l1 / table + (counted / count if counted else 0)
        kept = function.noise.mechanism == LAPLACE and spent <= epsilon
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
    return encoded_size(shape, header["table"]["type"])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _build(header: Header, payload: memoryview) -> NoisyTable:
    basis = basis_from_json(header["basis"])
    count: dict[str, Any] = header["count"]
    if type(count["value"]) is not int or abs(count["value"]) > _LARGEST_COUNT:
        raise ValueError("count")
    function = function_of(
        basis=basis,
        table=_native_type(decode_array(payload, basis.shape, header["table"]["type"])),
        claim=Claim.from_json(header["claim"]),
        noise=IntegerNoise.from_json(header["noise"]),
        noisy_count=count["value"],
        count_noise=IntegerNoise.from_json(count["noise"]),
        producer=_text(header["producer"]),
    )
    _check_noise(function)
    return function


register("table", _payload_size, _build)
