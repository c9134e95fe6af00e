"""What released functions and models answer, show and draw, and what their files are. Spends nothing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing import AuditReport, audit_steps, mechanism_cases, run_steps
from hushsum.declaration import check_fields, setting
from hushsum.errors import Argument, DataRefused, HushsumError, UsageError, shown
from hushsum.errors import Parameter as NameOf
from hushsum.files import FileKind, RollbackGuard
from hushsum.kernels import ColumnKernel, kernel_in_words, positive_integer
from hushsum.records import (
    NO_DATES,
    Bounds,
    DateFormat,
    choose_columns,
    columns_in_words,
    mixed_columns,
    numbers_of,
    open_batches,
    pyarrow,
)
from hushsum.releases import ESTIMATORS, Bundle, NoisyTable, ReleasedFunction, TableFunction, normal_answers
from hushsum.secret_functions import ServedFunction, SqliteStore, reopen
from hushsum.tables import Marginals

from ._files import (
    STANDARD,
    EdgeColumns,
    Progress,
    RecordFiles,
    TallyDescription,
    kind_of,
    open_file,
    open_function,
    open_released,
)

if TYPE_CHECKING:
    from .models import SecretModel

__all__ = [
    "AnsweredPoints", "AnsweringModel", "ExactModel", "FunctionDescription", "ModelDescription", "QueryTerms",
    "answers_of", "audit_file", "describe_exact", "describe_file", "describe_model", "features_of",
    "labels_of", "predict_file", "query_file", "query_nodes", "query_points", "read_classes",
    "sample_release",
]  # fmt: skip

T = TypeVar("T")

# The level at which the median of means is formed, and the only one its theorem is then about.
BOUND_LEVEL = 0.95
# The names of the answers of a function at a point.
ANSWERS: Final = ("value", "stderr", "lower", "upper")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The quantity to compute, f(q)/N or the ``sum`` f(q), the level and the estimator."""

    sum: bool = setting(False, "Kernel sums f(q), instead of mean kernel values f(q)/N.")
    level: float = setting(0.95, "Level of the intervals.", above=0, below=1)
    estimator: str = setting(
        "mean", "mean, or median-of-means with the bound of its theorem.", choices=ESTIMATORS
    )
    simultaneous: bool = setting(False, "Intervals that hold at all points together, not at each.")
    threads: int = setting(1, "Number of threads.")

    @property
    def of(self) -> Literal["sum", "mean"]:
        """The quantity by its name."""
        return "sum" if self.sum else "mean"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.estimator != "mean" and self.level != BOUND_LEVEL:
            rule = f"must be {BOUND_LEVEL} for the median of means"
            raise UsageError("level", rule, got=self.level, remedy="leave it out, or use the mean")
        if self.estimator != "mean" and self.simultaneous:
            rule, got = "is for the mean over rows", "it with the median of means"
            raise UsageError("simultaneous", rule, got=got, remedy="leave one of the two out")


@dataclass(frozen=True, slots=True)
class AnsweredPoints:
    """Some points and the answers of a function or model at them, by name; arrays of shape (n_points,).

    ``points`` is a list of rows of numbers or of sets, or an Arrow batch of the columns of a file; dates are
    text in both. Answers of a function are ``value``, ``stderr``, ``lower`` and ``upper``. Its ``stderr`` is
    NaN for the median of means, which has a bound instead, that ``lower`` and ``upper`` give; all three are
    NaN where a method has no error estimate.
    """

    points: Any
    answers: Mapping[str, NDArray[Any]]

    def as_json(self) -> list[dict[str, Any]]:
        """One dictionary per point; None for what is not known or not finite."""
        points = self.points if isinstance(self.points, list) else _rows_of(self.points)
        columns = [_finite(values.tolist()) for values in self.answers.values()]
        return [
            {"at": point, **dict(zip(self.answers, row, strict=True))}
            for point, *row in zip(points, *columns, strict=True)
        ]


def _finite(values: list[Any]) -> list[Any]:
    return [None if isinstance(each, float) and not math.isfinite(each) else each for each in values]


