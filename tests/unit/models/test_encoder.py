"""The public encoder: what each value becomes, from every container, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.models import PublicEncoder
from hushsum.records import CategoryColumn, DeclaredColumn, FlagColumn, NumberColumn

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS: dict[str, DeclaredColumn] = {
    "age": NumberColumn(0, 120, fill=60, bins=4),
    "job": CategoryColumn(["care", "trade"], unknown="other"),
    "smoker": FlagColumn(),
}
SECRET = "zanzibar"
ROWS: list[tuple[Any, Any, Any]] = [
    (30.0, "care", True),
    (None, "trade", False),
    (500.0, SECRET, None),
    (0.0, None, True),
]

Container = Callable[[list[tuple[Any, Any, Any]]], object]


def frame_of(rows: list[tuple[Any, Any, Any]]) -> Any:
    return pd.DataFrame(rows, columns=list(COLUMNS))


CONTAINERS: dict[str, Container] = {
    "list": lambda rows: [list(row) for row in rows],
    "object array": lambda rows: np.array(rows, object),
    "pandas": frame_of,
    "pandas, reordered with one more": lambda rows: frame_of(rows).assign(more="text")[
        ["smoker", "more", "job", "age"]
    ],
    "pandas categories": lambda rows: frame_of(rows).astype({"job": "category", "smoker": "boolean"}),
    "polars": lambda rows: pl.DataFrame(rows, schema=list(COLUMNS), orient="row"),
    "polars categories": lambda rows: pl.DataFrame(
        rows, schema={"age": pl.Float32, "job": pl.Categorical, "smoker": pl.Boolean}, orient="row"
    ),
    "arrow": lambda rows: pa.table(
        [pa.array(column) for column in zip(*rows, strict=True)], names=list(COLUMNS)
    ),
    "arrow batch": lambda rows: pa.record_batch(
        [pa.array(column) for column in zip(*rows, strict=True)], names=list(COLUMNS)
    ),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_every_container_becomes_the_same_numbers(container: Container) -> None:
    encoded = PublicEncoder(COLUMNS).fit(container(ROWS)).transform(container(ROWS))
    expected = [
        # age, missing | care, trade, other, missing | false, true, missing
        [-0.5, 0, 1, 0, 0, 0, 0, 1, 0],
        [0.0, 1, 0, 1, 0, 0, 1, 0, 0],
        [1.0, 0, 0, 0, 1, 0, 0, 0, 1],
        [-1.0, 0, 0, 0, 0, 1, 0, 1, 0],
    ]
    np.testing.assert_array_equal(encoded, expected)


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_every_container_becomes_the_same_codes_and_sets(container: Container) -> None:
    codes = PublicEncoder(COLUMNS, output="codes").transform(container(ROWS))
    np.testing.assert_array_equal(codes, [[1, 0, 1], [4, 1, 0], [3, 2, 2], [0, 3, 1]])
    assert codes.dtype == np.int32
    encoder = PublicEncoder(COLUMNS, output="sets")
    names = encoder.get_feature_names_out()
    sets = encoder.transform(container(ROWS)).toarray().astype(bool)
    assert [set(names[row]) for row in sets] == [
        {"age=[30, 60)", "job=care", "smoker=true"},
        {"age=missing", "job=trade", "smoker=false"},
        {"age=[90, 120]", "job=other", "smoker=missing"},
        {"age=[0, 30)", "job=missing", "smoker=true"},
    ]


def test_names_bounds_and_columns_agree_in_number() -> None:
    for scale in (True, False):
        encoder = PublicEncoder(COLUMNS, scale=scale)
        encoded = encoder.transform(ROWS)
        assert list(encoder.get_feature_names_out()) == [
            "age",
            "age=missing",
            "job=care",
            "job=trade",
            "job=other",
            "job=missing",
            "smoker=false",
            "smoker=true",
            "smoker=missing",
        ]
        low, high = np.array(encoder.output_bounds()).T
        assert (encoded >= low).all()
        assert (encoded <= high).all()
        assert (low[0], high[0]) == ((-1, 1) if scale else (0, 120))


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(allow_infinity=False), st.none() | st.text(), st.none() | st.booleans()
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["one-hot", "codes", "sets"]),
)
def test_a_record_is_encoded_alone(rows: list[tuple[Any, Any, Any]], output: str) -> None:
    """The neighbours in a batch, the other containers and the fit change nothing."""
    encoder = PublicEncoder(COLUMNS, output=output)

    def dense(data: object) -> Any:
        encoded = encoder.transform(data)
        return encoded.toarray() if output == "sets" else encoded

    alone = np.concatenate([dense([row]) for row in rows])
    np.testing.assert_array_equal(dense(rows), alone)
    np.testing.assert_array_equal(dense(CONTAINERS["arrow"](rows)), alone)
    encoder.fit(ROWS)
    np.testing.assert_array_equal(dense(rows), alone)


def test_codes_feed_the_hamming_kernel_and_sets_the_jaccard_kernel() -> None:
    codes = PublicEncoder(COLUMNS, output="codes").transform(ROWS)
    sets = PublicEncoder(COLUMNS, output="sets").transform(ROWS)
    hamming = hs.HammingKernel(dim=3).similarity(codes, codes)
    jaccard = hs.JaccardKernel().similarity(sets, sets)
    # With one token a column, m agreements of 3 columns are m of 6 − m tokens.
    agree = np.rint(hamming * 3)
    np.testing.assert_allclose(jaccard, agree / (6 - agree))
    f = hs.race(hs.JaccardKernel(), rows=20, seed=1).add(sets).release(epsilon=1.0)
    assert f(sets).shape == (4,)


def test_numbers_may_be_categories() -> None:
    encoder = PublicEncoder([CategoryColumn([3, 1, -0.0])], output="codes")
    np.testing.assert_array_equal(encoder.transform([[1], [3.0], [0], [None]]).ravel(), [1, 0, 2, 3])
    assert list(PublicEncoder([CategoryColumn([3, 1.5])]).get_feature_names_out()) == [
        "x0=3",
        "x0=1.5",
        "x0=missing",
    ]


def test_it_is_a_scikit_learn_transformer() -> None:
    copied = clone(PublicEncoder(COLUMNS, output="codes"))
    assert copied.get_params()["output"] == "codes"
    pipeline = make_pipeline(PublicEncoder(COLUMNS), FunctionTransformer())
    assert pipeline.fit_transform(frame_of(ROWS)).shape == (4, 9)
    framed = PublicEncoder(COLUMNS).set_output(transform="pandas").fit_transform(frame_of(ROWS))
    assert list(framed.columns)[:2] == ["age", "age=missing"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PublicEncoder()])  # type: ignore[untyped-decorator]
def test_it_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_nothing_is_learned() -> None:
    """Fitting on other records leaves the same public state."""
    one, two = (PublicEncoder(COLUMNS).fit(rows) for rows in (ROWS, ROWS[:1]))
    public = [
        {name: value for name, value in vars(each).items() if name != "feature_names_in_"}
        for each in (one, two)
    ]
    assert public[0] == public[1]


REFUSALS: dict[str, tuple[dict[str, Any], list[list[Any]], str]] = {
    "unknown category": ({"job": CategoryColumn(["care"])}, [[SECRET]], "unknown='other'"),
    "missing category": ({"job": CategoryColumn(["care"], missing="refuse")}, [[None]], "missing='category'"),
    "missing flag": ({"smoker": FlagColumn(missing="refuse")}, [[None]], "'smoker'"),
    "missing number": ({"age": NumberColumn(0, 1)}, [[None]], "fill value"),
    "infinite number": ({"age": NumberColumn(0, 1)}, [[float("inf")]], "infinity"),
    "text for a number": ({"age": NumberColumn(0, 1)}, [[SECRET]], "declared as numbers"),
    "number for text": ({"job": CategoryColumn(["care"])}, [[77123]], "write them alike"),
    "text for a flag": ({"smoker": FlagColumn()}, [[SECRET]], "write them alike"),
    "a mixture": ({"job": CategoryColumn(["care"])}, [[SECRET], [77123]], "one kind"),
    "a list": ({"job": CategoryColumn(["care"])}, [[[77123]]], "another kind"),
    "bytes": ({"job": CategoryColumn(["care"])}, [[SECRET.encode()]], "another kind"),
}


@pytest.mark.parametrize(("columns", "rows", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_name_the_column_and_show_no_value(
    columns: dict[str, Any], rows: list[list[Any]], words: str
) -> None:
    with pytest.raises(DataRefused, match="column ") as refusal:
        PublicEncoder(columns).transform(rows)
    assert words in str(refusal.value)
    reported: BaseException | None = refusal.value
    while reported is not None:
        assert SECRET not in str(reported)
        assert "77123" not in str(reported)
        reported = reported.__cause__ or reported.__context__


def test_undeclared_text_is_refused_without_showing_it() -> None:
    with pytest.raises(DataRefused) as refusal:
        PublicEncoder().fit(np.array([[SECRET]], object))
    assert SECRET not in str(refusal.value)
    assert refusal.value.__context__ is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: CategoryColumn("care"),
        lambda: CategoryColumn([]),
        lambda: CategoryColumn(["care", "care"]),
        lambda: CategoryColumn(["care", 1]),
        lambda: CategoryColumn([float("nan")]),
        lambda: CategoryColumn([2**60]),
        lambda: CategoryColumn(["missing"]),
        lambda: CategoryColumn(["care"], unknown="drop"),
        lambda: FlagColumn(missing="drop"),
        lambda: NumberColumn(1, 1),
        lambda: NumberColumn(0, float("inf")),
        lambda: NumberColumn(0, 1, fill=2),
        lambda: NumberColumn(0, 1, bins=0),
        lambda: PublicEncoder(output="one").fit([[1.0]]),
        lambda: PublicEncoder({"a": "text"}).fit([[1.0]]),  # type: ignore[dict-item]
        lambda: PublicEncoder({}).fit([[1.0]]),
        lambda: PublicEncoder(COLUMNS).fit(pd.DataFrame({"age": [1.0]})),
    ],
)
def test_wrong_declarations_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        make()


def test_another_number_of_columns_is_refused() -> None:
    with pytest.raises(DataRefused, match="3 columns"):
        PublicEncoder(COLUMNS).fit([[1.0, "care"]])
