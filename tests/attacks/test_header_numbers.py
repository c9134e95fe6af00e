"""Numbers in headers and messages that would take hours to read: one bounded parser reads them all."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import hushsum as hs
from hushsum.errors import ClaimError, FileRefused
from hushsum.files import MOST_DIGITS, stored_rational
from hushsum.ledger import Charge, DatasetTerms
from hushsum.parties.summarization import NoisyTarget, Opening, RunTerms
from hushsum.privacy import Claim, exact
from tests.fuzz.mutate import joined, split
from tests.fuzz.targets import TARGETS, repair_container
from tests.source_trees import source_trees

ABSURD = [
    "1e9999999",
    "1e-9999999",
    "1E+9999999",
    "-1e9999999",
    "9" * 4001,
    "1/" + "9" * 4001,
    "1e400",
    "0.1",
]
PLACES: list[tuple[str, ...]] = [
    ("claim", "epsilon"),
    ("claim", "delta"),
    ("claim", "rho"),
    ("noise", "parameter"),
    ("count", "noise", "parameter"),
]


def changed(data: bytes, place: tuple[str, ...], value: Any) -> bytes:
    """A file with one value of its header replaced, and a checksum that holds."""
    prefix, header, payload = split(data)
    about = json.loads(header)
    inner = about
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return joined(prefix, json.dumps(about).encode(), payload)


@pytest.fixture(scope="module")
def released() -> bytes:
    buffer = io.BytesIO()
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=5, width=5).add([[0.0]] * 10)
    tally.release(epsilon=1.0, insecure_noise_seed=1).save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(place))
@pytest.mark.parametrize("text", ABSURD, ids=lambda text: text[:12])
def test_a_released_file_with_such_a_number_is_refused(
    released: bytes, place: tuple[str, ...], text: str
) -> None:
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(changed(released, place, text)))


@pytest.mark.parametrize("depth", [100, 100_000])
def test_nesting_and_long_integers_are_refused(released: bytes, depth: int) -> None:
    prefix, header, payload = split(released)
    deep = header.replace(b'"producer":', b'"more":' + b"[" * depth + b"]" * depth + b',"producer":')
    long = header.replace(b'"value":', b'"value":' + b"9" * (depth + 20))
    for each in (deep, long):
        with pytest.raises(FileRefused):
            hs.load(io.BytesIO(joined(prefix, each, payload)))


def message(position: int) -> bytes:
    return TARGETS["messages"].seeds()[position]


@pytest.mark.parametrize("text", ABSURD, ids=lambda text: text[:12])
@pytest.mark.parametrize(
    ("position", "field", "reader"),
    [
        (0, "rho", RunTerms.from_bytes),
        (2, "rho", NoisyTarget.from_bytes),
        (2, "variance", NoisyTarget.from_bytes),
    ],
)
def test_a_message_with_such_a_number_is_refused(
    position: int, field: str, reader: Callable[[bytes], Any], text: str
) -> None:
    data = message(position)
    prefix, header, payload = split(data)
    about = json.loads(header)
    about["values"][field] = text
    hostile = joined(prefix, json.dumps(about).encode(), payload)
    with pytest.raises(FileRefused):
        reader(hostile)
    assert reader(data)


def test_an_opening_with_such_terms_is_refused() -> None:
    opening = Opening.from_bytes(message(1))
    assert opening.terms.rho == Fraction(1, 10)
    whole = message(1)
    # The terms are bytes inside the opening, with a checksum of their own.
    place = whole.index(b'"rho":"1/10"')
    assert place > 0
    with pytest.raises(FileRefused):
        Opening.from_bytes(repair_container(whole[:place] + b'"rho":"1e99"' + whole[place + 12 :]))


@pytest.mark.parametrize("text", ABSURD, ids=lambda text: text[:12])
def test_a_ledger_entry_with_such_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rational"):
        Charge.from_json({"epsilon": text, "delta": "0", "rho": "0"})
    terms = DatasetTerms.of(rho=1.0, delta=1e-6).as_json()
    with pytest.raises(ValueError, match="rational"):
        DatasetTerms.from_json({**terms, "report_delta": text})
    assert DatasetTerms.from_json(terms).as_json() == terms


@pytest.mark.parametrize("text", ["1e9999999", "1e-9999999", "1" * 101, "1/10", "1", ""])
def test_a_parameter_that_is_text_is_refused(text: Any) -> None:
    with pytest.raises(ClaimError, match="epsilon must be a number"):
        exact("epsilon", text)


@pytest.mark.parametrize("value", [0, 1, -3, Fraction(1, 3), Fraction(5e-324), Fraction(10**MOST_DIGITS - 1)])
def test_what_is_written_is_read(value: Fraction | int) -> None:
    assert stored_rational(str(Fraction(value))) == value


@pytest.mark.parametrize(
    "text", ["01", "2/4", "1/1", "+1", " 1", "1 ", "1_0", "１", "-0", "1/-2", "1.0", "", 1, None]
)
def test_a_rational_has_one_spelling(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        stored_rational(text)


def test_no_other_module_makes_fractions_of_text() -> None:
    """``Fraction(x["name"])`` and ``Fraction(text)`` are how it was done wrong."""
    found = []
    for place, tree in source_trees().items():
        for node in ast.walk(tree):
            called = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fraction"
            )
            if not called or place == "files/_encoding.py":
                continue
            assert isinstance(node, ast.Call)
            for argument in node.args:
                if isinstance(argument, ast.Subscript) or (
                    isinstance(argument, ast.Name) and argument.id in ("text", "string", "reported")
                ):
                    found.append(f"{place}:{node.lineno}")
    assert not found


def test_claims_are_read_back() -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=5, width=5).add([[0.0]] * 10)
    claim = tally.release(epsilon=0.1, delta=1e-9).claim
    assert Claim.from_json(claim.as_json()) == claim
