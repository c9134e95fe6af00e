from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused, HushsumError, UsageError
from hushsum.records import Bounds, as_dense

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
sparse = pytest.importorskip("scipy.sparse")

SECRET = 98765.4321
ROWS = np.array([[1.5, -2.0, 3.0], [4.0, 5.25, 1e-3]], dtype=np.float64)
NAMES = ["a", "b", "c"]


def fixed(values: Any, kind: Any = None) -> Any:
    flat = pa.array(np.asarray(values).ravel(), type=kind)
    return pa.FixedSizeListArray.from_arrays(flat, np.shape(values)[1])


class OnlyArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return ROWS


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(dict(zip(NAMES, ROWS.T, strict=True))).__arrow_c_stream__(requested_schema)


CONTAINERS: dict[str, Callable[[], object]] = {
    "float64": lambda: ROWS,
    "float32": lambda: ROWS.astype(np.float32),
    "fortran": lambda: np.asfortranarray(ROWS),
    "strided": lambda: np.repeat(ROWS, 2, axis=0)[::2],
    "big endian": lambda: ROWS.astype(">f8"),
    "lists": lambda: ROWS.tolist(),
    "tuple of arrays": lambda: tuple(ROWS),
    "unmasked": lambda: np.ma.MaskedArray(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS, columns=NAMES),
    "pandas mixed": lambda: pd.DataFrame(ROWS, columns=NAMES).astype({"a": "Float64", "b": "float32"}),
    "pandas arrow": lambda: pd.DataFrame(ROWS, columns=NAMES).astype("double[pyarrow]"),
    "pandas series of lists": lambda: pd.Series([list(row) for row in ROWS]),
    "pandas column of arrays": lambda: pd.DataFrame({"embedding": list(ROWS)}),
    "polars": lambda: pl.DataFrame(ROWS, schema=NAMES),
    "polars lists": lambda: pl.Series([row.tolist() for row in ROWS]),
    "polars arrays": lambda: pl.Series(ROWS, dtype=pl.Array(pl.Float64, 3)),
    "table": lambda: pa.table(dict(zip(NAMES, ROWS.T, strict=True))),
    "batch": lambda: pa.RecordBatch.from_arrays([pa.array(column) for column in ROWS.T], NAMES),
    "chunked": lambda: pa.chunked_array([fixed(ROWS[:1]), fixed(ROWS[1:])]),
    "fixed lists": lambda: fixed(ROWS),
    "sliced fixed lists": lambda: fixed(np.concatenate([ROWS[:1], ROWS]))[1:],
    "lists column": lambda: pa.array(ROWS.tolist()),
    "tensor extension": lambda: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float64(), [3]), fixed(ROWS)
    ),
    "table of embeddings": lambda: pa.table({"embedding": fixed(ROWS)}),
    "stream": OnlyStream,
    "array protocol": OnlyArray,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_bits(container: str) -> None:
    out = as_dense(CONTAINERS[container](), dim=3)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, ROWS.astype(np.float32))


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_bits_within_bounds(container: str) -> None:
    box = Bounds((0.0, -1.0, 0.0), (3.0, 1.0, 2.0))
    source: Any = ROWS.astype(np.float32) if container == "float32" else ROWS.copy()
    if container == "pandas mixed":
        source[:, 1] = source[:, 1].astype(np.float32)
    expected = (np.clip(source, box.low, box.high) - box.centre).astype(np.float32)
    np.testing.assert_array_equal(as_dense(CONTAINERS[container](), dim=3, bounds=box), expected)


def test_float32_rows_are_not_copied() -> None:
    rows = ROWS.astype(np.float32)
    assert as_dense(rows, dim=3) is rows
    assert np.shares_memory(as_dense(rows[0], dim=3), rows)


