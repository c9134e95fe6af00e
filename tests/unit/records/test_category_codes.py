from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hushsum.errors import DataRefused
from hushsum.records import as_codes

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CODES = np.array([[0, 7], [2**31 - 1, -(2**31)]])


@pytest.mark.parametrize(
    "data",
    [
        CODES,
        CODES.astype(np.int32),
        CODES.astype(np.float64),
        CODES.tolist(),
        pd.DataFrame(CODES),
        pd.DataFrame({"a": CODES[:, 0], "b": CODES[:, 1].astype(float)}),
        pl.DataFrame(CODES),
        pa.table({"a": CODES[:, 0], "b": CODES[:, 1]}),
    ],
)
def test_every_container(data: object) -> None:
    out = as_codes(data, dim=2)
    assert out.dtype == np.int32
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, CODES)


def test_int32_rows_are_not_copied() -> None:
    rows = CODES.astype(np.int32)
    assert np.shares_memory(as_codes(rows, dim=2), rows)


def test_flags_and_columns() -> None:
    frame = pa.table({"a": [True, False], "b": [3, 4]})
    np.testing.assert_array_equal(as_codes(frame, dim=1, columns=["a"]), [[1], [0]])


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "fraction": (
        lambda: [[1.0, 98765.4321]],
        "column 1 must be of integer codes, got numbers with a fraction",
    ),
    "nan": (lambda: [[1.0, np.nan]], "column 1 must be of integer codes"),
    "infinity": (lambda: [[1.0, np.inf]], "column 1 must be of integer codes"),
    "beyond": (lambda: [[1, 987654321987]], "column 1 must be of integer codes within int32"),
    "below": (lambda: [[1, -987654321987]], "within int32"),
    "unsigned beyond": (lambda: np.array([[1, 2**63 + 98765]], dtype=np.uint64), "within int32"),
    "float beyond": (lambda: [[1.0, 98765e20]], "within int32"),
    "categories": (
        lambda: pd.DataFrame({"a": [1], "b": pd.Categorical(["98765"])}),
        "column 'b' .* got categories; encode it with a public list of categories",
    ),
    "dictionary": (
        lambda: pa.table({"a": [1], "b": pa.array(["98765"]).dictionary_encode()}),
        "column 'b' .* public list of categories",
    ),
    "text": (lambda: pl.DataFrame({"a": [1], "b": ["98765"]}), "public list of categories"),
    "null": (lambda: pa.table({"a": [1], "b": pa.array([None], pa.int64())}), "must not have missing"),
    "width": (lambda: [[98765]], "must have 2 columns, got 1"),
    "no rows": (lambda: np.empty((0, 2), dtype=np.int32), "at least one record"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_rule_and_no_value(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DataRefused, match=message) as caught:
        as_codes(make(), dim=2)
    assert "9876" not in str(caught.value)
