"""Released tables as ``.hush`` files."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.errors import FileRefused
from hushsum.files import (
    Buffer,
    FileKind,
    Header,
    Section,
    check_packed,
    check_spelling,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
    pack_integers,
    unpack_integers,
    write_container,
)
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    NONE,
    SITE_NOISE,
    SKELLAM,
    SUM,
    Claim,
    IntegerNoise,
    Relation,
    protecting_noises,
    root_above,
)
from hushsum.privacy.accounting import skellam_rho
from hushsum.releases._load import check_names, register
from hushsum.releases._noisy_table import DIGEST_LETTERS, LARGEST_STEP, NoisyTable, StreamStep, function_of
from hushsum.tables import Cells, Table, basis_from_json, reading_as_json, reading_from_json

if TYPE_CHECKING:
    from hushsum.files import PackedTable

_LARGEST_COUNT = 2**63
_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_LETTERS}}}", re.ASCII)
_WRITTEN = 1 << 24
_WORTH_PACKING = 4096
"""Cells. Smaller tables are stored as they are, unless their cells are rounded."""


def save_table(function: NoisyTable, target: PathOrFile) -> None:
    """Write a released table, packed where that is shorter; to a path atomically.

    A table that is packed in memory keeps its fixed number of bits per cell, to be memory-mapped.
    """
    if not isinstance(function.cells, np.ndarray):
        _save_packed(function, function.cells, target)
        return
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
    write_container(target, FileKind.RELEASED, _header(function, about), [payload])


def _save_packed(function: NoisyTable, cells: PackedTable, target: PathOrFile) -> None:
    cells.verify()  # a damaged page must not get a new checksum
    about = {
        "shape": list(cells.shape),
        "step": function.step,
        "cells": {**cells.form._asdict(), "exceptions": len(cells.exception_cells), "total": cells.total},
    }
    sections = [encode_array(cells.exception_cells, "int64"), encode_array(cells.exception_values, "int64")]
    data = cells.data.data
    paged = Section(len(data), lambda: (data[i : i + _WRITTEN] for i in range(0, len(data), _WRITTEN)))
    write_container(target, FileKind.RELEASED, _header(function, about), sections, paged=paged)


def _header(function: NoisyTable, about: dict[str, Any]) -> Header:
    stream = {} if function.stream_step is None else {"stream": function.stream_step.as_json()}
    parts = {"parts": list(function.parts)} if function.parts else {}
    constants = function.reading.constants_as_json()
    return {
        **({} if constants is None else {"constants": constants}),
        **stream,
        **parts,
        "type": "table",
        **reading_as_json(function.reading),
        "claim": function.claim.as_json(),
        "noise": function.noise.as_json(),
        "count": {"value": function.noisy_count, "noise": function.count_noise.as_json()},
        "producer": function.producer,
        "table": about,
    }


def _unit(function: NoisyTable) -> int:
    """What all cells are multiples of: the step of their rounding, unless they were shifted since."""
    step = function.step
    return step if step == 1 or not (function.table % step).any() else 1


def _check_noise_later(function: NoisyTable) -> None:
    """`_check_noise` when a function that was read is first used."""
    try:
        _check_noise(function)
    except (TypeError, ValueError, ArithmeticError):
        raise FileRefused(
            "the noise that the file states does not keep its claim", remedy="ask who wrote it"
        ) from None


def _check_noise(function: NoisyTable) -> None:
    """Refuse a file whose noise cannot keep its claim; finds mistakes, not forgery.

    Pure ε and ρ add up exactly. For (ε, δ) the audit recomputes δ, which takes longer.

    Privacy
    -------
    A file is public when it is read: what it reveals was decided when it was written, so the check protects
    no record. It protects readers, and owners who passed a mistaken file on, from believing its claim. So no
    answer, description, copy or sum of a file is given before the check; where the sensitivity takes long to
    compute (`Basis.costly_sensitivity`), the first of them does it instead of the reading.
    """
    stated = (function.noise, function.count_noise)
    if function.stream_step is not None:
        if not function.stream_step.keeps(function.claim, function.basis, *stated):
            raise ValueError("the noise does not keep the claim")
        return
    noises = protecting_noises(function.claim, *stated)
    if not noises or not all(_keeps(function, *each) for each in noises):
        raise ValueError("the noise does not keep the claim")


def _keeps(function: NoisyTable, noise: IntegerNoise, count_noise: IntegerNoise) -> bool:
    if SUM in (noise.mechanism, count_noise.mechanism):
        # Noise of several parties, in a claim of one: no part of it is known to be secret.
        return False
    claim = function.claim
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    moved, counted = change.table, change.count
    if counted and count_noise.mechanism not in _count_laws(claim, noise):
        return False
    table, count = noise.parameter, count_noise.parameter
    epsilon, rho = claim.promise.epsilon, claim.promise.rho
    whole = noise.parts == count_noise.parts == 1
    if epsilon is not None and (claim.promise.pure or noise.mechanism == LAPLACE):
        gamma = noise.mechanism == GAMMA
        moves = root_above(moved.l2_squared) if gamma else moved.l1
        spent = moves / table + (counted / count if counted else 0)
        # Of a table of which some rows were published, the cells are those of the whole.
        known = noise.cells >= function.cells.size if gamma else noise.mechanism == LAPLACE
        return whole and spent <= epsilon and known
    if noise.mechanism == SKELLAM:
        if moved.largest > 1 or counted > 1:
            return False
        counted_variance = count if counted else None
        return (
            rho is None
            or skellam_rho(cells=moved.l2_squared, variance=table, count_variance=counted_variance) <= rho
        )
    if rho is not None:
        spent = moved.l2_squared / (2 * table) + (counted**2 / (2 * count) if counted else 0)
        return noise.mechanism == GAUSSIAN and spent <= rho
    return noise.mechanism in (GAUSSIAN, BINOMIAL)


def _count_laws(claim: Claim, noise: IntegerNoise) -> tuple[str, ...]:
    """The distributions that the noise of the count may have beside this one: pure ε adds to anything but
    ρ."""
    own = () if noise.mechanism == GAMMA else (noise.mechanism,)
    return own if claim.promise.rho is not None else (*own, LAPLACE)


def _native_type(table: NDArray[Any]) -> Table:
    """The types the native loops read: 32 bits, or 64 where those were needed."""
    return table.astype(np.int64) if table.dtype.itemsize == 8 else table.astype(np.int32)


def _payload_size(header: Header) -> int:
    shape = basis_from_json(header["basis"]).shape
    check_spelling(header["table"]["shape"], list(shape))
    if "cells" in header["table"]:
        return sum(_packed_sizes(header, shape))
    size = encoded_size(shape, header["table"]["type"])
    if "packed" not in header["table"]:
        return size
    packed = _whole(header["table"]["packed"]["size"], 0, size)
    check_packed(shape, packed)
    return packed


def _packed_sizes(header: Header, shape: tuple[int, int]) -> tuple[int, int, int]:
    """The bytes of a packed table's codes, exceptions and digests of pages."""
    from hushsum.files import data_bytes, digests_size

    about = header["table"]["cells"]
    codes = data_bytes(shape, _whole(about["bits"], 1, 64))
    if header["paged"] != codes:
        raise ValueError("paged")
    return codes, 16 * _whole(about["exceptions"], 0, prod(shape)), digests_size(codes)