def query_points(
    source: str, points: Sequence[Sequence[float | str]], terms: QueryTerms, dates: DateFormat = NO_DATES
) -> AnsweredPoints:
    """Answers at points given as numbers, and as ISO dates in the columns of ``dates``; for a function of
    sets each is one set of integers.

    Raises
    ------
    UsageError
        if a point has another number of values than the function has columns, or a value it cannot have.
    """
    function = open_function(source)
    of_dates = _positions(function, dates)
    if not points:
        remedy = ("give a point, or a file with ", NameOf("points"))
        raise UsageError("at", "must be at least one point", got="none", remedy=remedy)
    dim = function.dim
    listed: list[list[float]] = []
    for given in points:
        if dim is not None and len(given) != dim:
            rule = f"must have {dim} values for this function"
            raise UsageError("at", rule, got=len(given), remedy="separate them by commas")
        point = [_coordinate(value, i in of_dates, dates) for i, value in enumerate(given)]
        listed.append(point)
        if not all(math.isfinite(value) for value in point):
            raise UsageError("at", "must have finite values", got="NaN or infinity")
        if dim is None and any(value != int(value) for value in point):
            rule = "must have integers as members of a set"
            raise UsageError("at", rule, got="a fraction", remedy="number the members")
    if dim is None:
        sets = [[int(value) for value in point] for point in listed]
        return _ask(function, sets, sets, terms)
    return _ask(function, [list(point) for point in points], np.array(listed, np.float64), terms)


def _positions(function: ReleasedFunction, dates: DateFormat) -> list[int]:
    """Where the columns of dates are."""
    if not dates.columns:
        return []
    if function.columns is None:
        raise UsageError("dates", "must name columns", got="a file whose columns have no names")
    return choose_columns(function.columns, dates.columns, "dates")


def _coordinate(value: float | str, is_date: bool, dates: DateFormat) -> float:
    if not isinstance(value, str):
        return value
    if not is_date:
        rule = "must have numbers in columns that are not declared as dates"
        raise UsageError("at", rule, got=shown(value), remedy=("name the column in ", Argument("dates")))
    return dates.number(value, "at")


def query_nodes(
    source: str, nodes: Sequence[str], graph: str, terms: QueryTerms, edges: EdgeColumns
) -> AnsweredPoints:
    """Answers at nodes of a graph, whose neighbours are looked up in a public edge list.

    Raises
    ------
    UsageError
        if the function is not one of sets.
    """
    function = open_function(source)
    if function.dim is not None:
        got = f"it for a function of {columns_in_words(function.dim)}"
        remedy = ("give a point with ", NameOf("at"))
        raise UsageError("node", "is for functions of sets", got=got, remedy=remedy)
    return _ask(function, list(nodes), edges.read([graph]).neighbours(nodes), terms)


def query_file(
    source: str, points: RecordFiles, terms: QueryTerms, *, progress: Progress | None = None
) -> Iterator[AnsweredPoints]:
    """Answers at the points of one CSV, Parquet or Arrow file, batch by batch, in bounded memory.

    Columns are found by the names the function knows; ``columns`` gives other names, in the function's order,
    and a function without names takes all columns in the file's order. For a function of sets,
    ``set_column`` names the column of them, unless the file has one column only. ``cells`` are read as
    declared.
    """
    (path,), columns = points.paths, points.columns
    if source == path == "-":
        remedy = "give one as a file"
        raise UsageError("function and points cannot both come from standard input", remedy=remedy)
    if terms.simultaneous:
        rule = ("is for the points of ", NameOf("at"), ": a file is answered while it is read")
        raise UsageError("simultaneous", rule, remedy="leave it out, or query the function in Python")
    function = open_function(source)
    if function.dim is None and points.set_column is None:
        with open_batches(path, columns=columns, cells=points.cells) as peek:
            names = peek.column_names
        if path == "-" or len(names) != 1:
            raise UsageError("set_column", "must name the column of sets for this function")
        points, columns = replace(points, set_column=names[0], columns=None), None
    own, dim = function.columns, function.dim

    def answered(batch: Any) -> AnsweredPoints:
        if dim is not None and 1 < batch.num_columns != dim:
            rule = f"must have {columns_in_words(dim)} for this function"
            raise UsageError("points", rule, got=batch.num_columns)
        renamed = own is not None and columns is not None and len(own) == batch.num_columns
        queries = batch.rename_columns(list(own)) if renamed and own else batch
        return _ask(function, with_dates(batch, points.cells.dates), queries, terms)

    return _streamed(answered, points, own, progress)


