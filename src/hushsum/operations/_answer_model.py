"""What a released model answers, shows and draws, for points of any form. Spends nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, HushsumError, UsageError
from hushsum.files import RollbackGuard
from hushsum.kernels import ColumnKernel, positive_integer
from hushsum.operations._answers import with_dates
from hushsum.operations._files import STANDARD, Progress
from hushsum.records import (
    PLAIN,
    Bounds,
    CellFormat,
    choose_columns,
    columns_in_words,
    mixed_columns,
    numbers_of,
    open_batches,
    pyarrow,
)
from hushsum.releases import Bundle, NoisyTable, ReleasedFunction, load_released, normal_answers
from hushsum.secret_functions import ServedFunction, SqliteStore, reopen
from hushsum.tables import Marginals

if TYPE_CHECKING:
    from hushsum.operations._fit_model import SecretModel


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
    """The same as an array of shape (n, dim), of any container of numbers, also one without names."""
    parts = numbers_of(batch, dim=dim, columns=columns)
    values = np.concatenate([part.values.astype(np.float64) for part in parts], axis=1)
    finite = np.isfinite(values).all(axis=0)
    if not finite.all():
        first = int(np.argmin(finite))
        name = f"column {first}" if columns is None else f"column {columns[first]!r}"
        raise DataRefused(
            f"{name} must be finite",
            got="NaN or infinity",
            remedy="fill it with a public constant or drop those records",
        )
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
        raise DataRefused(
            f"column {name!r} must have a label in every record", got="missing ones", remedy="drop those"
        )
    if pa.types.is_large_string(chunks.type):
        texts = np.array(chunks.to_pylist(), dtype=np.str_)
        if _has_fractions(_numbers_in(texts)):
            raise _fractions_refused(name)
        return texts
    values: NDArray[Any] = chunks.to_numpy()
    if values.dtype.kind == "f":
        if _has_fractions(values):
            raise _fractions_refused(name)
        values = values.astype(np.int64)
    return values


def _fractions_refused(name: str) -> DataRefused:
    return DataRefused(
        f"column {name!r} must have labels", got="numbers with a fraction", remedy="use a regressor"
    )


def _has_fractions(values: NDArray[np.float64]) -> bool:
    return not np.array_equal(values, np.trunc(values))


def _numbers_in(texts: NDArray[np.str_]) -> NDArray[np.float64]:
    """The numbers that all of the texts are; none where one is something else: CSV has no types."""
    try:
        values = texts.astype(np.float64)
    except ValueError:
        return np.empty(0)
    return values[np.isfinite(values)]


def read_classes(classes: Sequence[str], labels: NDArray[Any]) -> list[Any]:
    """Declared classes as the kind of thing that the labels are: text, numbers or booleans.

    >>> read_classes(["0", "1"], np.array([1, 0]))
    [0, 1]
    """
    kind = labels.dtype.kind
    if kind == "U":
        return list(classes)
    if kind == "b":
        flags = {"false": False, "0": False, "true": True, "1": True}
        if any(each.lower() not in flags for each in classes):
            raise UsageError(
                "classes", "must be true or false for a column of booleans", got="something else"
            )
        return [flags[each.lower()] for each in classes]
    try:
        return [int(each) for each in classes]
    except ValueError:
        raise UsageError(
            "classes",
            "must be integers for a column of numbers",
            got="something else",
            remedy="write them alike",
        ) from None


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """A released model and the names of its columns, by which points are put in order."""

    model: Any
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, bundle: Bundle) -> AnsweringModel:
        """The model of a bundle."""
        # Only here: scikit-learn takes longer to import than the rest of a service takes to start.
        import hushsum.models  # noqa: F401  # importing them registers them
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
        """Everything the model says of points; see :func:`all_answers`.

        Raises
        ------
        DataRefused
            if they are not points of this model.
        """
        values = values_of(points, self.columns, self.dim)
        try:
            with np.errstate(all="ignore"):
                return all_answers(self.model, values, level=level)
        except HushsumError:
            raise
        except (ValueError, ArithmeticError):
            pass
        raise DataRefused("the points must be finite numbers in the columns of this model", got="others")


def answers_of(model: Any, points: object) -> dict[str, NDArray[Any]]:
    """All answers of a model at points, a column for each answer.

    What it says of every class has the class in its name; of two classes the one decision value is that for
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
    """What the groups are called that a model has a value for: its classes, or numbers of clusters."""
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
        answers |= {
            "value": queried.value,
            "stderr": queried.stderr,
            "lower": queried.lower,
            "upper": queried.upper,
        }
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


