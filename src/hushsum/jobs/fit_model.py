"""Fit a model on files of records and make it public: the other job that spends."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError, DataRefused, FilePath, HushsumError, UsageError
from hushsum.jobs.deliver_release import Approve, LedgerOptions, LedgerRecord, release_with_ledger
from hushsum.jobs.model_catalogue import ModelChoice, takes_labels
from hushsum.jobs.model_claim import check_target
from hushsum.jobs.model_records import features_of, labels_of, read_classes
from hushsum.jobs.output_files import STANDARD, check_function_output, refuse_repeated
from hushsum.jobs.plan_release import PublicFile, read_public, refuse_private_file
from hushsum.jobs.progress import Progress
from hushsum.jobs.record_files import all_paths
from hushsum.kernels.parameters import kernel_in_words
from hushsum.models.base import PrivateModel
from hushsum.models.parameters import to_json
from hushsum.privacy.claim import Claim, Relation
from hushsum.records.bounds import Bounds, bounds_in_words, names_in_words
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.record_batches import RecordStream, open_batches
from hushsum.releases.bundle import Bundle

Target = NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class TrainingFiles:
    """Which columns of which files are learned from, and which one is learned.

    ``columns`` default to all but ``target``, of the first file. ``classes`` are the declared labels, as
    text. ``name`` is what error messages call the file; by default its path. ``public`` is a file of public
    rows with the same columns; one of the target is left out.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    target: str | None = None
    classes: tuple[str, ...] | None = None
    name: str | None = None
    cells: CellFormat = PLAIN
    public: PublicFile | None = None