def _streamed(
    answered: Callable[[Any], AnsweredPoints],
    points: RecordFiles,
    own: Sequence[str] | None,
    progress: Progress | None,
) -> Iterator[AnsweredPoints]:
    """The answers to each batch of a file. The first is answered at once, so that an error is reported before
    anything is written.
    """

    def batches() -> Iterator[AnsweredPoints]:
        with open_file(points, points.paths[0], points.columns or own) as stream:
            choose_columns(stream.column_names, points.cells.dates.columns, "dates")
            for batch, _ in stream:
                yield answered(batch)
                if progress is not None:
                    progress(stream.progress)

    following = batches()
    return chain([next(following)], following)


def with_dates(batch: Any, dates: DateFormat) -> Any:
    """The batch with dates in place of their numbers, as it is shown."""
    for name in dates.columns:
        i = batch.schema.get_field_index(name)
        batch = batch.set_column(i, name, dates.text(batch.column(i)))
    return batch


def _ask(function: ReleasedFunction, shown: Any, queries: object, terms: QueryTerms) -> AnsweredPoints:
    if terms.estimator == "mean":
        answers = function.query(
            queries, of=terms.of, level=terms.level, simultaneous=terms.simultaneous, threads=terms.threads
        )
        return AnsweredPoints(shown, {name: getattr(answers, name) for name in ANSWERS})
    if not isinstance(function, TableFunction):
        rule = "must be mean for this function, which has no hash rows"
        raise UsageError("estimator", rule, got=repr(terms.estimator))
    sums = function.sum(queries, estimator=terms.estimator)
    reach = function.error_bound(queries, failure=1.0 - BOUND_LEVEL)
    if not terms.sum:
        # A quotient of two estimates: the error of the count adds its part, at two standard errors.
        reach = (reach + 2.0 * function.count_stderr * np.abs(sums) / function.count) / function.count
        sums = sums / function.count
    numbers = (sums, np.full(len(sums), np.nan), sums - reach, sums + reach)
    return AnsweredPoints(shown, dict(zip(ANSWERS, numbers, strict=True)))


def _rows_of(batch: Any) -> list[list[Any]]:
    columns = [column.to_pylist() for column in batch.columns]
    if len(columns) == 1 and columns[0] and isinstance(columns[0][0], list):
        members: list[list[Any]] = columns[0]
        return members
    return [list(row) for row in zip(*columns, strict=True)]