@dataclass(frozen=True, slots=True)
class PredictedRecords:
    """Some points, as an Arrow batch, and what the model says of each, by the name of the answer."""

    points: Any
    answers: dict[str, NDArray[Any]]

    def as_json(self) -> list[dict[str, Any]]:
        """One dictionary a point."""
        at = zip(*(column.to_pylist() for column in self.points.columns), strict=True)
        rows = zip(*(values.tolist() for values in self.answers.values()), strict=True)
        return [
            {"at": list(point), **dict(zip(self.answers, row, strict=True))}
            for point, row in zip(at, rows, strict=True)
        ]


def open_model(source: str) -> Any:
    """The released model in a ``.hush`` file; ``"-"`` reads it from standard input."""
    import hushsum.models  # noqa: F401  # importing them registers them
    from hushsum.models import load_model  # imports scikit-learn

    return load_model(sys.stdin.buffer if source == STANDARD else source)


def predict_file(
    source: str,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    cells: CellFormat = PLAIN,
    progress: Progress | None = None,
) -> Iterator[PredictedRecords]:
    """Predictions at the points of a CSV, Parquet or Arrow file, batch by batch, in bounded memory.

    Columns are found by the names the model was fitted with; ``columns`` gives other names, in the model's
    order. Dates are returned as dates. The first batch is answered before this returns, so that an error is
    reported before anything is written.
    """
    if source == path == STANDARD:
        raise UsageError("model and points cannot both come from standard input", remedy="give one as a file")
    answered = _answer(open_model(source), path, columns, cells, progress)
    first = next(answered)
    return _chain(first, answered)


def _chain(first: PredictedRecords, rest: Iterator[PredictedRecords]) -> Iterator[PredictedRecords]:
    yield first
    yield from rest


def _answer(
    model: Any,
    path: str,
    columns: Sequence[str] | None,
    cells: CellFormat,
    progress: Progress | None,
) -> Iterator[PredictedRecords]:
    named = getattr(model, "feature_names_in_", None)
    own = None if named is None else [str(name) for name in named]
    with open_batches(path, columns=own if columns is None else columns, cells=cells) as stream:
        names = stream.column_names
        choose_columns(names, cells.dates.columns, "dates")
        if len(names) != model.n_features_in_:
            raise UsageError(
                "points", f"must have {columns_in_words(model.n_features_in_)} for this model", got=len(names)
            )
        for batch, _ in stream:
            table = features_of(batch, names)
            known = table.rename_columns(own) if own is not None else np.column_stack(table.columns)
            yield PredictedRecords(with_dates(batch, cells.dates), answers_of(model, known))
            if progress is not None:
                progress(stream.progress)


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
        from hushsum.operations._fit_model import SecretModel, answers_file  # imports scikit-learn

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
        values_of_functions = np.column_stack([each(values) for each in self.served])
        if self.about["classes"] is not None:
            from hushsum.models import labels_from_json

            labels = labels_from_json(self.about["classes"])
            decision = (
                np.column_stack((-values_of_functions, values_of_functions))
                if values_of_functions.shape[1] == 1
                else values_of_functions
            )
            prediction = labels[np.argmax(decision, axis=1)]
            return {"prediction": prediction, "decision": decision, "stderr": np.full(len(values), noise)}
        value, prediction = values_of_functions[:, 0], np.maximum(values_of_functions[:, 0], noise)
        if self.about["target_bounds"] is not None:
            low, high = self.about["target_bounds"]
            value = value + (low + high) / 2.0
            prediction = np.clip(value, low, high)
        known = normal_answers(value, np.full(len(values), noise), level, values)
        return {
            "prediction": prediction,
            "value": known.value,
            "stderr": known.stderr,
            "lower": known.lower,
            "upper": known.upper,
        }

    def __repr__(self) -> str:
        return "<ExactModel CONFIDENTIAL>"