@dataclass(frozen=True, slots=True)
class ModelReleased:
    """A public model and where it was written. All of it is public."""

    output: str
    bundle: Bundle
    size: int
    record: LedgerRecord | None = None

    @property
    def claim(self) -> Claim:
        """What was promised."""
        return self.bundle.claim

    def as_json(self) -> dict[str, Any]:
        """The release for a machine."""
        about = self.bundle.about
        return {
            "output": self.output,
            "model": about["model"],
            "parameters": about["parameters"],
            "columns": about["feature_names"],
            "claim": self.claim.in_numbers(),
            "assumptions": list(about["assumptions"]),
            "size": self.size,
            "ledger_record": None if self.record is None else self.record.as_json(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class CountedModel:
    """A model that has counted its records and released nothing; secret until it is."""

    model: PrivateModel
    choice: ModelChoice
    records: TrainingFiles
    output: str | IO[bytes]
    ledger: LedgerOptions | None


def count_model(
    choice: ModelChoice,
    records: TrainingFiles,
    output: str | IO[bytes],
    *,
    interactive: bool = False,
    ledger: LedgerOptions | None = None,
    progress: Progress | None = None,
    most_numbers: int | None = None,
) -> CountedModel:
    """Count files into a model, in one pass and bounded memory; `release_model` then makes it public.

    A classifier whose labels are not declared must see them all before it counts: its records are held in
    memory then. The output is checked first, so that no work is lost for a typing error. ``most_numbers`` is
    how many numbers a model may hold that keeps its records until the release; by default as many as there
    are.

    Raises
    ------
    UsageError
        a model, parameter, file or column that is not there; an output that is not replaced.
    DataRefused
        records that break a rule.
    """
    if records.public is not None:
        refuse_private_file(records.public, records.paths)
        choice = replace(choice, public=public_features(records.public, records.target))
    model = choice.build()
    records = replace(records, paths=all_paths(records.paths))
    _check(records, model, ledger)
    if isinstance(output, str):
        check_function_output(output, inputs=records.paths, interactive=interactive)
    counted = _counted(model, records, progress, most_numbers)
    return CountedModel(counted, choice, records, output, ledger)


def public_features(public: PublicFile, target: str | None) -> Any:
    """The rows of a public file as an Arrow table, without the target if it has one."""
    if public.columns is None and target is not None:
        with suppress(UsageError):
            return read_public(replace(public, left_out=target))
    return read_public(public)


def release_model(counted: CountedModel, *, approve: Approve | None = None) -> ModelReleased | None:
    """Release a counted model to its ``.hush`` file or stream; None if ``approve`` says no, and then nothing
    was spent.

    Raises
    ------
    BudgetExhausted
        if the remaining budget is too small; nothing is released.
    """
    model, records, output, ledger = counted.model, counted.records, counted.output, counted.ledger
    claim = model.claim()

    def make() -> Bundle:
        return model.release().released_

    name = output if isinstance(output, str) else STANDARD
    if ledger is None:
        if approve is not None and not approve(claim, None):
            return None
        bundle = make()
        return ModelReleased(name, bundle, _save(bundle, output))
    delivered = release_with_ledger(
        ledger,
        claim,
        sources=[path for path in records.paths if path != STANDARD]
        + ([] if records.public is None else [records.public.path]),
        output=output,
        subject={
            "model": type(model).__name__,
            "output": Path(output).name if isinstance(output, str) else "standard output",
            **_described(model),
        },
        settings=[to_json("parameters", counted.choice.parameters), records.columns, records.target],
        make=make,
        approve=approve,
    )
    if delivered is None:
        return None
    return ModelReleased(name, delivered.function, delivered.size, delivered.record)


def _described(model: PrivateModel) -> dict[str, object]:
    """What the ledger and its disclosure report say of a model: public, and known before the release."""
    dim = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    found: dict[str, object] = {"bounds": bounds_in_words(Bounds.of(model.column_bounds(), dim))}
    if names is not None:
        found["columns"] = names_in_words([str(name) for name in names])
    kernels = model.compared_by(dim)
    if kernels:
        found["kernel"] = "; ".join(kernel_in_words(each) for each in kernels)
    return found


def check_ledger(ledger: LedgerOptions | None, claim: Claim) -> None:
    """Refuse a model whose claim the dataset can never take, before any record is read: neither a model's
    unit nor its relation can be chosen.
    """
    if ledger is None:
        return
    budget = ledger.budget()
    if claim.relation is Relation.REPLACE and budget.account.terms.relation is not Relation.REPLACE:
        raise ClaimError(
            rule=(
                "this model claims 'replace', which leaves the number of records unprotected, "
                "and the dataset is kept under 'add/remove'"
            ),
            remedy=("keep it in a dataset made with 'hushsum ledger init --relation replace --delta ...'"),
        )
    budget.cost(claim)


def _check(records: TrainingFiles, model: PrivateModel, ledger: LedgerOptions | None) -> None:
    if not records.paths:
        raise UsageError(
            parameter="files",
            rule="must be at least one file of records",
            got="none",
            remedy="'-' reads CSV",
        )
    refuse_repeated(records.paths)
    check_target(model, records.columns, records.target, records.classes)
    if ledger is not None or records.cells.drop_missing:
        claim = model.claim(None if records.columns is None else len(records.columns))
        records.cells.check_relation(str(claim.relation))
        check_ledger(ledger, claim)
    if ledger is not None and ledger.idempotency_key is None and STANDARD in records.paths:
        raise UsageError(
            parameter="idempotency_key",
            rule="must be given for a release from standard input, since nothing else names it in the ledger",
        )
    for path in records.paths:
        if path != STANDARD:
            _check_columns(records, path, labels=takes_labels(model))


def _check_columns(records: TrainingFiles, path: str, *, labels: bool) -> None:
    """Open a file, which refuses columns that it does not have."""
    try:
        _open(records, path, records.columns, labels=labels).close()
    except UsageError as error:
        if records.target is None or error.got != repr(records.target):
            raise
        remedy = error.remedy
    else:
        return
    raise UsageError(
        parameter="target", rule="must name a column of the data", got=repr(records.target), remedy=remedy
    )


def _open(records: TrainingFiles, path: str, columns: Sequence[str] | None, *, labels: bool) -> RecordStream:
    """The batches of one file; a target of labels is read as it is, one of numbers beside the columns."""
    if records.target is None or labels:
        return open_batches(
            path, columns=columns, unit_column=records.target, name=records.name, cells=records.cells
        )
    if columns is None:
        with open_batches(path, columns=[records.target], name=records.name, cells=records.cells):
            pass
        return open_batches(path, name=records.name, cells=records.cells)
    return open_batches(path, columns=[*columns, records.target], name=records.name, cells=records.cells)


def training_batches(
    records: TrainingFiles, *, labels: bool, progress: Progress | None
) -> Iterator[tuple[Any, Target]]:
    """Every batch as a table of columns and its target."""
    columns: Sequence[str] | None = records.columns
    for number, path in enumerate(records.paths):
        with _open(records, path, columns, labels=labels) as stream:
            columns = [name for name in stream.column_names if name != records.target]
            if not columns:
                raise UsageError(
                    rule=(FilePath(records.name or path), " must have a column besides the target"),
                    remedy="choose the columns",
                )
            for batch, marked in stream:
                if records.target is None:
                    yield features_of(batch, columns), None
                elif labels:
                    yield features_of(batch, columns), labels_of(marked, records.target)
                else:
                    target = features_of(batch, [records.target]).column(0).to_numpy()
                    yield features_of(batch, columns), target
                if progress is not None:
                    read = stream.progress
                    progress(None if read is None else (number + read) / len(records.paths))


def _counted(
    model: PrivateModel, records: TrainingFiles, progress: Progress | None, most_numbers: int | None
) -> PrivateModel:
    labels = takes_labels(model)
    batches = training_batches(records, labels=labels, progress=progress)
    if labels and records.classes is None:
        return _counted_at_once(model, list(batches))
    number = 0
    classes = records.classes
    for table, target in batches:
        number += table.num_rows
        if most_numbers is not None and number * model.kept_per_record(table.num_columns) > most_numbers:
            raise DataRefused(
                rule=("this model keeps its records until the release, and got more than there is room for"),
                remedy="take fewer features or records, or another model",
            )
        if classes is not None and target is not None:
            model.set_params(classes=read_classes(classes, target))
            classes = None
        _add(model.partial_fit, table, target)
    return model


def _counted_at_once(model: PrivateModel, batches: list[tuple[Any, Target]]) -> PrivateModel:
    from hushsum.records.arrow import pyarrow

    table = pyarrow().concat_tables([table for table, _ in batches])
    target = np.concatenate([part for _, part in batches if part is not None])
    _add(model.partial_fit, table, target)
    return model


def _add(method: Callable[..., PrivateModel], table: Any, target: Target) -> None:
    """Give a batch to a model; whatever else is raised may quote a value, so this replaces it."""
    try:
        method(table, target)
        return
    except HushsumError:
        raise
    except (ValueError, TypeError):
        pass
    raise DataRefused(
        rule="the records must be numbers, and the target what the model learns",
        got="others",
        remedy="check the columns",
    )


def _save(bundle: Bundle, output: str | IO[bytes]) -> int:
    if isinstance(output, str):
        bundle.save(output)
        return Path(output).stat().st_size
    buffer = io.BytesIO()
    bundle.save(buffer)
    output.write(buffer.getbuffer())
    return buffer.tell()