# How many numbers of an array a description lists.
MOST_LISTED: Final = 1000


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """A released function, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    function: ReleasedFunction
    size: int | None

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {**self.function.describe().as_json(), "source": self.source, "size": self.size}


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A released model, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    bundle: Bundle
    size: int | None

    @property
    def expected_errors(self) -> dict[tuple[str, ...], float]:
        """The expected error of each marginal of a synthesizer, by the names of its columns; else empty."""
        errors = self.bundle.arrays.get("expected_errors")
        found = [part.basis for part in self.bundle.parts.values() if isinstance(part, NoisyTable)]
        if errors is None or len(found) != 1 or not isinstance(basis := found[0], Marginals):
            return {}
        return dict(zip(basis.set_names(), errors.tolist(), strict=False))

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        about = self.bundle.about
        return {
            "kind": "released model",
            "source": self.source,
            "model": about.get("model"),
            "parameters": about.get("parameters"),
            "columns": about.get("feature_names"),
            "features": about.get("features"),
            "classes": (about.get("classes") or {}).get("values"),
            "assumptions": list(about.get("assumptions") or []),
            "claim": self.bundle.claim.in_numbers(),
            "bounds": (about.get("parameters") or {}).get("bounds"),
            "kernels": list({kernel_in_words(part.kernel): None for part in self.bundle.parts.values()}),
            "parts": list(self.bundle.parts),
            "arrays": {
                name: values.tolist() if values.size <= MOST_LISTED else {"shape": list(values.shape)}
                for name, values in self.bundle.arrays.items()
            },
            "expected_errors": [
                {"columns": list(names), "error": error} for names, error in self.expected_errors.items()
            ],
            "producer": self.bundle.producer,
            "size": self.size,
        }


def describe_file(source: str) -> FunctionDescription | ModelDescription | TallyDescription:
    """Describe a ``.hush`` or ``.tally`` file; ``"-"`` reads a ``.hush`` file from standard input.

    Raises
    ------
    FileRefused
        if it is damaged or neither of them.
    """
    if source != STANDARD and kind_of(Path(source)) is FileKind.TALLY:
        return TallyDescription.of(source)
    released = open_released(source)
    size = None if source == STANDARD else Path(source).stat().st_size
    if isinstance(released, Bundle):
        return ModelDescription(source, released, size)
    assert isinstance(released, ReleasedFunction)
    return FunctionDescription(source, released, size)


def features_of(batch: Any, columns: Sequence[str]) -> Any:
    """The columns of a batch as an Arrow table of float64, from which models learn the names too.

    Raises
    ------
    DataRefused
        Nulls, NaN or infinity, or a column of lists.
    """
    values = values_of(batch, columns, len(columns))
    return pyarrow().table({name: values[:, i] for i, name in enumerate(columns)})


def values_of(batch: object, columns: Sequence[str] | None, dim: int) -> NDArray[np.float64]:
    """The numbers of a container, with or without names of columns, as an array of shape (n, dim)."""
    parts = numbers_of(batch, dim=dim, columns=columns)
    values = np.concatenate([part.values.astype(np.float64) for part in parts], axis=1)
    finite = np.isfinite(values).all(axis=0)
    if not finite.all():
        first = int(np.argmin(finite))
        name = f"column {first}" if columns is None else f"column {columns[first]!r}"
        remedy = "fill it with a public constant or drop those records"
        raise DataRefused(f"{name} must be finite", got="NaN or infinity", remedy=remedy)
    return values


def labels_of(column: Any, name: str) -> NDArray[Any]:
    """A column of labels: text, integers or booleans.

    Raises
    ------
    DataRefused
        Missing labels, or numbers with a fraction.
    """
    pa = pyarrow()
    (chunks,) = mixed_columns(pa.table({name: column}), count=1, names=[name])
    if chunks.null_count:
        rule = f"column {name!r} must have a label in every record"
        raise DataRefused(rule, got="missing ones", remedy="drop those")
    words = pa.types.is_large_string(chunks.type)
    values = np.array(chunks.to_pylist(), dtype=np.str_) if words else np.asarray(chunks.to_numpy())
    numbers = _numbers_in(values) if words else values[:0] if values.dtype.kind != "f" else values
    if not np.array_equal(numbers, np.trunc(numbers)):
        rule, got = f"column {name!r} must have labels", "numbers with a fraction"
        raise DataRefused(rule, got=got, remedy="use a regressor")
    return values.astype(np.int64) if values.dtype.kind == "f" else values


def _numbers_in(texts: NDArray[np.str_]) -> NDArray[np.float64]:
    """The texts as numbers, because CSV has no types; empty if one of them is not a number."""
    try:
        values = texts.astype(np.float64)
    except ValueError:
        return np.empty(0)
    return values[np.isfinite(values)]


def read_classes(classes: Sequence[str], labels: NDArray[Any]) -> list[Any]:
    """Declared classes in the type of the labels: text, numbers or booleans.

    >>> read_classes(["0", "1"], np.array([1, 0]))
    [0, 1]
    """
    kind = labels.dtype.kind
    if kind == "U":
        return list(classes)
    if kind == "b":
        flags = {"false": False, "0": False, "true": True, "1": True}
        if any(each.lower() not in flags for each in classes):
            rule = "must be true or false for a column of booleans"
            raise UsageError("classes", rule, got="something else")
        return [flags[each.lower()] for each in classes]
    try:
        return [int(each) for each in classes]
    except ValueError:
        rule = "must be integers for a column of numbers"
        raise UsageError("classes", rule, got="something else", remedy="write them alike") from None


def tried(step: Callable[[], T], wrong: HushsumError) -> T:
    """The result of a step; an error of numbers or types may quote a value, so ``wrong`` is raised instead,
    outside the handler.
    """
    try:
        return step()
    except HushsumError:
        raise
    except (ValueError, TypeError, ArithmeticError):
        pass
    raise wrong


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """A released model and the names of its columns, by which points are put in order."""

    model: Any
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, bundle: Bundle) -> AnsweringModel:
        """The model of a bundle."""
        # Only here: scikit-learn takes longer to import than the rest of a service takes to start.
        from hushsum.models import model_of

        model: Any = model_of(bundle)
        named = getattr(model, "feature_names_in_", None)
        if named is None:
            return cls(model, None)
        # Checking names for every query would take longer than most answers.
        del model.feature_names_in_
        return cls(model, tuple(str(name) for name in named))

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        return int(self.model.n_features_in_)

    def answers(self, points: object, *, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """All answers of the model at points; see :func:`all_answers`.

        Raises
        ------
        DataRefused
            if they are not points of this model.
        """
        values = values_of(points, self.columns, self.dim)
        wrong = DataRefused("the points must be finite numbers in the columns of this model", got="others")
        with np.errstate(all="ignore"):
            return tried(lambda: all_answers(self.model, values, level=level), wrong)


def answers_of(model: Any, points: object) -> dict[str, NDArray[Any]]:
    """All answers of a model at points, a column for each answer.

    An answer for each class has the class in its name; of two classes the one decision value is that for
    the second.
    """
    answers: dict[str, NDArray[Any]] = {}
    for name, values in all_answers(model, points).items():
        if values.ndim == 1:
            answers[name] = values
        elif name == "decision" and values.shape[1] == 2:
            answers[name] = values[:, 1]
        else:
            labels = groups_of(model, values.shape[1])
            answers |= {f"{name}_{label}": values[:, i] for i, label in enumerate(labels)}
    return answers


def groups_of(model: Any, number: int) -> list[str]:
    """The names of the groups that a model has a value for: its classes, or the numbers of its clusters."""
    return [str(each) for each in getattr(model, "classes_", range(number))]


def all_answers(model: Any, points: object, *, level: float | None = None) -> dict[str, NDArray[Any]]:
    """All answers of a model at points: of shape (n,), or (n, classes) if it has a value for every class.

    ``prediction``; ``value`` with ``stderr``, ``lower`` and ``upper`` at ``level``; ``probability`` or
    ``decision`` of every class, the largest being the prediction; the ``score`` of a density. ``stderr``
    without ``value`` is that of a decision value. Each is there only if the model has it.
    """
    answers: dict[str, NDArray[Any]] = {}
    if hasattr(model, "predict"):
        answers["prediction"] = np.asarray(model.predict(points))
    if hasattr(model, "query"):
        queried = model.query(points) if level is None else model.query(points, level=level)
        answers |= {name: getattr(queried, name) for name in ANSWERS}
    if hasattr(model, "predict_proba"):
        answers["probability"] = np.asarray(model.predict_proba(points), np.float64)
    elif hasattr(model, "score_samples"):
        # Both kinds say so of themselves; computing it anew would take as long as all the rest.
        is_density = model.__sklearn_tags__().estimator_type != "outlier_detector"
        answers["score"] = np.log(answers["prediction"]) if is_density else answers["value"]
    elif hasattr(model, "decision_function") and not hasattr(model, "query"):
        values = np.asarray(model.decision_function(points), np.float64)
        two = values.ndim == 1 and hasattr(model, "classes_")
        answers["decision"] = np.column_stack((-values, values)) if two else values
        if hasattr(model, "noise_stderr_"):
            answers["stderr"] = np.full(len(values), model.noise_stderr_)
    return answers


def predict_file(
    source: str, points: RecordFiles, *, progress: Progress | None = None
) -> Iterator[AnsweredPoints]:
    """Predictions at the points of one CSV, Parquet or Arrow file, batch by batch, in bounded memory.

    Columns are found by the names the model was fitted with; ``columns`` gives other names, in the model's
    order. Dates are returned as dates.
    """
    if source == points.paths[0] == STANDARD:
        raise UsageError("model and points cannot both come from standard input", remedy="give one as a file")
    from hushsum.models import load_model  # imports scikit-learn

    model: Any = load_model(sys.stdin.buffer if source == STANDARD else source)
    named = getattr(model, "feature_names_in_", None)
    own = None if named is None else [str(name) for name in named]

    def answered(batch: Any) -> AnsweredPoints:
        names, dim = batch.schema.names, model.n_features_in_
        if len(names) != dim:
            raise UsageError("points", f"must have {columns_in_words(dim)} for this model", got=len(names))
        table = features_of(batch, names)
        known = table.rename_columns(own) if own is not None else np.column_stack(table.columns)
        return AnsweredPoints(with_dates(batch, points.cells.dates), answers_of(model, known))

    return _streamed(answered, points, own, progress)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactModel:
    """A model in exact mode that answers questions; secret inside, public answers."""

    served: list[ServedFunction]
    about: dict[str, Any]

    @classmethod
    def reopened(
        cls,
        place: Path,
        *,
        encryption_key: bytes | None,
        rollback_guard: Callable[[int], RollbackGuard[int]] | None = None,
    ) -> ExactModel:
        """The model in a folder, opened and paid for before.

        Parameters
        ----------
        rollback_guard : callable, optional
            Who remembers for the function of a number how many answers it has returned.

        Raises
        ------
        FileRefused
            if one of its files is gone, is another's, or is an older copy.
        """
        from .models import SecretModel, answers_file  # imports scikit-learn

        kept = SecretModel.load(place, encryption_key=encryption_key)
        serving = {"most_questions": kept.about["most_questions"], "calibration": kept.about["calibration"]}
        served = [
            reopen(
                function,
                SqliteStore(answers_file(place, number)),
                kept.claim.promise,
                rollback_guard=None if rollback_guard is None else rollback_guard(number),
                **serving,
            )
            for number, function in enumerate(kept.functions)
        ]
        return cls(served, kept.about)

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        return len(self.about["features"])

    def answers(self, points: object, *, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Predictions at points, the same every time, in the form of a released model.

        Raises
        ------
        QuestionsSpent
            if too many distinct points were queried; earlier points are still answered.
        DataRefused
            for what are no points of this model.
        """
        values = values_of(points, self.about["features"], self.dim)
        noise = self.served[0].noise_stderr
        found = np.column_stack([each(values) for each in self.served])
        if self.about["classes"] is not None:
            from hushsum.models import labels_from_json

            labels = labels_from_json(self.about["classes"])
            decision = np.column_stack((-found, found)) if found.shape[1] == 1 else found
            prediction = labels[np.argmax(decision, axis=1)]
            return {"prediction": prediction, "decision": decision, "stderr": np.full(len(values), noise)}
        value, prediction = found[:, 0], np.maximum(found[:, 0], noise)
        if self.about["target_bounds"] is not None:
            low, high = self.about["target_bounds"]
            value = value + (low + high) / 2.0
            prediction = np.clip(value, low, high)
        known = normal_answers(value, np.full(len(values), noise), level, values)
        return {"prediction": prediction, **{name: getattr(known, name) for name in ANSWERS}}

    def __repr__(self) -> str:
        return "<ExactModel CONFIDENTIAL>"


