"""Released curves as ``.hush`` files."""

from __future__ import annotations

from hushsum._types import PathOrFile
from hushsum.files.container import FileKind, Header, write_container
from hushsum.releases.curve import CurveFunction
from hushsum.releases.float_file import (
    COMMON,
    MOST_NUMBERS,
    common_fields,
    common_header,
    decode_reals,
    encode_reals,
    encoded_reals,
    whole,
)
from hushsum.releases.load import check_names, register

TYPE = "curve"


def save_curve(function: CurveFunction, target: PathOrFile) -> None:
    """Write a released curve; to a path atomically."""
    header = {**common_header(function, TYPE), "values": len(function.values)}
    write_container(target, FileKind.RELEASED, header, encode_reals([function.values, function.errors]))


def _payload_size(header: Header) -> int:
    number = whole(header["values"], at_most=MOST_NUMBERS)
    return encoded_reals(number, number)


def _build(header: Header, payload: memoryview) -> CurveFunction:
    check_names(header, *COMMON, "values")
    number = whole(header["values"], at_most=MOST_NUMBERS)
    values, errors = decode_reals(payload, [(number,), (number,)])
    if (errors < 0.0).any():
        raise ValueError("errors")
    return CurveFunction(values=values, errors=errors, **common_fields(header))


register(TYPE, _payload_size, _build)