@pytest.mark.parametrize(
    "vector",
    [ROWS[0], ROWS[0].tolist(), pd.Series(ROWS[0]), pl.Series(ROWS[0]), pa.array(ROWS[0])],
    ids=["numpy", "list", "pandas", "polars", "arrow"],
)
def test_one_dimension_is_one_record_or_n_records_of_one_column(vector: object) -> None:
    np.testing.assert_array_equal(as_dense(vector, dim=3), ROWS[:1].astype(np.float32))
    np.testing.assert_array_equal(as_dense(vector, dim=1), ROWS[0].astype(np.float32).reshape(3, 1))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.uint64, np.float16])
def test_numbers_of_every_type(kind: type) -> None:
    rows: Any = np.array([[0, 1], [1, 1]]).astype(kind)
    np.testing.assert_array_equal(as_dense(rows, dim=2), rows.astype(np.float32))
    np.testing.assert_array_equal(as_dense(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), dim=2), rows)


def test_wide_integers_round_through_float64() -> None:
    # Exactly 2^60 + 2^36 + 1: one rounding goes up, two go to even.
    value = 2**60 + 2**36 + 1
    assert np.int64(value).astype(np.float32) != np.float32(np.float64(value))
    for data in (np.array([[value]]), [[value]], pa.table({"a": [value]}), pd.DataFrame({"a": [value]})):
        assert as_dense(data, dim=1)[0, 0] == np.float32(np.float64(value))


@pytest.mark.parametrize("container", ["pandas", "pandas mixed", "polars", "table", "batch", "stream"])
def test_columns_are_chosen_by_name(container: str) -> None:
    out = as_dense(CONTAINERS[container](), dim=2, columns=["c", "a"])
    np.testing.assert_array_equal(out, ROWS[:, [2, 0]].astype(np.float32))
    with pytest.raises(
        UsageError, match="columns must name columns of the data, got 'x'; the columns are 'a', 'b', 'c'"
    ):
        as_dense(CONTAINERS[container](), dim=1, columns=["x"])
    with pytest.raises(UsageError, match="each column once"):
        as_dense(CONTAINERS[container](), dim=2, columns=["a", "a"])


def test_a_part_of_a_name_is_completed() -> None:
    frame = pd.DataFrame(ROWS, columns=["Pay, per year (€)", "Age in years", "c d"])
    with pytest.raises(UsageError, match="did you mean 'Age in years'"):
        as_dense(frame, dim=1, columns=["years"])
    for other in ("age", "wages"):  # too little of a name to tell what was meant, and none of it
        with pytest.raises(UsageError, match="check the first line"):
            as_dense(frame, dim=1, columns=[other])


def test_an_ambiguous_column_is_refused() -> None:
    with pytest.raises(UsageError, match="unique"):
        as_dense(pd.DataFrame(ROWS, columns=["a", "a", "b"]), dim=1, columns=["a"])