def describe_exact(kept: SecretModel) -> dict[str, Any]:
    """The public description of a model in exact mode, like that of `describe_model` for a file."""
    about = dict(kept.about)
    labels = about.pop("classes")
    for secret in ("promise", "calibration"):
        del about[secret]
    answers = ["prediction", *ANSWERS]
    return {
        "kind": "served model",
        "model": {
            **about,
            "classes": None if labels is None else labels["values"],
            "answers": answers if labels is None else ["prediction", "decision", "stderr"],
        },
        "columns": about["features"],
        "assumptions": list(kept.claim.assumptions),
        "claim": kept.claim.in_numbers(),
    }


# How many numbers of an array a description lists.
_MOST_ARRAY: Final = 100


def describe_model(bundle: Bundle, *, target: str | None, size: int) -> dict[str, Any]:
    """The description of a released model: its kind, columns, bounds, classes, parameters, kinds of answers
    and claim. All of it is public.

    ``target`` is what the learned column is called, which the model itself does not know.
    """
    answering = AnsweringModel.of(bundle)
    about, features = bundle.about, bundle.about["features"]
    box = Bounds.declared(about["parameters"]["bounds"], features, "a model", columns=answering.columns)
    pairs = box.as_json()
    middle = np.array([[(low + high) / 2.0 for low, high in pairs]])
    return {
        "kind": "released model",
        "model": {
            "kind": answering.model.COMMAND,
            "estimator": about["model"],
            "mode": "file",
            "features": about["feature_names"],
            "bounds": pairs,
            "target": target,
            "target_bounds": about["parameters"].get("target_bounds"),
            "classes": (about.get("classes") or {}).get("values"),
            "parameters": about["parameters"],
            "answers": list(answering.answers(middle)),
            "arrays": {
                name: values.tolist() for name, values in bundle.arrays.items() if values.size <= _MOST_ARRAY
            },
        },
        "columns": about["feature_names"],
        "assumptions": list(about["assumptions"]),
        "claim": bundle.claim.in_numbers(),
        "producer": bundle.producer,
        "size": size,
    }