def _packed_table(header: Header, payload: memoryview, shape: tuple[int, int]) -> PackedTable:
    """The table of a large file. Its pages are checked when they are first used, and nothing is unpacked."""
    from hushsum.files import PackedForm, PackedTable, PageCheck

    about = header["table"]["cells"]
    check_names(about, "bits", "base", "unit", "exceptions", "total")
    check_names(header["table"], "shape", "step", "cells")
    total = _whole(about["total"], -_LARGEST_COUNT, _LARGEST_COUNT)
    form = PackedForm(
        _whole(about["bits"], 1, 64),
        _whole(about["base"], -_LARGEST_COUNT, _LARGEST_COUNT - 1),
        _whole(about["unit"], 1, LARGEST_STEP),
    )
    codes, exceptions, _ = _packed_sizes(header, shape)
    listed = decode_array(payload[codes : codes + exceptions], (2, exceptions // 16), "int64")
    check = PageCheck(payload[:codes], payload[codes + exceptions :])
    data = np.frombuffer(payload[:codes], np.uint8)
    return PackedTable(shape, form, data, listed[0].copy(), listed[1].copy(), total, check=check)


def _table(header: Header, payload: memoryview, shape: tuple[int, int]) -> Cells:
    about = header["table"]
    if "cells" in about:
        return _packed_table(header, payload, shape)
    check_names({"step": None, "packed": None, **about}, "type", "shape", "step", "packed")
    if "packed" in about:
        packed = about["packed"]
        check_names(packed, "centre", "size", "unit")
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


def _parts(listed: object, claim: Claim) -> tuple[str, ...]:
    """The releases that were added, each once; a sum of sites names as many as it claims."""
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise TypeError("parts")
    if listed != sorted(set(listed)) or not all(_DIGEST.fullmatch(each) for each in listed):
        raise ValueError("parts")
    merged = claim.trust is not None and claim.trust.model == SITE_NOISE
    if claim.trust is not None and merged and claim.trust.parties != len(listed):
        raise ValueError("parts")
    if not merged and len(listed) > 1:
        raise ValueError("parts")
    return tuple(listed)


def _build(header: Header, payload: memoryview) -> NoisyTable:
    paged = ("paged",) if "cells" in header["table"] else ()
    stream = ("stream",) if "stream" in header else ()
    parts = ("parts",) if "parts" in header else ()
    names = ("type", "basis", "kernel", "claim", "noise", "count", "producer", "table")
    constants = ("constants",) if "constants" in header else ()
    check_names(header, *names, *paged, *stream, *parts, *constants)
    check_names(header["count"], "value", "noise")
    reading = reading_from_json(header)
    if constants:
        reading = reading.with_constants(header["constants"])
    count: dict[str, Any] = header["count"]
    if type(count["value"]) is not int or abs(count["value"]) > _LARGEST_COUNT:
        raise ValueError("count")
    claim = Claim.from_json(header["claim"])
    function = function_of(
        reading=reading,
        cells=_table(header, payload, reading.basis.shape),
        claim=claim,
        noise=IntegerNoise.from_json(header["noise"]),
        noisy_count=count["value"],
        count_noise=IntegerNoise.from_json(count["noise"]),
        producer=_text(header["producer"]),
        step=_whole(header["table"].get("step", 1), 1, LARGEST_STEP),
        stream_step=StreamStep.from_json(header["stream"]) if stream else None,
        parts=_parts(header.get("parts", []), claim),
    )
    if function.count_noise.mechanism == NONE and function.noisy_count < 0:
        raise ValueError("a public number of records")
    pages = {name: header[name] for name in paged}
    check_spelling(header, {**_header(function, header["table"]), **pages})
    relations = [claim.relation] if function.stream_step is None else list(Relation)
    if any(function.basis.costly_sensitivity(each) for each in relations):
        return replace(function, unchecked=_check_noise_later)
    _check_noise(function)
    return function


register("table", _payload_size, _build)