def bad(value: float, position: int = 1) -> Any:
    rows = np.full((3, 2), SECRET, dtype=np.float64)
    rows[2, position] = value
    return rows


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "nan": (lambda: bad(np.nan), "column 1 must be finite, got NaN"),
    "infinity": (lambda: bad(-np.inf), "column 1 must be finite, got infinity"),
    "nan float32": (lambda: bad(np.nan).astype(np.float32), "column 1 must be finite, got NaN"),
    "beyond float32": (lambda: bad(SECRET * 1e35), "float32's range"),
    "named nan": (lambda: pd.DataFrame(bad(np.nan), columns=["x", "y"]), "column 'y' must be finite"),
    "named infinity": (lambda: pa.table({"x": [1.0], "y": [np.inf]}), "column 'y' must be finite"),
    "null arrow": (lambda: pa.table({"x": [SECRET], "y": [None]}), "column 'y' must not have missing"),
    "null number": (lambda: pa.table({"x": [SECRET, None], "y": [1, 2]}), "'x' must not have missing"),
    "null polars": (lambda: pl.DataFrame({"x": [SECRET, None], "y": [1, 2]}), "'x' must not have"),
    "null pandas": (
        lambda: pd.DataFrame({"x": pd.array([1, None], dtype="Int64"), "y": [SECRET, 1]}),
        "'x' must not have missing",
    ),
    "null in a list": (lambda: pa.array([[SECRET, None]]), "must not have missing"),
    "null list": (lambda: pa.array([[SECRET, 1.0], None]), "must not have missing"),
    "none in lists": (lambda: [[SECRET, None]], "must be of numbers"),
    "masked": (lambda: np.ma.MaskedArray(bad(1.0), bad(1.0) == 1.0), "got a masked array"),
    "width": (lambda: np.full((2, 3), SECRET), "must have 2 columns, got 3"),
    "width of a vector": (
        lambda: np.full(5, SECRET),
        "must have 2 columns, got one dimension of another length",
    ),
    "width of a table": (lambda: pa.table({"x": [SECRET]}), "must have 2 columns, got 1"),
    "width of a wide table": (lambda: pa.table({c: [SECRET] for c in "xyz"}), "2 columns, got 3"),
    "width of a frame": (lambda: pd.DataFrame({"x": [1], "y": [SECRET], "z": ["t"]}), "2 columns, got 3"),
    "width of lists": (lambda: pa.array([[SECRET], [1.0, 2.0]]), "lists of 2 numbers, got another length"),
    "ragged": (lambda: [[SECRET], [1.0, 2.0]], "rectangle of numbers"),
    "no rows": (lambda: np.empty((0, 2), np.float32), "at least one record"),
    "no rows float64": (lambda: np.empty((0, 2)), "at least one record"),
    "no rows frame": (
        lambda: pd.DataFrame({"x": [1.0], "y": ["a"]})[:0].astype(float),
        "at least one record",
    ),
    "no rows table": (lambda: pa.table({"x": [1.0], "y": [2.0]})[:0], "at least one record"),
    "no rows polars": (lambda: pl.DataFrame({"x": [1.0], "y": [2.0]})[:0], "at least one record"),
    "text": (lambda: np.array([[str(SECRET), "b"]]), "column 1 must be of numbers, got text.*PublicEncoder"),
    "text in lists": (lambda: [[SECRET, "b"]], "column 1 must be of numbers, got text"),
    "text polars": (lambda: pl.DataFrame({"x": [1], "y": ["b"]}), "column 'y' must be of numbers, got text"),
    "text column": (lambda: pa.table({"x": [1], "y": [str(SECRET)]}), "column 'y' must be of numbers"),
    "text pandas": (lambda: pd.DataFrame({"x": [1], "y": [str(SECRET)]}), "column 'y' must be of numbers"),
    "objects pandas": (
        lambda: pd.DataFrame({"x": [1], "y": pd.Series([SECRET], dtype=object)}),
        "column 'y' must be of numbers, got Python objects",
    ),
    "mixed objects pandas": (
        lambda: pd.DataFrame({"x": [1, 2], "y": [SECRET, "a"]}),
        "column 'y' must be of numbers, got Python objects",
    ),
    "categories pandas": (
        lambda: pd.DataFrame({"x": [1], "y": pd.Categorical([SECRET])}),
        "column 'y' must be of numbers, got categories",
    ),
    "categories polars": (
        lambda: pl.DataFrame({"x": [1], "y": pl.Series([str(SECRET)], dtype=pl.Categorical)}),
        "column 'y' must be of numbers, got categories",
    ),
    "dates": (lambda: np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"), "of numbers, got dates"),
    "dates pandas": (
        lambda: pd.DataFrame({"x": [1], "y": pd.to_datetime(["2020-01-01"])}),
        "column 'y' must be of numbers, got dates",
    ),
    "dates polars": (
        lambda: pl.DataFrame({"x": [1], "y": [1]}).with_columns(pl.col("y").cast(pl.Date)),
        "column 'y' must be of numbers, got date",
    ),
    "decimals": (
        lambda: pa.table({"x": [1], "y": pa.array([1]).cast(pa.decimal128(38, 2))}),
        "cast them to float64",
    ),
    "complex": (lambda: bad(1).astype(complex), "of numbers, got complex numbers"),
    "objects": (lambda: bad(1).astype(object), "of numbers, got Python objects"),
    "structures": (lambda: np.array([(SECRET, 1)], dtype="f8,f8"), "of numbers, got structures"),
    "three dimensions": (lambda: bad(1)[None], r"two dimensions \(records, 2\), got 3"),
    "no dimension": (lambda: np.float64(SECRET), "two dimensions"),
    "lists of lists": (lambda: pa.array([[[SECRET], [1.0]]]), "flatten them"),
    "sparse": (lambda: sparse.csr_array(bad(1)), r"kernel on sets, .* or pass data.toarray\(\)"),
    "sparse matrix": (lambda: sparse.coo_matrix(bad(1)), "kernel on sets"),
    "string": (lambda: str(SECRET), "must be records, got a str; read the file first"),
    "path": (lambda: Path(f"{SECRET}.csv"), "read the file first"),
    "dict": (lambda: {"x": SECRET}, "must be an array"),
    "generator": (lambda: (row for row in bad(1)), "must be an array"),
}