MOST_SAMPLES = 10_000_000
# Standard errors below which a value counts as 0, so that noise in empty space draws no records.
_FLOOR = 2.0
_GRID_COLUMNS = 3
_STEPS = 50


def sample_release(source: str, number: int, *, seed: int | None = None) -> Any:
    """Records drawn from what was released, inside its declared bounds, as an Arrow table.

    ``seed`` repeats a sample; the noise of the release is in the file already.

    Raises
    ------
    UsageError
        if it is neither a function of columns with bounds, nor a table of marginals, nor a model that draws
        records, or nowhere stands out of its noise.
    """
    count = positive_integer("number", number, at_most=MOST_SAMPLES)
    released = open_released(source)
    if isinstance(released, Bundle):
        return _of_model(released, count, seed)
    if isinstance(released, NoisyTable) and isinstance(released.basis, Marginals):
        from hushsum.models import PrivateSynthesizer

        model = PrivateSynthesizer(random_state=seed).fit_released(released)
        return model.sample(count, random_state=seed)
    assert isinstance(released, ReleasedFunction)
    bounds = released.bounds
    if bounds is None or not isinstance(released.kernel, ColumnKernel):
        rule = "samples need columns of numbers with declared bounds"
        got = f"a {released.kernel.name} function without them"
        raise UsageError(rule, got=got, remedy="release it with bounds")
    from hushsum.models import by_chain, from_grid

    def weights(points: Floats) -> Floats:
        answers = released.query(points)
        known = np.where(np.isfinite(answers.stderr), answers.stderr, 0.0)
        return np.where(answers.value > _FLOOR * known, np.maximum(answers.value, 0.0), 0.0)

    low, high = np.array(bounds.low), np.array(bounds.high)
    random = np.random.default_rng(seed)
    if bounds.dim <= _GRID_COLUMNS:
        drawn = from_grid(weights, low, high, count, random)
    else:
        step = np.array(released.kernel.column_bandwidths())
        drawn = by_chain(weights, low, high, count, random, step=step, steps=_STEPS)
    return _table_of(drawn, released.columns)