def describe_exact(kept: SecretModel) -> dict[str, Any]:
    """The public description of a model in exact mode, like that of `describe_model` for a file."""
    about = dict(kept.about)
    labels = about.pop("classes")
    for secret in ("promise", "calibration"):
        del about[secret]
    answers = ["prediction", "value", "stderr", "lower", "upper"]
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


MOST_LISTED: Final = 100
"""How many numbers of an array a description lists."""


def describe_model(bundle: Bundle, *, target: str | None, size: int) -> dict[str, Any]:
    """What a released model is: its kind, columns, bounds, classes and parameters; which answers it gives;
    and what it claims. All of it is public.

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
                name: values.tolist() for name, values in bundle.arrays.items() if values.size <= MOST_LISTED
            },
        },
        "columns": about["feature_names"],
        "assumptions": list(about["assumptions"]),
        "claim": bundle.claim.in_numbers(),
        "producer": bundle.producer,
        "size": size,
    }


MOST_SAMPLES = 10_000_000
_FLOOR = 2.0
"""Standard errors below which a value counts as 0, so that noise in empty space draws no records."""
_GRID_COLUMNS = 3
_STEPS = 50


@runtime_checkable
class SamplingModel(Protocol):
    """A model that draws records."""

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Records inside the bounds, as an array of shape (n_samples, n_features) or an Arrow table."""


@dataclass(frozen=True, slots=True)
class SampleDrawn:
    """Synthetic records as an Arrow table."""

    table: Any

    @classmethod
    def of_numbers(cls, values: Floats, columns: tuple[str, ...]) -> SampleDrawn:
        """Columns of numbers, shape (number, columns)."""
        return cls(pyarrow().table([values[:, i] for i in range(values.shape[1])], names=list(columns)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def records(self) -> list[list[Any]]:
        """The records one by one, missing values as None."""
        return [list(each) for each in zip(*self.table.to_pydict().values(), strict=True)]


def sample_release(source: str, number: int, *, seed: int | None = None) -> SampleDrawn:
    """Records drawn from what was released, inside its declared bounds.

    ``seed`` repeats a sample; the noise of the release is in the file already.

    Raises
    ------
    UsageError
        if it is neither a function of columns with bounds, nor a table of marginals, nor a model that draws
        records, or nowhere stands out of its noise.
    """
    count = positive_integer("number", number, at_most=MOST_SAMPLES)
    released = load_released(sys.stdin.buffer if source == STANDARD else source)
    if isinstance(released, Bundle):
        return _of_model(released, count, seed)
    if isinstance(released, NoisyTable) and isinstance(released.basis, Marginals):
        from hushsum.models import PrivateSynthesizer

        return SampleDrawn(
            PrivateSynthesizer(random_state=seed).fit_released(released).sample(count, random_state=seed)
        )
    assert isinstance(released, ReleasedFunction)
    bounds = released.bounds
    if bounds is None or not isinstance(released.kernel, ColumnKernel):
        raise UsageError(
            "samples need columns of numbers with declared bounds",
            got=f"a {released.kernel.name} function without them",
            remedy="release it with bounds",
        )
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
    return SampleDrawn.of_numbers(drawn, _names(released.columns, bounds.dim))


def _of_model(bundle: Bundle, number: int, seed: int | None) -> SampleDrawn:

    answering = AnsweringModel.of(bundle)
    if not isinstance(answering.model, SamplingModel):
        raise UsageError(
            "samples are drawn from functions, densities and samplers",
            got=f"a model of the kind {answering.model.COMMAND}",
            remedy="fit a synthesizer, a density or a sampler",
        )
    drawn = answering.model.sample(number, random_state=seed)
    if not isinstance(drawn, np.ndarray):
        return SampleDrawn(drawn)
    return SampleDrawn.of_numbers(drawn, _names(answering.columns, answering.dim))


def _names(columns: tuple[str, ...] | None, dim: int) -> tuple[str, ...]:
    return (
        columns if columns is not None and len(columns) == dim else tuple(f"column_{i}" for i in range(dim))
    )