@pytest.mark.parametrize("with_bounds", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_rule_and_no_value(case: str, with_bounds: bool) -> None:
    make, message = REFUSED[case]
    if with_bounds and case == "beyond float32":
        pytest.skip("bounds clip it")
    bounds = Bounds.of((0, 1), 2) if with_bounds else None
    with pytest.raises(DataRefused, match=message) as caught:
        as_dense(make(), dim=2, bounds=bounds)
    assert_discreet(caught.value)


def assert_discreet(error: HushsumError) -> None:
    text = str(error)
    assert "98765" not in text
    assert "\n" not in text
    assert error.__suppress_context__ or error.__context__ is None


def test_an_object_that_fails_to_convert_is_not_quoted() -> None:
    class Quoting:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError(f"cannot convert {SECRET}")

    with pytest.raises(DataRefused) as caught:
        as_dense(Quoting(), dim=2)
    assert_discreet(caught.value)


def test_large_finite_values_are_accepted() -> None:
    # Their sum of squares overflows, so the exact test has to decide.
    rows = np.full((5, 2), 3e38, dtype=np.float32)
    assert as_dense(rows, dim=2) is rows
    assert np.isfinite(as_dense(rows.astype(np.float64), dim=2)).all()


def test_a_last_nan_of_a_long_array_is_seen() -> None:
    rows = np.full((50_000, 3), 3e38, dtype=np.float32)
    rows[-1, -1] = np.nan
    with pytest.raises(DataRefused, match="column 2"):
        as_dense(rows, dim=3)


def test_bounds_take_values_beyond_float32() -> None:
    box = Bounds((0.0,), (10.0,))
    np.testing.assert_array_equal(as_dense([[1e300], [-1e300]], dim=1, bounds=box), [[5], [-5]])


def test_queries_are_not_clipped() -> None:
    box = Bounds((0.0,), (10.0,))
    np.testing.assert_array_equal(as_dense([[105.0]], dim=1, bounds=box, clip=False), [[100]])
    with pytest.raises(DataRefused, match="a query must be within float32's range"):
        as_dense([[1e300]], dim=1, bounds=box, clip=False)


def test_strict_floating_point_errors_of_the_caller_do_not_matter() -> None:
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(as_dense([[1e-300]], dim=1), [[0]])
        with pytest.raises(DataRefused):
            as_dense([[1e300]], dim=1)


def test_arrays_and_lists_import_no_frame_library() -> None:
    code = (
        "import sys, numpy as np\n"
        "from hushsum.records import as_codes, as_dense, as_sets\n"
        "as_dense(np.ones((2, 2)), dim=2); as_dense([[1, 2]], dim=2)\n"
        "as_codes([[1, 2]], dim=2); as_sets([[1]])\n"
        "print(sorted({'pyarrow', 'pandas', 'polars', 'scipy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
