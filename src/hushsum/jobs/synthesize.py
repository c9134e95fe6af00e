"""From files of private records to a table of synthetic ones: release marginals once, then draw."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.jobs.deliver_release import Approve, LedgerOptions
from hushsum.jobs.fit_model import CountedModel, ModelReleased, TrainingFiles, check_ledger, release_model
from hushsum.jobs.mixed_tables import check_table_output, mixed_batches, write_table
from hushsum.jobs.model_catalogue import ModelChoice
from hushsum.jobs.output_files import check_answers_output, check_function_output, refuse_repeated
from hushsum.jobs.record_files import all_paths
from hushsum.models.load import model_of
from hushsum.models.synthesizer import PrivateSynthesizer
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.declared_columns import CategoryColumn, DeclaredColumn, FlagColumn
from hushsum.records.declared_columns_json import column_from_json
from hushsum.records.number_column import NumberColumn

MODEL: Final = ".hush"
_WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True)
class TableWritten:
    """A synthetic table, the model it was drawn from, and the expected error of its marginals; public."""

    output: str
    rows: int
    released: ModelReleased
    errors: Mapping[tuple[str, ...], float]

    @property
    def expected_error(self) -> float:
        """The mean expected total variation of the marginals of two columns; of one, where there are none."""
        pairs = [error for members, error in self.errors.items() if len(members) == 2]
        found = pairs or list(self.errors.values())
        return sum(found) / len(found)

    def as_json(self) -> dict[str, Any]:
        """For a machine."""
        listed = [{"columns": list(members), "error": error} for members, error in self.errors.items()]
        return {
            "output": self.output,
            "rows": self.rows,
            "expected_errors": listed,
            "release": self.released.as_json(),
        }


def read_declarations(path: str) -> dict[str, DeclaredColumn]:
    """The declarations of a JSON file: an object by column name.

    Raises
    ------
    UsageError
        There is no such file, it is not JSON, or a declaration breaks a rule.
    """
    try:
        data = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or not data:
        raise UsageError(
            rule=(FilePath(path, quoted=True), " must be a JSON object with a declaration of each column"),
            got="something else",
            remedy='write for example {"age": {"kind": "numbers", "low": 0, "high": 120}}',
        )
    return {name: column_from_json(each) for name, each in data.items()}


def declared_numbers(text: str) -> tuple[str, DeclaredColumn]:
    """``NAME=LOW:HIGH[:BINS][:whole]``; a missing number is a label of its own.

    >>> name, column = declared_numbers("age=0:120:12:whole")
    >>> name, column.parts, column.whole
    ('age', 12, True)
    """
    name, _, rest = text.partition("=")
    parts = rest.split(":")
    whole = parts[-1] == _WHOLE
    if whole:
        parts.pop()
    try:
        low, high = float(parts[0]), float(parts[1])
        bins = int(parts[2]) if len(parts) == 3 else 16
        if not name or len(parts) > 3:
            raise ValueError
    except (ValueError, IndexError):
        raise UsageError(
            parameter="number",
            rule="must be NAME=LOW:HIGH, NAME=LOW:HIGH:BINS, or one of these with :whole at the end",
            got="something else",
            remedy="write for example age=0:120:12:whole",
        ) from None
    return name, NumberColumn(low, high, fill=low, bins=bins, whole=whole)


def declared_categories(text: str) -> tuple[str, DeclaredColumn]:
    """``NAME=A,B,C``: texts, or numbers where all of them are; others count as "other".

    >>> declared_categories("ward=2,3")[1].values
    (2, 3)
    """
    name, _, rest = text.partition("=")
    values: list[Any] = rest.split(",")
    if not name or not all(values):
        raise UsageError(
            parameter="category",
            rule="must be NAME=VALUE,VALUE,...",
            got="something else",
            remedy="write for example sex=f,m",
        )
    with suppress(ValueError):
        values = [int(each) for each in values]
    return name, CategoryColumn(values, unknown="other")


def declarations(
    file: str | None, numbers: Sequence[str], categories: Sequence[str], flags: Sequence[str]
) -> dict[str, DeclaredColumn]:
    """The columns of a declaration file and of options, in this order.

    Raises
    ------
    UsageError
        No column is declared, or one twice.
    """
    found = [] if file is None else list(read_declarations(file).items())
    found += [declared_numbers(each) for each in numbers]
    found += [declared_categories(each) for each in categories]
    found += [(each, FlagColumn()) for each in flags]
    if not found or len(dict(found)) != len(found):
        raise UsageError(
            parameter="columns",
            rule="must be declared, each once",
            got="none" if not found else "one of them twice",
            remedy="give a file of declarations, or an option for each column",
        )
    return dict(found)


def synthesize(
    sources: Sequence[str],
    output: str,
    columns: Mapping[str, DeclaredColumn],
    parameters: Mapping[str, Any],
    *,
    model_output: str | None = None,
    rows: int | None = None,
    seed: int | None = None,
    cells: CellFormat = PLAIN,
    interactive: bool = False,
    approve: Approve | None = None,
    ledger: LedgerOptions | None = None,
) -> TableWritten | None:
    """Release the marginals of files, and write a synthetic table; None where a person declined.

    The model is kept in a ``.hush`` file, by default beside the table: further tables are drawn from it by
    ``hushsum sample`` without spending anything. ``rows`` is by default the released number of records.
    """
    sources = all_paths(sources)
    refuse_repeated(sources)
    check_table_output(output)
    check_answers_output(output, inputs=sources)
    kept = str(Path(output).with_suffix(MODEL)) if model_output is None else model_output
    check_function_output(kept, inputs=sources, interactive=interactive)
    choice = ModelChoice("synthesizer", {**parameters, "columns": dict(columns)})
    model = choice.build()
    assert isinstance(model, PrivateSynthesizer)
    check_ledger(ledger, model.claim())
    found = False
    for source in sources:
        for table in mixed_batches(source, columns, cells=cells):
            if table.num_rows:
                model.partial_fit(table)
                found = True
    if not found:
        raise DataRefused(rule="the files must have records", got="none", remedy="check them")
    records = TrainingFiles(tuple(sources), tuple(columns), cells=cells)
    released = release_model(CountedModel(model, choice, records, kept, ledger), approve=approve)
    if released is None:
        return None
    # From the file's content: a resumed release is that of the first run.
    drawn_from = model_of(released.bundle)
    assert isinstance(drawn_from, PrivateSynthesizer)
    number = max(1, round(drawn_from.function_.count)) if rows is None else rows
    write_table(drawn_from.sample(number, random_state=seed), output)
    return TableWritten(output, number, released, drawn_from.expected_errors())