def _of_model(bundle: Bundle, number: int, seed: int | None) -> Any:
    answering = AnsweringModel.of(bundle)
    if not hasattr(answering.model, "sample"):
        rule = "samples are drawn from functions, densities and samplers"
        got = f"a model of the kind {answering.model.COMMAND}"
        raise UsageError(rule, got=got, remedy="fit a synthesizer, a density or a sampler")
    drawn = answering.model.sample(number, random_state=seed)
    return _table_of(drawn, answering.columns) if isinstance(drawn, np.ndarray) else drawn


def _table_of(values: Floats, columns: tuple[str, ...] | None) -> Any:
    """Columns of numbers, shape (number, columns), as an Arrow table."""
    known = columns is not None and len(columns) == values.shape[1]
    names = columns if known else [f"column_{i}" for i in range(values.shape[1])]
    return pyarrow().table(list(values.T), names=list(names or ()))


def audit_file(
    source: str | None, *, thorough: bool = False, progress: Progress | None = None
) -> AuditReport:
    """Audit the contents of a ``.hush`` file (``"-"``: standard input); without one, every mechanism. Of a
    model its released tables are audited.

    Neighbours and noise are new in every run.
    """
    if source is None:
        return run_steps(audit_steps(None, thorough=thorough), progress=progress)
    released = open_released(source)
    if isinstance(released, ReleasedFunction):
        return run_steps(audit_steps(released, thorough=thorough), progress=progress)
    assert isinstance(released, Bundle)
    # One of several alike tables stands for all, such as those of classes.
    parts = {(type(part).__name__, part.kernel): part for part in released.parts.values()}
    if not parts:
        model = str(released.about["model"])
        rule = "the audit of a file needs a released table"
        raise UsageError(rule, got=f"a {model} without one", remedy=_audit_of_mechanism(model))
    steps = [step for part in parts.values() for step in audit_steps(part, thorough=thorough)]
    return run_steps(steps, progress=progress)


def _audit_of_mechanism(model: str) -> str:
    """The remedy for a model whose file does not describe its noise: audit its mechanism on made-up records.

    >>> _audit_of_mechanism("PrivateKernelSVC")
    "audit its mechanism, on made-up records, with 'hushsum audit' without a file"
    """
    cases = [case for case in mechanism_cases() if model in case.name]
    if not cases:
        return "its mechanism is audited by benchmarks/outside_audits in the source"
    command = "hushsum audit --thorough" if all(case.thorough for case in cases) else "hushsum audit"
    return f"audit its mechanism, on made-up records, with '{command}' without a file"
