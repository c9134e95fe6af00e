"""Reading the files of released tables, and comparing the noise that they state with their claim."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from hushsum.errors import FileRefused
from hushsum.files import (
    Header,
    PackedForm,
    PackedTable,
    PageCheck,
    check_packed,
    check_spelling,
    data_bytes,
    decode_array,
    digests_size,
    encoded_size,
    unpack_integers,
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
from hushsum.tables import Cells, basis_from_json, reading_from_json

from ._base import PublicFacts, check_names, register, stored_integer
from ._noisy_table import DIGEST_LETTERS, LARGEST_STEP, NoisyTable, StreamStep
from ._table_answers import function_type

_LARGEST_COUNT = 2**63
_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_LETTERS}}}", re.ASCII)


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
    if noise.mechanism == GAMMA:
        return whole and noise.cells >= function.cells.size
    return noise.mechanism in (GAUSSIAN, BINOMIAL)


def _count_laws(claim: Claim, noise: IntegerNoise) -> tuple[str, ...]:
    """The distributions that the noise of the count may have beside this one: pure ε adds to anything but
    ρ."""
    own = () if noise.mechanism == GAMMA else (noise.mechanism,)
    return own if claim.promise.rho is not None else (*own, LAPLACE)


def _payload_size(header: Header) -> int:
    shape = basis_from_json(header["basis"]).shape
    check_spelling(header["table"]["shape"], list(shape))
    if "cells" in header["table"]:
        return sum(_packed_sizes(header, shape))
    if "paged" in header:
        raise ValueError("paged")
    size = encoded_size(shape, header["table"]["type"])
    if "packed" not in header["table"]:
        return size
    packed = stored_integer(header["table"]["packed"]["size"], 0, size)
    check_packed(shape, packed)
    return packed


def _packed_sizes(header: Header, shape: tuple[int, int]) -> tuple[int, int, int]:
    """The bytes of a packed table's codes, exceptions and digests of pages."""
    about = header["table"]["cells"]
    codes = data_bytes(shape, stored_integer(about["bits"], 1, 64))
    if header["paged"] != codes:
        raise ValueError("paged")
    return codes, 16 * stored_integer(about["exceptions"], 0, math.prod(shape)), digests_size(codes)


def _packed_table(header: Header, payload: memoryview, shape: tuple[int, int]) -> PackedTable:
    """The table of a large file. Its pages are checked when they are first used, and nothing is unpacked."""
    about = header["table"]["cells"]
    check_names(about, "bits", "base", "unit", "exceptions", "total")
    check_names(header["table"], "shape", "step", "cells")
    total = stored_integer(about["total"], -_LARGEST_COUNT, _LARGEST_COUNT)
    form = PackedForm(
        stored_integer(about["bits"], 1, 64),
        stored_integer(about["base"], -_LARGEST_COUNT, _LARGEST_COUNT - 1),
        stored_integer(about["unit"], 1, LARGEST_STEP),
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
        unit = stored_integer(packed["unit"], 1, LARGEST_STEP)
        centre = stored_integer(packed["centre"], -_LARGEST_COUNT, _LARGEST_COUNT - 1)
        return unpack_integers(payload, shape, about["type"], unit=unit, centre=centre)
    stored = decode_array(payload, shape, about["type"])
    # The types the native loops read: 32 bits, or 64 where those were needed.
    return stored.astype(np.int64) if stored.dtype.itemsize == 8 else stored.astype(np.int32)


def _parts(listed: object, claim: Claim) -> tuple[str, ...]:
    """The releases that were added, each once; a sum of sites names as many as it claims."""
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise TypeError("parts")
    if listed != sorted(set(listed)) or not all(_DIGEST.fullmatch(each) for each in listed):
        raise ValueError("parts")
    sites = None if claim.trust is None or claim.trust.model != SITE_NOISE else claim.trust.parties
    if len(listed) > 1 if sites is None else len(listed) != sites:
        raise ValueError("parts")
    return tuple(listed)


def _build(header: Header, payload: memoryview) -> NoisyTable:
    count: dict[str, Any] = header["count"]
    reading = reading_from_json(header)
    if "constants" in header:
        reading = reading.with_constants(header["constants"])
    facts = PublicFacts.from_json(header)
    function = function_type(reading)(
        reading=reading,
        cells=_table(header, payload, reading.basis.shape),
        facts=facts,
        noise=IntegerNoise.from_json(header["noise"]),
        noisy_count=stored_integer(count["value"], -_LARGEST_COUNT, _LARGEST_COUNT),
        count_noise=IntegerNoise.from_json(count["noise"]),
        step=stored_integer(header["table"].get("step", 1), 1, LARGEST_STEP),
        stream_step=StreamStep.from_json(header["stream"]) if "stream" in header else None,
        parts=_parts(header.get("parts", []), facts.claim),
    )
    if function.count_noise.mechanism == NONE and function.noisy_count < 0:
        raise ValueError("a public number of records")
    relations = [function.claim.relation] if function.stream_step is None else list(Relation)
    if any(function.basis.costly_sensitivity(each) for each in relations):
        return replace(function, unchecked=_check_noise_later)
    _check_noise(function)
    return function


register(NoisyTable.kind, _payload_size, _build, "table", "paged")
