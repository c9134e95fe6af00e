"""Ask a released model at the points of a file of any size. Spends nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.jobs.model_answers import answers_of
from hushsum.jobs.model_records import features_of
from hushsum.jobs.output_files import STANDARD
from hushsum.jobs.progress import Progress
from hushsum.jobs.query_function import with_dates
from hushsum.models.base import PrivateModel
from hushsum.models.load import load_model
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.columns_by_name import choose_columns, columns_in_words
from hushsum.records.record_batches import open_batches


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


def open_model(source: str) -> PrivateModel:
    """The released model in a ``.hush`` file; ``"-"`` reads it from standard input."""
    import hushsum.models  # noqa: F401  # importing them registers them

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
        raise UsageError(
            rule="model and points cannot both come from standard input", remedy="give one as a file"
        )
    answered = _answer(open_model(source), path, columns, cells, progress)
    first = next(answered)
    return _chain(first, answered)


def _chain(first: PredictedRecords, rest: Iterator[PredictedRecords]) -> Iterator[PredictedRecords]:
    yield first
    yield from rest


def _answer(
    model: PrivateModel,
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
                parameter="points",
                rule=f"must have {columns_in_words(model.n_features_in_)} for this model",
                got=len(names),
                remedy="choose the columns",
            )
        for batch, _ in stream:
            table = features_of(batch, names)
            known = table.rename_columns(own) if own is not None else np.column_stack(table.columns)
            yield PredictedRecords(with_dates(batch, cells.dates), answers_of(model, known))
            if progress is not None:
                progress(stream.progress)
