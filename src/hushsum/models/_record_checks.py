"""Check what a model is given, with messages that show no value and no number of records."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from hushsum import records
from hushsum.errors import DataRefused, HushsumError, SuspiciousParameter, UsageError, shown

T = TypeVar("T")

MOST_COLUMNS_SHOWN: Final = 64
# The kinds of dates and durations in NumPy.
_MOMENTS: Final = ("M", "m")

_COLUMNS: Final = "give one row per record and one column per feature"
_REFUSALS: Final = (
    # What scikit-learn, NumPy or pandas writes, and what is written in its place. Some of their words stay
    # because scikit-learn's own checks of estimators look for them. {where} is the first column, or y, that
    # breaks the rule.
    ("expected 2d", f"X must have two dimensions, got another number. Reshape your data: {_COLUMNS}"),
    (
        "2-dimensional container",
        "X must have two dimensions, got one; for one column give a frame of it, frame[['age']]",
    ),
    ("expected <=", f"X must have two dimensions, got more. Reshape your data: {_COLUMNS}"),
    ("inhomogeneous", "{where} must be rectangular, got rows of different lengths; " + _COLUMNS),
    ("setting an array element", "{where} must be rectangular, got rows of different lengths; " + _COLUMNS),
    ("inconsistent", "X and y must have the same length, got different ones; give one target per record"),
    ("could not convert", "{where} must hold numbers, got text; " + records.ENCODE),
    ("arrays of bytes/strings", "{where} must hold numbers, got text; " + records.ENCODE),
    ("0 feature(s)", "X must have columns: 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."),
    ("0 sample(s)", "X must have at least one record, got none; check that the source is not empty"),
    ("complex data", "{where} must hold real numbers. Complex data not supported; give two columns"),
    ("sparse", "X must be dense, got sparse data; pass X.toarray()"),
    (
        "expected array-like",
        "y must be passed as an array: this estimator requires y to be passed, but the "
        "target y is None or no array",
    ),
    ("requires y to be passed", "this estimator requires y to be passed, but the target y is None"),
    ("should be a 1d array", "y should be a 1d array with one target per record, got another shape"),
    (
        "contains nan",
        "{where} must be finite. Input contains NaN; fill it with a public constant, or drop those records",
    ),
    (
        "infinity",
        "{where} must be finite. Input contains infinity or a value too large for "
        "dtype('float64'); drop those records",
    ),
    (
        "unknown label type",
        "y must hold classes, got numbers with a fraction or another kind. Unknown label "
        "type: use a regressor, or encode the labels",
    ),
)
# Whether a column is what a message is about.
_TESTS: Final[dict[str, Callable[[NDArray[Any]], bool]]] = {
    "could not convert": records.is_not_numeric,
    "arrays of bytes/strings": records.is_not_numeric,
    "contains nan": lambda values: bool(np.isnan(values.astype(np.float64)).any()),
    "infinity": lambda values: bool(np.isinf(values.astype(np.float64)).any()),
}

# Messages of scikit-learn that show how many columns there are and their names, which are public.
_SHOWS_COLUMNS_ONLY: Final = ("features, but", "feature names", "Feature names")


def checked_records(model: BaseEstimator, X: object, y: object = "no_validation", *, reset: bool) -> Any:
    """Columns of finite numbers, for records and for queries, by scikit-learn's own checks; with ``y`` both.

    Raises
    ------
    DataRefused
        if they break a rule; the message shows neither a value nor the number of records.
    """
    rows = records.in_memory(X)
    _refuse_dates(rows)
    target = None if isinstance(y, str) else y
    return showing_nothing(
        lambda: validate_data(model, rows, y, reset=reset, dtype=np.float64), X=rows, y=target
    )


def _refuse_dates(rows: Any) -> None:
    """Refuse dates and durations: scikit-learn takes them as numbers of the unit they are stored in."""
    if records.from_package(rows, "pandas"):
        frame = rows if rows.ndim == 2 else rows.to_frame()
        kinds = zip(frame.columns, (getattr(kind, "kind", "") for kind in frame.dtypes), strict=True)
        found = next((f"column {str(name)!r}" for name, kind in kinds if kind in _MOMENTS), None)
    elif isinstance(rows, np.ndarray):
        found = "X" if rows.dtype.kind in _MOMENTS else None
    elif records.has_arrow_interface(rows):
        names, columns = records.as_columns(rows)
        temporal = [i for i, each in enumerate(columns) if records.pyarrow().types.is_temporal(each.type)]
        found = None if not temporal else "X" if names is None else f"column {names[temporal[0]]!r}"
    else:
        found = None
    if found is not None:
        raise DataRefused(f"{found} must be of numbers", got="dates", remedy=records.DAYS)


def showing_nothing(step: Callable[[], T], *, X: object = None, y: object = None) -> T:
    """The result of a step of another library, whose refusals may quote records or count them.

    ``X`` and ``y`` are the data that it works on; a refusal names the column.

    Raises
    ------
    DataRefused
        in place of what the step raised. It is raised outside of the handler, so that neither ``__cause__``
        nor ``__context__`` leads a traceback or a log to the original message.
    """
    try:
        return step()
    except (HushsumError, NotFittedError):
        raise
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        text, of_type = str(error), isinstance(error, TypeError)
    raise _refusal(text, of_type, X, y)


def _refusal(text: str, of_type: bool, X: object, y: object) -> Exception:
    if of_type and "argument must be" in text:
        return TypeError(
            "float() argument must be a string or a real number, got another type in "
            f"{_where(X, y, records.is_not_numeric)}; {records.ENCODE}"
        )
    if any(part in text for part in _SHOWS_COLUMNS_ONLY):
        found = re.match(r"X has (\d+) features", text)
        # That many "columns" are probably the records of a table that was transposed.
        if found is None or int(found[1]) <= MOST_COLUMNS_SHOWN:
            return DataRefused(text)
        rule = "X must have as many features as the records had"
        return DataRefused(rule, got="more", remedy="transpose it?")
    lowered = text.lower()
    for part, words in _REFUSALS:
        if part in lowered:
            return DataRefused(words.replace("{where}", _where(X, y, _TESTS.get(part))))
    return DataRefused(
        f"{_where(X, y, None)} must be tables of numbers", got="something else", remedy=f"{_COLUMNS}"
    )


def _where(X: object, y: object, test: Callable[[NDArray[Any]], bool] | None) -> str:
    """What a refusal is about: the first column, or y, that a test finds."""
    column = None if X is None or test is None else records.first_column(X, test)
    if column is not None:
        return column
    if X is None or (y is not None and test is not None):
        return "y"
    return "X" if y is None else "X and y"


def seed_of(random_state: Any) -> int:
    """A seed from a ``random_state``: the next one of a generator, and the same for the same integer.

    Raises
    ------
    UsageError
        if it is none; the message does not show an array that was passed by mistake.
    """
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except (ValueError, TypeError):
        pass
    rule = "must be an integer, a RandomState or None"
    raise UsageError("random_state", rule, got=shown(random_state), remedy="try 0")


# Fitted attributes that say how wide records are, which is public.
_NOTHING_LEARNED: Final = ("n_features_in_", "feature_names_in_", "n_output_features_")


def warn_of_fitted_steps(model: BaseEstimator) -> bool:
    """Warn if a scikit-learn pipeline fits another step to the private records before this model; whether it
    does.

    A pipeline hands the last step an array and nothing else, so the pipeline that runs is looked for among
    the callers. What learned from the records outside of a pipeline is not found.
    """
    frame: FrameType | None = sys._getframe(1)
    learned: list[str] = []
    while frame is not None and not learned:
        pipeline = frame.f_locals.get("self")
        if isinstance(pipeline, Pipeline) and pipeline.steps[-1][1] is model:
            learned = [name for _, step in pipeline.steps[:-1] for name in _learned(step)]
        frame = frame.f_back
    if learned:
        warnings.warn(
            f"{' and '.join(learned)} before {type(model).__name__} in the pipeline was fitted to the "
            "private records, and no claim covers what it learned. Use hushsum.models.PublicEncoder, which "
            "takes declared ranges and categories, or fit the step to public data and wrap it in "
            "sklearn.frozen.FrozenEstimator.",
            SuspiciousParameter,
            stacklevel=records.level_outside(),
        )
    return bool(learned)


def _learned(step: Any) -> list[str]:
    """The names of estimators, within others too, that keep something of what they were fitted to."""
    places = ("steps", "transformers_", "transformer_list")
    if inner := next((found for name in places if (found := getattr(step, name, None))), ()):
        return [name for each in inner for name in _learned(each[1])]
    # A private model has paid for what it learned.
    if isinstance(step, str) or step is None or hasattr(type(step), "claim_"):
        return []
    kept = [name for name in vars(step) if name.endswith("_") and not name.startswith("_")]
    return [type(step).__name__] if set(kept) - set(_NOTHING_LEARNED) else []


def refuse_fit_arguments(arguments: dict[str, object]) -> None:
    """Refuse what scikit-learn's ``fit`` may be given and a private one may not."""
    if arguments.pop("sample_weight", None) is not None:
        rule = "must be left out: the noise would have to be as large as the largest weight allows"
        raise UsageError("sample_weight", rule)
    if arguments:
        raise TypeError(f"fit got an unexpected argument {next(iter(arguments))!r}")
